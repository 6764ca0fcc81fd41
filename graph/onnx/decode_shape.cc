// Reshapes, transposes, expansion, concatenation, gathers, and shape arithmetic.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/onnx/decode.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

// 0 copies the dimension of the operand unless allowzero is set; one -1 is what is left.
void reshape(DecodeContext& c) {
  Shape target = c.ints(1, "shape");
  const Shape& from = c.shape(0);
  const bool copy_zero = c.attr_int("allowzero", 0) == 0;
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && copy_zero) {
      if (i >= from.size())
        throw Error(fmt::format("shape {} copies axis {}, which {} does not have", to_string(target), i, to_string(from)));
      target[i] = from[i];
    }
    if (target[i] == -1 && open < 0)
      open = static_cast<int64_t>(i);
    else
      known = checked_mul(known, target[i]);
  }
  if (open >= 0) {
    if (known <= 0 || elements(from) % known != 0)
      throw Error(fmt::format("{} cannot be reshaped to {}", to_string(from), to_string(target)));
    target[open] = elements(from) / known;
  }
  c.out(0, c.build.reshape(c.in(0), target));
}

void flatten(DecodeContext& c) {
  const int64_t rank = c.rank(0);
  const int64_t axis = c.attr_int("axis", 1);
  const int64_t cut = axis < 0 ? axis + rank : axis;
  if (cut < 0 || cut > rank) throw Error(fmt::format("axis {} is outside {}", axis, to_string(c.shape(0))));
  const Shape& s = c.shape(0);
  c.out(0, c.build.reshape(c.in(0), {elements(Shape(s.begin(), s.begin() + cut)), elements(Shape(s.begin() + cut, s.end()))}));
}

void squeeze(DecodeContext& c) {
  const Shape& from = c.shape(0);
  std::vector<bool> drop(from.size(), false);
  if (c.has(1)) {
    for (int64_t axis : c.ints(1, "axes")) {
      const int64_t at = normalize_axis(axis, c.rank(0));
      if (from[at] != 1) throw Error(fmt::format("axis {} of {} is not 1", axis, to_string(from)));
      drop[at] = true;
    }
  } else {
    for (size_t i = 0; i < from.size(); ++i) drop[i] = from[i] == 1;
  }
  Shape target;
  for (size_t i = 0; i < from.size(); ++i)
    if (!drop[i]) target.push_back(from[i]);
  c.out(0, c.build.reshape(c.in(0), target));
}

void unsqueeze(DecodeContext& c) {
  const std::vector<int64_t> axes = c.ints(1, "axes");
  const int64_t rank = c.rank(0) + static_cast<int64_t>(axes.size());
  if (rank > kMaxRank) throw Error(fmt::format("its result has rank {}; at most {} is supported", rank, kMaxRank));
  Shape target(rank, -1);
  for (int64_t axis : axes) {
    int64_t& dim = target[normalize_axis(axis, rank)];
    if (dim == 1) throw Error(fmt::format("axis {} is named twice", axis));
    dim = 1;
  }
  size_t next = 0;
  for (int64_t& dim : target)
    if (dim < 0) dim = c.shape(0)[next++];
  c.out(0, c.build.reshape(c.in(0), target));
}

void transpose(DecodeContext& c) {
  std::vector<int64_t> permutation = c.attr_ints("perm");
  if (permutation.empty()) {
    permutation.resize(c.rank(0));
    std::iota(permutation.rbegin(), permutation.rend(), 0);
  }
  c.out(0, c.build.transpose(c.in(0), permutation));
}

void expand(DecodeContext& c) {
  const Shape target = broadcast_shapes(c.shape(0), c.ints(1, "shape"));
  c.out(0, c.build.broadcast(c.in(0), target));
}

