#include "graph/ops/elementwise.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/definitions.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"
#include "graph/ops/scalar_reference.h"

namespace zeroplan {

namespace {

constexpr int kInPlaceOperands = 16;

void check_code(const Node& node, const ElementwiseCode& code) {
  if (code.instructions.empty()) throw Error("has no instructions");
  int registers = static_cast<int>(node.inputs.size() + code.constants.size());
  for (const ElementwiseInstruction& step : code.instructions) {
    const int operands[3] = {step.a, step.b, step.c};
    for (int i = 0; i < elementwise_arity(step.op); ++i)
      if (operands[i] < 0 || operands[i] >= registers)
        throw Error(fmt::format("instruction {} reads register {}, of {} that exist", op_name(step.op), operands[i], registers));
    ++registers;
  }
  const OpKind last = code.instructions.back().op;
  if (gives_boolean(last))
    throw Error(fmt::format("ends in {}, whose result is boolean; a chain gives a floating-point tensor", op_name(last)));
}

std::vector<OutputType> infer(const Graph& graph, const Node& node) {
  Shape shape;
  const Value* floating = nullptr;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value& x = operand(graph, node, static_cast<int>(i), "operand");
    shape = broadcast_shapes(shape, x.shape);
    if (x.dtype == DType::boolean) continue;
    floating_operand(graph, node, static_cast<int>(i), "operand");
    if (floating) expect_dtype(x, floating->dtype, "operand");
    floating = &x;
  }
  if (!floating) throw Error("takes at least one floating-point operand");
  check_code(node, decode_elementwise(node.attributes));
  return {{floating->dtype, shape}};
}

void evaluate(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const ElementwiseCode code = decode_elementwise(node.attributes);
  const size_t operands = in.size() + code.constants.size();
  std::vector<double> registers(operands + code.instructions.size());
  std::copy(code.constants.begin(), code.constants.end(), registers.begin() + static_cast<int64_t>(in.size()));
  const auto read = [&](int r) { return r < 0 ? 0.0 : registers[r]; };
  for_each_index(out[0].shape(), [&](const Index& index, int64_t n) {
    for (size_t i = 0; i < in.size(); ++i) registers[i] = in[i].get(broadcast_index(index, in[i].shape()));
    for (size_t i = 0; i < code.instructions.size(); ++i) {
      const ElementwiseInstruction& step = code.instructions[i];
      registers[operands + i] = scalar_reference(step.op, read(step.a), read(step.b), read(step.c), step.approximate);
    }
    out[0].set(n, registers.back());
  });
}

double flops(const Graph& graph, const Node& node) {
  const auto steps = static_cast<double>(decode_elementwise(node.attributes).instructions.size());
  return steps * static_cast<double>(elements(graph.values[node.outputs[0]].shape));
}

}  // namespace

// Not cast: a register has no type of its own; it is floating-point.
bool is_elementwise(OpKind op) { return op != OpKind::cast && !takes_integers_alone(op) && elementwise_arity(op) > 0; }

OpDef elementwise_def() {
  OpDef def;
  def.infer = infer;
  def.evaluate = evaluate;
  for (int i = 0; i < kInPlaceOperands; ++i) def.in_place.push_back({0, i});
  def.accepts = accept_any_strides;
  def.flops = flops;
  return def;
}

}  // namespace zeroplan
