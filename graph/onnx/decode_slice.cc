// Slice and Split.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/decode.h"

namespace zeroplan {
namespace {

struct Cut {
  std::vector<int64_t> starts, steps;
  Shape shape;
};

Cut whole(const Shape& shape) { return {std::vector<int64_t>(shape.size(), 0), std::vector<int64_t>(shape.size(), 1), shape}; }

ValueId apply(DecodeContext& c, ValueId x, const Cut& cut) {
  const bool nothing = cut.shape == c.build.shape(x) && std::all_of(cut.steps.begin(), cut.steps.end(), [](int64_t s) { return s == 1; });
  return nothing ? x : c.build.add(OpKind::slice, {x}, {{Attr::starts, cut.starts}, {Attr::steps, cut.steps}, {Attr::shape, cut.shape}});
}

// Bounds are clamped as the operator's text says; INT64_MAX and INT64_MIN stand for "to the end".
void cut_axis(Cut& cut, int64_t axis, int64_t start, int64_t end, int64_t step) {
  const int64_t dim = cut.shape[axis];
  if (step == 0) throw Error("a step is 0");
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
  const auto place = [&](int64_t at) { return at < -dim ? low : std::clamp<int64_t>(at < 0 ? at + dim : at, low, high); };
  const int64_t first = place(start), last = place(end);
  const int64_t span = step > 0 ? last - first : first - last;
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const int64_t count = span <= 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(span) - 1) / stride + 1);
  cut.starts[axis] = count == 0 ? 0 : first;
  cut.steps[axis] = count <= 1 ? 1 : step;
  cut.shape[axis] = count;
}

void slice(DecodeContext& c) {
  const std::vector<int64_t> starts = c.ints(1, "starts"), ends = c.ints(2, "ends");
  const std::vector<int64_t> steps = c.has(4) ? c.ints(4, "steps") : std::vector<int64_t>(starts.size(), 1);
  std::vector<int64_t> axes;
  if (c.has(3))
    axes = c.ints(3, "axes");
  else
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    throw Error("starts, ends, axes and steps differ in length");
  Cut cut = whole(c.shape(0));
  std::vector<bool> seen(cut.shape.size(), false);
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = normalize_axis(axes[i], c.rank(0));
    if (seen[axis]) throw Error(fmt::format("axis {} is cut twice", axes[i]));
    seen[axis] = true;
    cut_axis(cut, axis, starts[i], ends[i], steps[i]);
  }
  c.out(0, apply(c, c.in(0), cut));
}

// Sizes from the second input, else equal parts of which the last may be smaller.
std::vector<int64_t> split_sizes(const DecodeContext& c, int64_t dim) {
  if (c.has(1)) return c.ints(1, "split");
  const auto outputs = static_cast<int64_t>(c.node.outputs.size());
  const int64_t parts = c.attr_int("num_outputs", outputs);
  if (parts != outputs || parts <= 0) throw Error(fmt::format("num_outputs is {}, but it has {} outputs", parts, outputs));
  const int64_t size = (dim + parts - 1) / parts;
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<int64_t>(dim - i * size, 0, size));
  return sizes;
}

void split(DecodeContext& c) {
  const int64_t axis = c.axis("axis", 0, c.rank(0));
  const Shape from = c.shape(0);
  const std::vector<int64_t> sizes = split_sizes(c, from[axis]);
  if (sizes.size() != c.node.outputs.size()) throw Error(fmt::format("{} parts for {} outputs", sizes.size(), c.node.outputs.size()));
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || sizes[i] > from[axis] - start)
      throw Error(fmt::format("the parts do not add up to axis {} of {}", axis, to_string(from)));
    Cut cut = whole(from);
    cut.starts[axis] = start;
    cut.shape[axis] = sizes[i];
    start += sizes[i];
    if (c.wants(static_cast<int>(i))) c.out(static_cast<int>(i), apply(c, c.in(0), cut));
  }
  if (start != from[axis]) throw Error(fmt::format("the parts do not add up to axis {} of {}", axis, to_string(from)));
}

}  // namespace

void add_slice_decoders(DecoderTable& t) {
  t["Slice"] = {slice, moves_input()};
  t["Split"] = {split, gradient_to({0})};
}

}  // namespace zeroplan