void concat(DecodeContext& c) {
  std::vector<ValueId> parts;
  for (int i = 0; i < c.count(); ++i) parts.push_back(c.in(i));
  const int64_t axis = c.axis("axis", 0, c.rank(0));
  c.out(0, parts.size() == 1 ? parts[0] : c.build.add(OpKind::concat, parts, {{Attr::axis, axis}}));
}

void gather(DecodeContext& c) { c.out(0, c.build.add(OpKind::gather, {c.in(0), c.in(1)}, {{Attr::axis, c.axis("axis", 0, c.rank(0))}})); }

void shape(DecodeContext& c) {
  const Shape& s = c.shape(0);
  const auto rank = static_cast<int64_t>(s.size());
  const auto bound = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = bound(c.attr_int("start", 0)), end = std::max(start, bound(c.attr_int("end", rank)));
  c.out(0, c.build.ints({s.begin() + start, s.begin() + end}));
}

void size(DecodeContext& c) {
  HostTensor count(DType::i64, {});
  count.set_int(0, elements(c.shape(0)));
  c.out(0, c.build.constant(std::move(count)));
}

void range(DecodeContext& c) {
  for (int i = 0; i < 3; ++i) c.constant(i, "bounds");
  std::vector<ValueId> bounds;
  for (int i = 0; i < 3; ++i) bounds.push_back(c.build.reshape(c.in(i), {}));
  c.out(0, c.build.add(OpKind::range, bounds));
}

void constant_of_shape(DecodeContext& c) {
  const Shape target = c.ints(0, "shape");
  for (int64_t dim : target)
    if (dim < 0) throw Error(fmt::format("shape {} has a negative dimension", to_string(target)));
  elements(target);
  const OnnxAttribute* value = c.node.find("value");
  DType dtype = c.precision;
  double filled = 0;
  if (value) {
    const HostTensor tensor = load_tensor(value->tensor, c.files, c.precision);
    if (tensor.count() != 1) throw Error("its value must have one element");
    dtype = tensor.dtype();
    filled = tensor.get(0);
  }
  const std::string name(dtype_name(dtype));
  c.out(0, c.build.add(OpKind::fill, {}, {{Attr::value, filled}, {Attr::shape, target}, {Attr::dtype, name}}));
}

void trilu(DecodeContext& c) {
  std::vector<ValueId> inputs = {c.in(0)};
  if (c.has(1)) inputs.push_back(c.in(1));
  c.out(0, c.build.add(OpKind::trilu, inputs, {{Attr::upper, c.attr_int("upper", 1)}}));
}

// As concatenations, one per repeated axis.
void tile(DecodeContext& c) {
  const std::vector<int64_t> repeats = c.ints(1, "repeats");
  const Shape from = c.shape(0);
  if (repeats.size() != from.size()) throw Error("its repeats do not have one entry per axis");
  ValueId x = c.in(0);
  for (size_t axis = 0; axis < from.size(); ++axis) {
    if (repeats[axis] < 0) throw Error("a repeat is negative");
    if (repeats[axis] == 1) continue;
    if (repeats[axis] == 0 || repeats[axis] > 4096) throw Error(fmt::format("{} repeats of one axis are not supported", repeats[axis]));
    x = c.build.add(OpKind::concat, std::vector<ValueId>(repeats[axis], x), {{Attr::axis, static_cast<int64_t>(axis)}});
  }
  c.out(0, x);
}

}  // namespace

void add_shape_decoders(DecoderTable& t) {
  t["Reshape"] = reshape;
  t["Flatten"] = flatten;
  t["Squeeze"] = squeeze;
  t["Unsqueeze"] = unsqueeze;
  t["Transpose"] = transpose;
  t["Expand"] = expand;
  t["Concat"] = concat;
  t["Gather"] = gather;
  t["Shape"] = shape;
  t["Size"] = size;
  t["Range"] = range;
  t["ConstantOfShape"] = constant_of_shape;
  t["Trilu"] = trilu;
  t["Tile"] = tile;
}

}  // namespace zeroplan
