// Reshapes, transposes, expansion, concatenation, gathers, and shape arithmetic.
#include <algorithm>
#include <cmath>
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
  const OnnxAttribute* value = c.node.find("value");
  const HostTensor filled = value ? load_tensor(value->tensor, c.files, c.precision) : HostTensor(c.precision, {});
  if (filled.count() != 1) throw Error("its value must have one element");
  constexpr double kExact = 0x1p53;  // the attribute is a double
  if (!is_floating(filled.dtype()) && std::abs(filled.get(0)) > kExact)
    return c.out(0, c.build.broadcast(c.build.constant(filled.reshaped({})), target));
  c.out(0, c.build.filled(filled.get(0), target, filled.dtype()));
}

// On data: a mask of the triangle, itself the operator on a matrix of ones.
void trilu(DecodeContext& c) {
  const ValueId x = c.in(0);
  if (c.rank(0) < 2) throw Error("its input needs rank 2 or more");
  const auto triangle = [&](ValueId of) {
    std::vector<ValueId> inputs = {of};
    if (c.has(1)) inputs.push_back(c.build.constant(c.constant(1, "k")));
    return c.build.add(OpKind::trilu, inputs, {{Attr::upper, c.attr_int("upper", 1)}});
  };
  if (c.build.is_constant(x)) return c.out(0, triangle(x));
  HostTensor ones = c.build.table(DType::boolean, {c.shape(0)[c.rank(0) - 2], c.shape(0).back()});
  for (int64_t i = 0; i < ones.count(); ++i) ones.set_int(i, 1);
  c.out(0, c.build.add(OpKind::where, {triangle(c.build.constant(std::move(ones))), x, c.build.scalar(0, c.build.dtype(x))}));
}

void eye_like(DecodeContext& c) {
  if (c.rank(0) != 2) throw Error("its input must have rank 2");
  const int64_t rows = c.shape(0)[0], columns = c.shape(0)[1], k = c.attr_int("k", 0);
  const int type = c.attr_type("dtype", 0);
  const DType dtype = type == 0 ? c.build.dtype(c.in(0)) : c.dtype_of(type, "its result is");
  HostTensor y = c.build.table(dtype, {rows, columns});
  const int64_t diagonal = std::clamp(k, -rows, columns);  // those at the ends are empty
  for (int64_t row = std::max<int64_t>(0, -diagonal); row < rows && row + diagonal < columns; ++row)
    y.set(row * columns + row + diagonal, 1);
  c.out(0, c.build.constant(std::move(y)));
}

// A new axis in front of each repeated one.
void tile(DecodeContext& c) {
  const std::vector<int64_t> repeats = c.ints(1, "repeats");
  Shape shape = c.shape(0);
  if (repeats.size() != shape.size()) throw Error("its repeats do not have one entry per axis");
  ValueId x = c.in(0);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (repeats[axis] < 0) throw Error("a repeat is negative");
    if (repeats[axis] == 1) continue;
    const int64_t outer = elements(Shape(shape.begin(), shape.begin() + static_cast<int64_t>(axis)));
    const int64_t inner = elements(Shape(shape.begin() + static_cast<int64_t>(axis), shape.end()));
    x = c.build.broadcast(c.build.reshape(x, {outer, 1, inner}), {outer, repeats[axis], inner});
    shape[axis] *= repeats[axis];
    x = c.build.reshape(x, shape);
  }
  c.out(0, x);
}

// Blocks of pixels to channels or back: the channels are cut into three parts, of which two are the block.
struct Blocks {
  int64_t batch, channels, height, width, size;

  explicit Blocks(const DecodeContext& c) : size(c.attr_int("blocksize", 0)) {
    constexpr int64_t kLargest = 65536;
    if (c.rank(0) != 4 || size < 1 || size > kLargest)
      throw Error(fmt::format("it needs an input of rank 4 and a blocksize from 1 to {}", kLargest));
    batch = c.shape(0)[0], channels = c.shape(0)[1], height = c.shape(0)[2], width = c.shape(0)[3];
  }
};

void depth_to_space(DecodeContext& c) {
  const Blocks b(c);
  const std::string mode = c.attr_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") throw Error(fmt::format("mode '{}' is unknown", mode));
  if (b.channels % (b.size * b.size) != 0) throw Error(fmt::format("{} channels are not whole blocks of {}", b.channels, b.size));
  const int64_t depth = b.channels / (b.size * b.size);
  const bool block_first = mode == "DCR";
  const Shape apart =
      block_first ? Shape{b.batch, b.size, b.size, depth, b.height, b.width} : Shape{b.batch, depth, b.size, b.size, b.height, b.width};
  const ValueId pixels =
      c.build.transpose(c.build.reshape(c.in(0), apart), block_first ? Shape{0, 3, 4, 1, 5, 2} : Shape{0, 1, 4, 2, 5, 3});
  c.out(0, c.build.reshape(pixels, {b.batch, depth, b.height * b.size, b.width * b.size}));
}

void space_to_depth(DecodeContext& c) {
  const Blocks b(c);
  if (b.height % b.size != 0 || b.width % b.size != 0)
    throw Error(fmt::format("{} by {} pixels are not whole blocks of {}", b.height, b.width, b.size));
  const int64_t rows = b.height / b.size, columns = b.width / b.size;
  const ValueId apart = c.build.reshape(c.in(0), {b.batch, b.channels, rows, b.size, columns, b.size});
  c.out(0, c.build.reshape(c.build.transpose(apart, {0, 3, 5, 1, 2, 4}), {b.batch, b.channels * b.size * b.size, rows, columns}));
}

}  // namespace

void add_shape_decoders(DecoderTable& t) {
  t["Reshape"] = {reshape, moves_input()};
  t["Flatten"] = {flatten, moves_input()};
  t["Squeeze"] = {squeeze, moves_input()};
  t["Unsqueeze"] = {unsqueeze, moves_input()};
  t["Transpose"] = {transpose, moves_input()};
  t["Expand"] = {expand, moves_input()};
  t["Concat"] = concat;
  t["Gather"] = {gather, gradient_to({0})};
  t["Shape"] = {shape, no_gradient()};
  t["Size"] = {size, no_gradient()};
  t["Range"] = {range, no_gradient()};
  t["ConstantOfShape"] = {constant_of_shape, no_gradient()};
  t["Trilu"] = {trilu, gradient_to({0})};
  t["EyeLike"] = {eye_like, no_gradient()};
  t["Tile"] = {tile, gradient_to({0})};
  t["DepthToSpace"] = depth_to_space;
  t["SpaceToDepth"] = space_to_depth;
}

}  // namespace zeroplan
