// Pad in all modes, CenterCropPad.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "base/extent.h"
#include "graph/onnx/decode.h"
#include "graph/onnx/take.h"

namespace zeroplan {
namespace {

// What is put in front of and behind each axis; below 0: cut off.
struct Padding {
  std::vector<int64_t> before, behind;
};

std::vector<int64_t> axes_or_all(const std::vector<int64_t>& given, int64_t rank) {
  std::vector<int64_t> axes = given;
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes) axis = normalize_axis(axis, rank);
  return axes;
}

Padding padding_of(const DecodeContext& c) {
  const std::vector<int64_t> axes = axes_or_all(c.has(3) ? c.ints(3, "axes") : std::vector<int64_t>{}, c.rank(0));
  const std::vector<int64_t> pads = c.ints(1, "pads");
  if (pads.size() != 2 * axes.size()) throw Error(fmt::format("{} pads for {} axes", pads.size(), axes.size()));
  const std::vector<int64_t> none(c.rank(0), 0);
  Padding p{none, none};
  for (const int64_t pad : pads)
    if (pad < -kMaxExtent || pad > kMaxExtent) throw Error(fmt::format("a padding of {} is not supported", pad));
  for (size_t i = 0; i < axes.size(); ++i) {
    p.before[axes[i]] = pads[i];
    p.behind[axes[i]] = pads[axes.size() + i];
  }
  return p;
}

// Does what is cut off, and leaves the rest of the padding in `p`.
Term crop(Term x, Padding& p) {
  Shape shape = x.shape();
  std::vector<int64_t> starts(shape.size(), 0);
  for (size_t i = 0; i < shape.size(); ++i) {
    starts[i] = std::max<int64_t>(0, -p.before[i]);
    shape[i] += std::min<int64_t>(0, p.before[i]) + std::min<int64_t>(0, p.behind[i]);
    if (shape[i] < 0) throw Error(fmt::format("more is cut off than axis {} of {} has", i, to_string(x.shape())));
    if (shape[i] == 0) starts[i] = 0;
    p.before[i] = std::max<int64_t>(0, p.before[i]);
    p.behind[i] = std::max<int64_t>(0, p.behind[i]);
  }
  return shape == x.shape() ? x : slice(x, starts, std::vector<int64_t>(shape.size(), 1), shape);
}

bool pads_nothing(const Padding& p) {
  const auto zero = [](int64_t n) { return n == 0; };
  return std::all_of(p.before.begin(), p.before.end(), zero) && std::all_of(p.behind.begin(), p.behind.end(), zero);
}

Term pad_zeros(Term x, const Padding& p) {
  if (pads_nothing(p)) return x;
  Shape to = x.shape();
  for (size_t i = 0; i < to.size(); ++i) to[i] += p.before[i] + p.behind[i];
  return apply(OpKind::slice_grad, x, {{Attr::shape, to}, {Attr::starts, p.before}, {Attr::steps, std::vector<int64_t>(to.size(), 1)}});
}

// One axis after the other, between blocks of the value.
Term pad_value(Term x, const Padding& p, Term value) {
  const auto rank = static_cast<int64_t>(p.before.size());
  for (int64_t axis = 0; axis < rank; ++axis) {
    const auto block = [&](int64_t size) {
      Shape shape = x.shape();
      shape[axis] = size;
      return value.broadcast(shape);
    };
    std::vector<Term> parts;
    if (p.before[axis] > 0) parts.push_back(block(p.before[axis]));
    parts.push_back(x);
    if (p.behind[axis] > 0) parts.push_back(block(p.behind[axis]));
    x = concat(parts, axis);
  }
  return x;
}

int64_t positive_modulo(int64_t a, int64_t b) { return (a % b + b) % b; }

// The place in an axis of `size` that stands for place `at` outside it.
int64_t mirrored(const std::string& mode, int64_t at, int64_t size) {
  if (mode == "edge") return std::clamp<int64_t>(at, 0, size - 1);
  if (mode == "wrap") return positive_modulo(at, size);
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1), place = positive_modulo(at, period);
  return place < size ? place : period - place;
}

Term pad_by_places(Term x, const Padding& p, const std::string& mode) {
  for (size_t axis = 0; axis < p.before.size(); ++axis) {
    const int64_t size = x.shape()[axis];
    if (p.before[axis] == 0 && p.behind[axis] == 0) continue;
    if (size == 0) throw Error(fmt::format("axis {} of {} has nothing to repeat", axis, to_string(x.shape())));
    std::vector<int64_t> places = x.build().list(p.before[axis] + size + p.behind[axis]);
    for (size_t i = 0; i < places.size(); ++i) places[i] = mirrored(mode, static_cast<int64_t>(i) - p.before[axis], size);
    x = take(x, static_cast<int64_t>(axis), places);
  }
  return x;
}

void pad(DecodeContext& c) {
  const std::string mode = c.attr_string("mode", "constant");
  Padding p = padding_of(c);
  const Term x = crop(term(c, 0), p);
  if (mode == "reflect" || mode == "edge" || mode == "wrap") return result(c, pad_by_places(x, p, mode));
  if (mode != "constant") throw Error(fmt::format("mode '{}' is unknown", mode));
  const bool zero = !c.has(2) || (c.build.is_constant(c.in(2)) && c.number(2, "value") == 0);
  result(c, zero ? pad_zeros(x, p) : pad_value(x, p, term(c, 2).cast(x.dtype()).reshape({})));
}

// Even amounts on both sides; an odd one is cut at the end, or put there.
void center_crop_pad(DecodeContext& c) {
  const std::vector<int64_t> wanted = c.ints(1, "shape"), axes = axes_or_all(c.attr_ints("axes"), c.rank(0));
  if (wanted.size() != axes.size()) throw Error(fmt::format("shape {} has not one entry for each axis", to_string(wanted)));
  const std::vector<int64_t> none(c.rank(0), 0);
  Padding p{none, none};
  extent(wanted);  // throws
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t more = wanted[i] - c.shape(0)[axes[i]], size = std::abs(more);
    p.before[axes[i]] = more < 0 ? -(size / 2) : size / 2;
    p.behind[axes[i]] = more - p.before[axes[i]];
  }
  const Term x = crop(term(c, 0), p);
  result(c, pad_zeros(x, p));
}

}  // namespace

void add_pad_decoders(DecoderTable& t) {
  t["Pad"] = {pad, gradient_to({0, 2}).with_setting({2}, "what an axis is padded with")};
  t["CenterCropPad"] = {center_crop_pad, gradient_to({0})};
}

}  // namespace zeroplan
