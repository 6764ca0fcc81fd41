// scatter: data [B…, R, inner…], indices [B…, M], updates [B…, M, inner…] → y: data with the rows of updates written, added, multiplied or
// taken as maximum or minimum (`reduction`), in the order of the indices. An index below 0 counts from the end.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/type_name.h"
#include "graph/ops/cuda_index_sort_sizes.h"
#include "graph/ops/definitions.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"

namespace zeroplan {

namespace {

const std::string& reduction_of(const Node& node) { return node.attributes.get_string(Attr::reduction); }

void check_reduction(const Node& node, DType dtype) {
  const std::string& name = reduction_of(node);
  if (name == "none") return;
  if (name != "add" && name != "mul" && name != "max" && name != "min")
    throw Error(fmt::format("reduction '{}' is unknown; none, add, mul, max and min exist", name));
  if (!is_floating(dtype) && !is_integer(dtype))
    throw Error(fmt::format("reduction '{}' does not work on {}: insert a cast", name, type_name(dtype)));
}

std::vector<OutputType> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 3, 3);
  const Value& data = operand(graph, node, 0, "data");
  const Value& indices = integer_operand(graph, node, 1, "indices");
  const Value& updates = operand(graph, node, 2, "updates");
  expect_dtype(updates, data.dtype, "updates");
  check_reduction(node, data.dtype);
  expect_rank(indices, 1, static_cast<int>(data.shape.size()), "indices");
  const size_t axis = indices.shape.size() - 1;
  Shape rows = data.shape;
  rows[axis] = indices.shape[axis];
  expect_shape(indices, Shape(rows.begin(), rows.begin() + static_cast<int64_t>(axis) + 1), "indices");
  expect_shape(updates, rows, "updates");
  return {{data.dtype, data.shape}};
}

template <typename T>
T reduced(const std::string& reduction, T old, T update) {
  if (reduction == "none") return update;
  if constexpr (std::is_integral_v<T>) {
    const auto a = static_cast<uint64_t>(old), b = static_cast<uint64_t>(update);
    if (reduction == "add") return static_cast<T>(a + b);
    if (reduction == "mul") return static_cast<T>(a * b);
  } else {
    if (reduction == "add") return old + update;
    if (reduction == "mul") return old * update;
    if (std::isnan(old)) return old;
    if (std::isnan(update)) return update;
  }
  return reduction == "max" ? std::max(old, update) : std::min(old, update);
}

// Calls fn(element of data, element of updates) in the order of the indices.
template <typename Fn>
void for_each_update(const Shape& data, const HostTensor& indices, const HostTensor& updates, Fn fn) {
  const size_t axis = indices.shape().size() - 1;
  const int64_t rows = data[axis], count = indices.shape()[axis];
  const int64_t inner = indices.count() == 0 ? 0 : updates.count() / indices.count();
  for (int64_t n = 0; n < indices.count(); ++n) {
    const int64_t given = indices.get_int(n), row = given < 0 ? given + rows : given;
    if (row < 0 || row >= rows) throw Error(fmt::format("index {} is outside the {} rows of the data", given, rows));
    for (int64_t i = 0; i < inner; ++i) fn((n / count * rows + row) * inner + i, n * inner + i);
  }
}

void evaluate(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const std::string& reduction = reduction_of(node);
  out[0] = in[0];
  if (reduction == "none")
    return for_each_update(in[0].shape(), in[1], in[2], [&](int64_t to, int64_t from) { copy_element(in[2], from, out[0], to); });
  if (is_integer(in[0].dtype()))
    return for_each_update(in[0].shape(), in[1], in[2], [&](int64_t to, int64_t from) {
      out[0].set_int(to, reduced(reduction, out[0].get_int(to), in[2].get_int(from)));
    });
  std::vector<double> values(in[0].count());
  for (int64_t i = 0; i < in[0].count(); ++i) values[i] = in[0].get(i);
  for_each_update(in[0].shape(), in[1], in[2],
                  [&](int64_t to, int64_t from) { values[to] = reduced(reduction, values[to], in[2].get(from)); });
  for (int64_t i = 0; i < out[0].count(); ++i) out[0].set(i, values[i]);
}

// The parts that the vjps are put together from.
struct ScatterVjp {
  VjpContext& c;
  const ValueId data = c.input(0), indices = c.input(1), updates = c.input(2), dy = c.output_gradient();
  const DType dtype = c.build.dtype(dy);
  const Shape shape = c.build.shape(updates);

