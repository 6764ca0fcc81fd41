#include <cmath>
#include <random>

#include "tests/op_cases/cases.h"

namespace zeroplan {

namespace {

HostTensor random_tensor(const TensorSpec& spec, DType dtype, std::mt19937_64& random) {
  if (!spec.values.empty()) return HostTensor::of(dtype, spec.shape, spec.values);
  HostTensor tensor(dtype, spec.shape);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    const double value = spec.low + unit * (spec.high - spec.low);
    if (is_floating(dtype))
      tensor.set(i, value);
    else if (dtype == DType::boolean)
      tensor.set(i, value >= (spec.low + spec.high) / 2);
    else
      tensor.set_int(i, static_cast<int64_t>(std::floor(value)));
  }
  return tensor;
}

}  // namespace

CaseGraph build_case(const OpCase& op_case, DType precision, uint64_t seed) {
  CaseGraph built;
  Builder builder(built.graph);
  builder.origin = op_case.name;
  std::mt19937_64 random(seed);
  std::vector<ValueId> operands;
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    const TensorSpec& spec = op_case.inputs[i];
    if (spec.absent) {
      operands.push_back(kNone);
      continue;
    }
    const DType floating = spec.wide ? wide_dtype(precision) : precision;
    HostTensor contents = random_tensor(spec, spec.dtype == DType::f32 ? floating : spec.dtype, random);
    Value value;
    value.name = "in" + std::to_string(i);
    value.dtype = contents.dtype();
    value.shape = contents.shape();
    value.kind = spec.constant ? ValueKind::constant : ValueKind::input;
    if (spec.constant) value.constant = contents;
    operands.push_back(built.graph.add_value(std::move(value)));
    if (!spec.constant) built.graph.inputs.push_back(operands.back());
    built.values[operands.back()] = std::move(contents);
  }
  builder.add_multi(op_case.op, operands, op_case.attributes);
  built.node = built.graph.nodes.back();
  return built;
}

std::vector<HostTensor> reference_outputs(const CaseGraph& built) {
  std::vector<HostTensor> operands;
  for (const ValueId id : built.node.inputs) operands.push_back(id == kNone ? HostTensor() : built.values.at(id));
  return evaluate_node(built.graph, built.node, operands);
}

}  // namespace zeroplan
