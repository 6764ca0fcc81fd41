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
#include "graph/onnx/value_lists.h"

namespace zeroplan {

std::set<std::string> output_names(const OnnxGraph& graph);
// By node: do the wanted values need it?
std::vector<bool> needed_nodes(const OnnxGraph& graph, std::set<std::string> wanted);

class GraphDecoder {
 public:
  // All arguments must outlive the decoder.
  GraphDecoder(const OnnxModel& model, WeightFiles& files, const RolePlan& roles, const ImportOptions& options, Graph& graph);

  // `bind`: inputs that are constants.
  void add_inputs(const BoundDims& dims, const std::map<std::string, HostTensor>& bind);
  ValueId add_input(Value value);  // under the name that it has
  void decode(const std::set<std::string>& wanted);
  // kNone: not there, or it depends on a node that could not be decoded. Throws Error on a sequence or an optional without a value.
  ValueId find(const std::string& name);
  // The items of a sequence, by name NAME[0], NAME[1], …; of all else `find`, under its own name.
  std::vector<std::pair<std::string, ValueId>> find_all(const std::string& name);

  FoldingBuilder& build() { return build_; }
  std::vector<std::string> problems() const;
  const std::map<ValueId, std::string>& names() const { return names_; }  // names of the model for computed values

 private:
  bool add_list(const OnnxValueInfo& input, const std::map<std::string, HostTensor>& bind);
  void decode_nodes(const OnnxGraph& graph, const std::vector<bool>& needed);
  OnnxNode in_mode(const OnnxNode& node, bool batch) const;
  void decode_node(const OnnxNode& stored_node);
  void refuse_in_branch(const OnnxNode& node) const;
  void run_decoder(const OnnxNode& node, DecodeContext& context);
  bool decode_control(const OnnxNode& node, const std::vector<ValueId>& inputs);  // false: the node is no control flow
  void decode_if(const OnnxNode& node, const std::vector<ValueId>& inputs);
  void decode_loop(const OnnxNode& node, const std::vector<ValueId>& inputs);
  void decode_scan(const OnnxNode& node, const std::vector<ValueId>& inputs);
  void decode_batch_scan(const OnnxNode& node, const std::vector<ValueId>& inputs);
  struct Scope;
  // What a branch reads from outside, so that no gradient comes back from a branch that was not taken: zero times infinity is NaN.
  struct Branch {
    ValueId condition = kNone;
    bool taken = true;  // where the condition is this
    size_t scopes = 0;  // names of that many scopes are outside
    std::map<ValueId, ValueId> inside{};
  };
  ValueId enter(Branch& branch, ValueId id);
  ValueId from_scope(size_t scope, ValueId id);
  struct Body;
  std::vector<ValueId> run_body(const Body& body, const std::vector<ValueId>& inputs);
  std::vector<ValueId> run_branch(const OnnxNode& node, ValueId condition, bool taken);
  struct ScanPlan;
  std::vector<ValueId> run_scan(const ScanPlan& plan, std::vector<ValueId> state, const std::vector<ValueId>& sequences,
                                int64_t length = -1);
  bool expand_function(const OnnxNode& node, const DecodeContext& context);  // false: its schema has no body
  void bind_all(const OnnxNode& node, const std::vector<ValueId>& results);
  void decode_gradient(const OnnxNode& node, const std::vector<ValueId>& inputs);  // decode_gradient.cc, with the next one
  ValueId evaluate_again(const OnnxNode& node, const std::vector<std::string>& names, const std::vector<ValueId>& inputs,
                         const std::string& target);
  ValueId lookup(const std::string& name);  // as find, lists among them
  std::vector<ValueId> map_sequence(const OnnxNode& node, const std::vector<ValueId>& inputs);
  ValueId choose(ValueId condition, ValueId then, ValueId otherwise, size_t output);
  void block(const OnnxNode& node);
  bool blocked(const OnnxNode& node) const;
  ValueId operand(const OnnxNode& node, int input);
  ValueId nibbles(const OnnxNode& node, const std::string& name);
  ValueId stored(const std::string& name);
  ValueId parameter(int index);
  ValueId shown(int index);  // what readers of its initializer see
  void bind(const std::string& name, ValueId id);

  const OnnxModel& model_;
  WeightFiles& files_;
  const RolePlan& roles_;
  const ImportOptions& options_;
  const DType precision_;
  FoldingBuilder build_;
  ValueLists lists_;
  std::vector<std::map<std::string, ValueId>> scopes_;
  std::map<std::string, const OnnxTensor*> initializers_;
  std::map<int, ValueId> parameters_, quantised_;
  std::map<std::string, ValueId> nibbles_;
  std::map<ValueId, std::string> names_;
  std::set<std::string> blocked_;
  std::vector<std::string> problems_, constant_problems_;
  std::vector<Branch> branches_;  // that are open and that data chooses
  int body_depth_ = 0;            // function bodies that are open, and
  int gradient_depth_ = 0;        // Gradients that evaluate again
  int64_t visited_ = 0;           // nodes, also those that are not needed
};

// Names of a body, gone with it.
struct GraphDecoder::Scope {
  explicit Scope(GraphDecoder& decoder) : scopes(decoder.scopes_) { scopes.emplace_back(); }
  ~Scope() { scopes.pop_back(); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  std::vector<std::map<std::string, ValueId>>& scopes;
};

// A graph that is run, perhaps many times.
struct GraphDecoder::Body {
  explicit Body(const OnnxGraph& graph) : graph(graph), needed(needed_nodes(graph, output_names(graph))) {}
  const OnnxGraph& graph;
  std::vector<bool> needed;
};

// One level of what may nest.
struct Nested {
  explicit Nested(int& depth) : depth(depth) { ++depth; }
  ~Nested() { --depth; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;
  int& depth;
};

bool is_control_flow(const OnnxNode& node);  // or a Gradient: what needs more than its operands
// Everything that a node reads, captured names of its subgraphs included.
void add_reads(const OnnxNode& node, std::set<std::string>& names);
bool is_gradient(const OnnxNode& node);  // ai.onnx.preview.training::Gradient
// Values that a Gradient names in its attributes besides its inputs.
std::vector<std::string> gradient_names(const OnnxNode& node);

// Needed nodes without decoder that depend on data or parameters, one line each; needs no shapes.
std::vector<std::string> unsupported_nodes(const OnnxModel& model, const RolePlan& roles, const std::set<std::string>& wanted);

}  // namespace zeroplan
