#include "tests/conformance/kernel_table.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "kernels/kernel.h"
#include "tests/op_cases/accepted_types.h"

namespace zeroplan {

namespace {

const char* class_name(OpClass kind) {
  switch (kind) {
    case OpClass::kernel: return "kernel";
    case OpClass::view: return "view";
    case OpClass::fold: return "import only";
    case OpClass::comm: return "communicator";
    case OpClass::host: return "host";
  }
  return "";
}

std::vector<DType> all_types() { return {std::begin(kDTypes), std::end(kDTypes)}; }

// Kernels without cases, which tests of their own run: the random numbers and the training step.
std::vector<DType> types_of_own_tests(OpKind op) {
  const std::vector<DType> wide = {DType::f32, DType::f64};
  switch (op) {
    case OpKind::dropout: return {DType::f32, DType::f64, DType::f16, DType::bf16};
    case OpKind::record_output: return all_types();
    case OpKind::random_uniform:
    case OpKind::record_loss:
    case OpKind::record_statistics:
    case OpKind::fold_statistics:
    case OpKind::fill_padding:
    case OpKind::fold_metrics:
    case OpKind::grad_norm:
    case OpKind::clip_factor:
    case OpKind::optimizer_update: return wide;
    default: throw Error(fmt::format("operator '{}' has neither a case in tests/op_cases nor a line in kernel_table.cc", op_name(op)));
  }
}

struct Cases {
  int count = 0;
  std::vector<DType> types;  // of what an operand or result can be, in the order of kDTypes
};

void note(std::vector<DType>& types, DType dtype) {
  if (std::find(types.begin(), types.end(), dtype) == types.end()) types.push_back(dtype);
}

std::map<OpKind, Cases> cases_by_operator() {
  std::map<OpKind, Cases> all;
  for (const OpCase& op_case : op_cases()) {
    Cases& cases = all[op_case.op];
    ++cases.count;
    if (op_case.inputs.empty())
      cases.types = all_types();  // an attribute says which
    else if (op_case.inputs[0].dtype != DType::f32)
      note(cases.types, op_case.inputs[0].dtype);
  }
  for (const OpCase& op_case : typed_cases())
    for (const DType dtype : accepted_types(op_case)) note(all[op_case.op].types, dtype);
  for (auto& [op, cases] : all) std::sort(cases.types.begin(), cases.types.end());
  return all;
}

}  // namespace

void print_internal_operators() {
  const auto all = cases_by_operator();
  fmt::print(
      "| operator | kind | CPU | CUDA | types | cases | gradient | evaluated at import |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  constexpr OpKind kOps[] = {
#define ZP_OP(name) OpKind::name,
#include "graph/ops/ops.def"
#undef ZP_OP
  };
  for (const OpKind op : kOps) {
    const OpDef& def = op_def(op);
    const auto found = all.find(op);
    const bool kernel = op_class(op) == OpClass::kernel;  // of CUDA too: kernels/cuda/table.cc does not link without it
    std::vector<std::string_view> types;
    if (kernel)
      for (const DType dtype : found == all.end() ? types_of_own_tests(op) : found->second.types) types.push_back(dtype_name(dtype));
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} |\n", op_name(op), class_name(op_class(op)), cpu_kernel(op) ? "yes" : "",
               kernel ? "yes" : "", fmt::join(types, " "), kernel && found != all.end() ? std::to_string(found->second.count) : "",
               def.vjp ? "yes" : "", def.evaluate ? "yes" : "");
  }
}

}  // namespace zeroplan
