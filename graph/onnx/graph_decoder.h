#pragma once
// Walks the nodes of a model that the wanted values need and builds the internal graph.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/onnx/bind_dims.h"
#include "graph/onnx/decode.h"
#include "graph/onnx/model.h"
#include "graph/onnx/roles.h"

namespace zeroplan {

class GraphDecoder {
 public:
  // All arguments must outlive the decoder.
  GraphDecoder(const OnnxModel& model, WeightFiles& files, const RolePlan& roles, DType precision, Graph& graph);

  void add_inputs(const BoundDims& dims);
  ValueId add_input(Value value);  // under the name that it has
  void decode(const std::set<std::string>& wanted);
  // kNone: not there, or it depends on a node that could not be decoded.
  ValueId find(const std::string& name);

  FoldingBuilder& build() { return build_; }
  std::vector<std::string> problems() const;
  const std::map<ValueId, std::string>& names() const { return names_; }  // names of the model for computed values

 private:
  void decode_nodes(const OnnxGraph& graph, const std::set<std::string>& wanted);
  void decode_node(const OnnxNode& node);
  void run_decoder(const OnnxNode& node, DecodeContext& context);
  void decode_if(const OnnxNode& node, const std::vector<ValueId>& inputs);
  void block(const OnnxNode& node);
  bool blocked(const OnnxNode& node) const;
  ValueId operand(const OnnxNode& node, int input);
  ValueId stored(const std::string& name);
  ValueId parameter(int index);
  void bind(const std::string& name, ValueId id);

  const OnnxModel& model_;
  WeightFiles& files_;
  const RolePlan& roles_;
  const DType precision_;
  FoldingBuilder build_;
  std::vector<std::map<std::string, ValueId>> scopes_;
  std::map<std::string, const OnnxTensor*> initializers_;
  std::map<int, ValueId> parameters_;
  std::map<ValueId, std::string> names_;
  std::set<std::string> blocked_;
  std::vector<std::string> problems_, constant_problems_;
};

// Needed nodes without decoder that depend on data or parameters, one line each; needs no shapes.
std::vector<std::string> unsupported_nodes(const OnnxModel& model, const RolePlan& roles, const std::set<std::string>& wanted);

}  // namespace zeroplan
