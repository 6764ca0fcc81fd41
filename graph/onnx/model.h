#pragma once
// A model as read: plain data, functions inlined, default domain at opset kTargetOpset or above. Nothing here needs protobuf.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/onnx/stated_optimizer.h"

namespace zeroplan {

struct OnnxTensor {
  std::string name;
  int type = 0;  // TensorProto.DataType
  Shape shape;
  std::string bytes;     // contents, little-endian; empty where they stay in the file
  bool in_file = false;  // `source` locates them (a weight can be read, trained and written back)
  WeightSource source;   // type is meant where stored_type (tensor_data.h) knows one
};

struct OnnxGraph;

struct OnnxAttribute {
  std::string name;
  int type = 0;  // AttributeProto.AttributeType
  double f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  OnnxTensor tensor;
  std::shared_ptr<const OnnxGraph> graph;  // shared: nodes are copied
};

inline OnnxAttribute integer_attribute(const char* name, int64_t value) {
  OnnxAttribute a;
  a.name = name;
  a.i = value;
  return a;
}

struct OnnxNode {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;  // empty: left out
  std::vector<OnnxAttribute> attributes;
  const OnnxAttribute* find(const char* attribute) const;
  int64_t integer(const char* attribute, int64_t otherwise) const;
  std::string label() const;  // for messages: name, else first output
};

struct OnnxDim {
  int64_t value = 0;   // meaningful where symbol is empty
  std::string symbol;  // unnamed unknown dims are called INPUT[AXIS]
};

struct OnnxValueInfo {
  std::string name;
  int type = 0;       // 0: not a tensor
  int item_type = 0;  // of a sequence of tensors
  bool optional = false;
  bool ranked = false;
  std::vector<OnnxDim> dims;
};

struct OnnxGraph {
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxValueInfo> inputs, outputs;
};

// The graph, and behind it those inside its nodes.
std::vector<const OnnxGraph*> all_graphs(const OnnxGraph& graph);

// What the exporter wrote beside the graph, read before conversion loses it.
struct NodeNote {
  std::string name, op;
  std::vector<std::string> inputs;
  std::vector<std::string> fx_parameters;  // p_… and b_… names in the fx_node text, in order
  int fx_values = -1;                      // different values that the fx call names, parameters included; -1: no call is noted
  std::vector<std::string> scopes;
};

struct ExporterMetadata {
  bool torch = false;                           // PyTorch's dynamo exporter wrote any of it
  std::map<std::string, std::string> kind;      // initializer -> PARAMETER, BUFFER, …
  std::map<std::string, std::string> original;  // initializer -> p_…
  std::map<std::string, std::vector<std::string>> folded_from;
  std::map<std::string, std::string> target;       // p_… -> torch name
  std::map<std::string, std::string> target_kind;  // torch name -> PARAMETER, BUFFER, …
  std::map<std::string, NodeNote> nodes;           // of the top-level graph as stored, by first output
};

// What the file, or the files beside it, say of training.
struct TrainingFacts {
  std::map<std::string, bool> roles;  // tensor -> trained, else frozen; where there is any, all other tensors are constants
  std::string stated_by;              // what says so
  std::string loss;                   // output; empty: not said
  std::optional<StatedOptimizer> optimizer;
  std::string identity;             // of files beside the model, for its digest
  std::string missing;              // what to do where nothing of the model can be trained
  std::vector<std::string> report;  // one line each
};

struct OnnxModel {
  std::string path, producer, digest;
  int opset = 0;          // as stored
  int decoded_opset = 0;  // of `graph`
  OnnxGraph graph;
  ExporterMetadata metadata;
  TrainingFacts training;
};

}  // namespace zeroplan
