// A node without a decoder whose schema says what it is made of.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/function_body.h"
#include "graph/onnx/graph_decoder.h"
#include "graph/onnx/limits.h"

namespace zeroplan {

bool GraphDecoder::expand_function(const OnnxNode& node, const DecodeContext& context) {
  if (!has_function_body(node, model_.decoded_opset)) return false;
  std::vector<const Value*> operands;
  for (int i = 0; i < context.count(); ++i) operands.push_back(context.has(i) ? &build_.graph().values[context.in(i)] : nullptr);
  const std::optional<OnnxGraph> body = function_body(node, operands, model_.decoded_opset);
  if (!body) return false;
  if (body_depth_ == kMaxBodyDepth) throw Error(fmt::format("function bodies nest deeper than {}", kMaxBodyDepth));
  std::set<std::string> wanted;
  for (const std::string& output : node.outputs)
    if (!output.empty()) wanted.insert(output);
  const size_t problems = problems_.size(), constant_problems = constant_problems_.size();
  std::vector<ValueId> results;
  {
    const Scope scope(*this);
    const Nested nested(body_depth_);
    for (int i = 0; i < context.count(); ++i)
      if (context.has(i)) scopes_.back()[node.inputs[i]] = context.in(i);
    decode_nodes(*body, needed_nodes(*body, wanted));
    for (const std::string& output : node.outputs) results.push_back(output.empty() ? kNone : lookup(output));
  }
  if (problems_.size() > problems || constant_problems_.size() > constant_problems) {
    block(node);
    return true;
  }
  for (size_t i = 0; i < results.size(); ++i) bind(node.outputs[i], results[i]);
  return true;
}

}  // namespace zeroplan
