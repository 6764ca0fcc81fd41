#include <array>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/extent.h"
#include "graph/ops/definitions.h"
#include "graph/ops/halves.h"

namespace zeroplan {

namespace {

constexpr std::string_view kNames[] = {
#define ZP_OP(name) #name,
#include "graph/ops/ops.def"
#undef ZP_OP
};

constexpr OpClass kClasses[] = {
#define ZP_KERNEL_OP(name) OpClass::kernel,
#define ZP_VIEW_OP(name) OpClass::view,
#define ZP_FOLD_OP(name) OpClass::fold,
#define ZP_COMM_OP(name) OpClass::comm,
#define ZP_HOST_OP(name) OpClass::host,
#include "graph/ops/ops.def"
};

std::vector<OpDef> make_table() {
  std::vector<OpDef> table = {
#define ZP_OP(name) name##_def(),
#include "graph/ops/ops.def"
#undef ZP_OP
  };
  for (size_t i = 0; i < table.size(); ++i) table[i].kind = static_cast<OpKind>(i);
  return table;
}

}  // namespace

const OpDef& op_def(OpKind kind) {
  static const std::vector<OpDef> table = make_table();
  return table.at(static_cast<size_t>(kind));
}

std::string_view op_name(OpKind kind) { return kNames[static_cast<size_t>(kind)]; }

OpKind parse_op(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<OpKind>(i);
  throw Error(fmt::format("unknown operator '{}'", name));
}

OpClass op_class(OpKind kind) { return kClasses[static_cast<size_t>(kind)]; }

int64_t workspace_bytes(const Graph& graph, const Node& node, DeviceKind device, int threads) {
  const OpDef& def = op_def(node.op);
  if (device == DeviceKind::cuda) return def.cuda_workspace ? def.cuda_workspace(graph, node) : 0;
  int64_t bytes = def.workspace ? def.workspace(graph, node, threads) : 0;
  if (reads_halves(node.op)) return bytes;
  for (const auto* values : {&node.inputs, &node.outputs})
    for (const ValueId id : *values)
      if (id != kNone && is_half(graph.value(id).dtype)) bytes = checked_add(bytes, widened_bytes(elements(graph.value(id).shape)));
  return bytes;
}

std::vector<OutputType> infer_node(const Graph& graph, const Node& node) {
  try {
    std::vector<OutputType> types = op_def(node.op).infer(graph, node);
    for (const OutputType& type : types) extent(type.shape);  // throws
    return types;
  } catch (const Error& error) {
    ErrorContext context;
    context.op = std::string(op_name(node.op));
    context.node = node.origin;
    throw error.within(context);
  }
}

Attributes::Value dtype_value(DType dtype) { return std::string(dtype_name(dtype)); }

Attributes fill_attributes(double value, const Shape& shape, DType dtype) {
  return {{Attr::value, value}, {Attr::shape, shape}, {Attr::dtype, dtype_value(dtype)}};
}

DType dtype_attribute(const Attributes& attributes) { return parse_dtype(attributes.get_string(Attr::dtype)); }

}  // namespace zeroplan
