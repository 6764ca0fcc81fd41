#include "passes/train/elementwise_chain.h"

#include <algorithm>

#include "passes/edit/producers.h"

namespace zeroplan {
namespace {

// Appends `chain` to `to`; returns the place of its result.
int append(ElementwiseChain& to, const ElementwiseChain& chain) {
  const int offset = static_cast<int>(to.steps.size());
  for (ElementwiseChain::Step step : chain.steps) {
    for (ElementwiseChain::Source& source : step.sources)
      if (source.instruction >= 0) source.instruction += offset;
    to.steps.push_back(std::move(step));
  }
  return static_cast<int>(to.steps.size()) - 1;
}

template <typename T>
int place_of(const std::vector<T>& list, const T& item) {
  const auto found = std::find(list.begin(), list.end(), item);
  return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

bool fixes_shape(const Graph& graph, const std::vector<ValueId>& operands, const Shape& shape) {
  Shape result;
  bool floating = false;
  for (ValueId id : operands) {
    result = broadcast_shapes(result, graph.values[id].shape);
    floating = floating || is_floating(graph.values[id].dtype);
  }
  return floating && result == shape;
}

}  // namespace

std::vector<ValueId> ElementwiseChain::operands() const {
  std::vector<ValueId> result;
  for (const Step& step : steps)
    for (const Source& source : step.sources)
      if (source.instruction < 0 && place_of(result, source.value) < 0) result.push_back(source.value);
  return result;
}

std::optional<ElementwiseChain> join_chains(const Node& node, const std::map<ValueId, const ElementwiseChain*>& joined) {
  ElementwiseChain chain;
  std::map<ValueId, int> results;
  ElementwiseChain::Step last{node.op, {}, static_cast<int>(node.attributes.get_int(Attr::approximate, 0))};
  for (ValueId input : node.inputs) {
    const auto found = joined.find(input);
    if (found == joined.end()) {
      last.sources.push_back({input, -1});
      continue;
    }
    if (!results.count(input)) results[input] = append(chain, *found->second);
    last.sources.push_back({kNone, results[input]});
  }
  chain.steps.push_back(std::move(last));
  if (chain.steps.size() > kMaxInstructions || chain.operands().size() > kMaxOperands) return std::nullopt;
  return chain;
}

EncodedChain encode_chain(const Graph& graph, const ElementwiseChain& chain, const Shape& shape) {
  const std::vector<ValueId> all = chain.operands();
  EncodedChain result;
  std::vector<ValueId> scalars;
  for (ValueId id : all) (scalar_constant(graph, id) ? scalars : result.operands).push_back(id);
  if (!fixes_shape(graph, result.operands, shape)) {
    result.operands = all;
    scalars.clear();
  }
  ElementwiseCode code;
  for (ValueId id : scalars) code.constants.push_back(*scalar_constant(graph, id));
  const int operands = static_cast<int>(result.operands.size()), first = operands + static_cast<int>(scalars.size());
  const auto place = [&](const ElementwiseChain::Source& source) {
    if (source.instruction >= 0) return first + source.instruction;
    const int operand = place_of(result.operands, source.value);
    return operand >= 0 ? operand : operands + place_of(scalars, source.value);
  };
  for (const ElementwiseChain::Step& step : chain.steps) {
    ElementwiseInstruction instruction{step.op, -1, -1, -1, step.approximate};
    int* const fields[] = {&instruction.a, &instruction.b, &instruction.c};
    for (size_t i = 0; i < step.sources.size(); ++i) *fields[i] = place(step.sources[i]);
    code.instructions.push_back(instruction);
  }
  result.attributes = encode_elementwise(code);
  return result;
}

}  // namespace zeroplan
