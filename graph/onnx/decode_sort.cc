// TopK; NonZero and Unique, whose results have as many elements as the contents say and therefore take constants alone.
#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/terms.h"

namespace zeroplan {
namespace {

void top_k(DecodeContext& c) {
  const std::vector<int64_t> k = c.ints(1, "K");
  if (k.size() != 1) throw Error("its K is not one number");
  const std::vector<ValueId> both = c.build.add_multi(
      OpKind::top_k, {c.in(0)}, {{Attr::axis, c.axis("axis", -1, c.rank(0))}, {Attr::k, k[0]}, {Attr::largest, c.attr_int("largest", 1)}});
  c.out(0, both[0]);
  c.out(1, both[1]);
}

void non_zero(DecodeContext& c) {
  const HostTensor x = c.constant(0, "operand");
  const Strides strides = contiguous_strides(x.shape());
  std::vector<int64_t> found;
  for (int64_t i = 0; i < x.count(); ++i)
    if (x.get(i) != 0) found.push_back(i);
  const auto rank = static_cast<int64_t>(strides.size()), count = static_cast<int64_t>(found.size());
  HostTensor y(DType::i64, {rank, count});
  for (int64_t axis = 0; axis < rank; ++axis)
    for (int64_t i = 0; i < count; ++i) y.set_int(axis * count + i, found[i] / strides[axis] % x.shape()[axis]);
  c.out(0, c.build.constant(std::move(y)));
}

// x as [items, outer · inner elements each]: item i is what lies at place i of the axis.
struct Items {
  const HostTensor& x;
  int64_t count, outer, inner;

  int64_t size() const { return outer * inner; }
  bool less(int64_t i, int64_t j) const {
    if (is_floating(x.dtype())) return x.get(i) < x.get(j);
    if (x.dtype() == DType::u64) return static_cast<uint64_t>(x.get_int(i)) < static_cast<uint64_t>(x.get_int(j));
    return x.get_int(i) < x.get_int(j);
  }
  int64_t element(int64_t item, int64_t k) const { return (k / inner * count + item) * inner + k % inner; }
  int compare(int64_t a, int64_t b) const {
    for (int64_t k = 0; k < size(); ++k) {
      const int64_t i = element(a, k), j = element(b, k);
      const bool smaller = less(i, j);
      if (smaller || less(j, i)) return smaller ? -1 : 1;
    }
    return 0;
  }
};

struct UniqueItems {
  std::vector<int64_t> first, inverse, counts;
};

UniqueItems find_unique(const Items& items, bool sorted) {
  std::vector<int64_t> order(items.count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return items.compare(a, b) < 0; });
  std::vector<int64_t> first, group(items.count);
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || items.compare(order[i - 1], order[i]) != 0) first.push_back(order[i]);
    group[order[i]] = static_cast<int64_t>(first.size()) - 1;
  }
  std::vector<int64_t> rank(first.size());  // groups in the order asked for
  std::iota(rank.begin(), rank.end(), 0);
  if (!sorted) std::sort(rank.begin(), rank.end(), [&](int64_t a, int64_t b) { return first[a] < first[b]; });
  UniqueItems out{{}, std::vector<int64_t>(items.count), std::vector<int64_t>(first.size(), 0)};
  std::vector<int64_t> place(first.size());
  for (size_t i = 0; i < rank.size(); ++i) {
    place[rank[i]] = static_cast<int64_t>(i);
    out.first.push_back(first[rank[i]]);
  }
  for (int64_t i = 0; i < items.count; ++i) {
    out.inverse[i] = place[group[i]];
    ++out.counts[out.inverse[i]];
  }
  return out;
}

void unique(DecodeContext& c) {
  HostTensor x = c.constant(0, "operand");
  const bool flat = c.node.find("axis") == nullptr;
  if (flat) x = x.reshaped({x.count()});
  const int64_t axis = flat ? 0 : c.axis("axis", 0, c.rank(0));
  const Shape& shape = x.shape();
  const Items items{x, shape[axis], elements(Shape(shape.begin(), shape.begin() + axis)),
                    elements(Shape(shape.begin() + axis + 1, shape.end()))};
  c.build.list(items.count);  // throws: an axis may be long where another one is empty
  const UniqueItems found = find_unique(items, c.attr_int("sorted", 1) != 0);
  c.out(0, c.build.add(OpKind::gather, {c.build.constant(x), c.build.ints(found.first)}, {{Attr::axis, axis}}));
  c.out(1, c.build.ints(found.first));
  c.out(2, c.build.ints(found.inverse));
  c.out(3, c.build.ints(found.counts));
}

}  // namespace

void add_sort_decoders(DecoderTable& t) {
  t["TopK"] = top_k;
  t["NonZero"] = non_zero;
  t["Unique"] = unique;
}

}  // namespace zeroplan