  ValueId op(OpKind kind, std::vector<ValueId> inputs, Attributes attributes = {}) {
    return c.build.add(kind, std::move(inputs), std::move(attributes));
  }
  ValueId scalar(double value, DType type) { return c.build.scalar(value, type); }
  ValueId number(ValueId condition) { return op(OpKind::cast, {condition}, {{Attr::dtype, dtype_value(dtype)}}); }
  ValueId scatter(ValueId into, ValueId rows, const char* reduction) {
    return op(OpKind::scatter, {into, indices, rows}, {{Attr::reduction, std::string(reduction)}});
  }
  // Rows of a value of the data's shape, as the updates lie.
  ValueId picked(ValueId x) {
    const int64_t axis = static_cast<int64_t>(c.build.shape(indices).size()) - 1;
    Attributes attributes = {{Attr::axis, axis}};
    std::vector<int64_t> shared;
    for (int64_t i = 0; i < axis; ++i) shared.push_back(i);
    if (axis > 0) attributes.set(Attr::axes, shared);
    return op(OpKind::gather, {x, indices}, attributes);
  }
  ValueId zeros(const Shape& of, DType type) { return c.build.filled(0, of, type); }
};

// 1 for each row of updates that is the last one written to its place, else 0; shaped [B…, M, 1…].
ValueId last_writes(ScatterVjp& v) {
  const Shape from = v.c.build.shape(v.indices);
  HostTensor numbers(DType::i64, from);
  for (int64_t i = 0; i < numbers.count(); ++i) numbers.set_int(i, i);
  const ValueId order = v.c.build.constant(std::move(numbers));
  Shape rows = from;
  rows.back() = v.c.build.shape(v.data)[from.size() - 1];
  const ValueId last = v.picked(v.scatter(v.zeros(rows, DType::i64), order, "none"));
  Shape kept = v.shape;
  std::fill(kept.begin() + static_cast<int64_t>(from.size()), kept.end(), 1);
  return v.c.build.reshape(v.number(v.op(OpKind::equal, {last, order})), kept);
}

void write_vjp(ScatterVjp& v) {
  if (v.c.needs(0)) v.c.set(0, v.scatter(v.dy, v.zeros(v.shape, v.dtype), "none"));
  if (v.c.needs(2)) v.c.set(2, v.op(OpKind::mul, {v.picked(v.dy), last_writes(v)}));
}

void add_vjp(ScatterVjp& v) {
  v.c.set(0, v.dy);
  if (v.c.needs(2)) v.c.set(2, v.picked(v.dy));
}

// d updates = dy · the product of all other factors of the place, right also where some of them are zero.
void multiply_vjp(ScatterVjp& v) {
  if (v.c.needs(0)) v.c.set(0, v.scatter(v.dy, v.updates, "mul"));
  if (!v.c.needs(2)) return;
  const ValueId zero = v.scalar(0, v.dtype), one = v.scalar(1, v.dtype);
  const ValueId zero_data = v.op(OpKind::equal, {v.data, zero}), zero_update = v.op(OpKind::equal, {v.updates, zero});
  const ValueId rest = v.op(OpKind::where, {zero_update, one, v.updates});
  const ValueId product = v.picked(v.scatter(v.op(OpKind::where, {zero_data, one, v.data}), rest, "mul"));
  const ValueId zeros = v.picked(v.scatter(v.number(zero_data), v.number(zero_update), "add"));
  const ValueId others = v.op(OpKind::sub, {zeros, v.number(zero_update)});
  const ValueId slope = v.op(OpKind::where, {v.op(OpKind::equal, {others, zero}), v.op(OpKind::div, {product, rest}), zero});
  v.c.set(2, v.op(OpKind::mul, {v.picked(v.dy), slope}));
}

// Equal extremes share the gradient evenly.
void extreme_vjp(ScatterVjp& v) {
  const ValueId y = v.c.output(0);
  const ValueId data_hit = v.number(v.op(OpKind::equal, {v.data, y}));
  const ValueId update_hit = v.number(v.op(OpKind::equal, {v.updates, v.picked(y)}));
  const ValueId share = v.op(OpKind::div, {v.dy, v.scatter(data_hit, update_hit, "add")});
  if (v.c.needs(0)) v.c.set(0, v.op(OpKind::mul, {data_hit, share}));
  if (v.c.needs(2)) v.c.set(2, v.op(OpKind::mul, {update_hit, v.picked(share)}));
}

void vjp(VjpContext& c) {
  ScatterVjp v{c};
  const std::string& reduction = reduction_of(c.node);
  if (reduction == "none") return write_vjp(v);
  if (reduction == "add") return add_vjp(v);
  if (reduction == "mul") return multiply_vjp(v);
  extreme_vjp(v);
}

int64_t cuda_workspace(const Graph& graph, const Node& node) {
  const Shape &data = graph.values[node.inputs[0]].shape, &indices = graph.values[node.inputs[1]].shape;
  int64_t rows = 1;
  for (size_t i = 0; i < indices.size(); ++i) rows *= data[i];
  return cuda_index_sort_workspace({elements(indices), rows});
}

}  // namespace

OpDef scatter_def() {
  OpDef def;
  def.infer = infer;
  def.vjp = vjp;
  def.evaluate = evaluate;
  def.cuda_workspace = cuda_workspace;
  def.in_place = {{0, 0}};
  return def;
}

}  // namespace zeroplan
