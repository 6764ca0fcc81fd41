#include "graph/onnx/decode_windows.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {
namespace {

constexpr int64_t kLargest = int64_t{1} << 31;

// Results along an axis of `in` elements with padding; in ceil mode also a last window that starts inside but reaches out.
int64_t results(int64_t in, int64_t before, int64_t after, int64_t extent, int64_t stride, bool ceil) {
  const int64_t room = in + before + after - extent;
  if (room < 0)
    throw Error(fmt::format("a window of {} elements does not fit an axis of {} with padding {} and {}", extent, in, before, after));
  if (!ceil) return room / stride + 1;
  const int64_t most = (room + stride - 1) / stride + 1;
  return (most - 1) * stride >= in + before ? most - 1 : most;
}

// SAME: as many results as strides fit, and padding that makes room for them.
void pad_same(SlidingWindows& w, const Shape& x, bool more_behind) {
  const size_t count = w.kernel.size();
  for (size_t i = 0; i < count; ++i) {
    const int64_t in = x[2 + i], out = (in + w.strides[i] - 1) / w.strides[i];
    const int64_t total = std::max<int64_t>(0, (out - 1) * w.strides[i] + w.extent(i) - in);
    w.pads[i] = more_behind ? total / 2 : total - total / 2;
    w.pads[count + i] = total - w.pads[i];
    w.out.push_back(out);
  }
}

}  // namespace

std::vector<int64_t> SlidingWindows::covering(const Shape& x) const {
  std::vector<int64_t> result = pads;
  for (size_t i = 0; i < kernel.size(); ++i) result[kernel.size() + i] = (out[i] - 1) * strides[i] + extent(i) - x[2 + i] - pads[i];
  return result;
}

Attributes SlidingWindows::attributes(std::vector<int64_t> covering_pads) const {
  return {{Attr::strides, strides}, {Attr::dilations, dilations}, {Attr::pads, std::move(covering_pads)}};
}

size_t spatial_axes(const Shape& x) {
  if (x.size() < 3 || x.size() > 5)
    throw Error(fmt::format("its input {} has no 1 to 3 spatial axes, which is not supported", to_string(x)));
  return x.size() - 2;
}

std::vector<int64_t> window_list(const DecodeContext& c, const char* name, size_t count, int64_t otherwise, int64_t least) {
  std::vector<int64_t> values = c.attr_ints(name);
  if (values.empty()) values.assign(count, otherwise);
  const bool fits = std::all_of(values.begin(), values.end(), [&](int64_t v) { return v >= least && v < kLargest; });
  if (values.size() != count || !fits) throw Error(fmt::format("its {} {} do not fit its input", name, to_string(values)));
  return values;
}

SlidingWindows sliding_windows(const DecodeContext& c, const Shape& x, Shape kernel) {
  SlidingWindows w;
  const size_t count = spatial_axes(x);
  if (kernel.size() != count || *std::min_element(kernel.begin(), kernel.end()) < 1 ||
      *std::max_element(kernel.begin(), kernel.end()) >= kLargest)
    throw Error(fmt::format("its windows {} do not fit its input {}", to_string(kernel), to_string(x)));
  w.kernel = std::move(kernel);
  w.strides = window_list(c, "strides", count, 1, 1);
  w.dilations = window_list(c, "dilations", count, 1, 1);
  w.pads.assign(2 * count, 0);
  const std::string mode = c.attr_string("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    pad_same(w, x, mode == "SAME_UPPER");
    return w;
  }
  if (mode != "VALID" && mode != "NOTSET" && !mode.empty()) throw Error(fmt::format("auto_pad '{}' is unknown", mode));
  if (mode != "VALID") w.pads = window_list(c, "pads", 2 * count, 0, -kLargest);
  for (size_t i = 0; i < count; ++i)
    w.out.push_back(results(x[2 + i], w.pads[i], w.pads[count + i], w.extent(i), w.strides[i], c.attr_int("ceil_mode", 0) != 0));
  return w;
}

Term per_channel(Term value, int64_t rank) {
  Shape shape(rank - 1, 1);
  shape[0] = elements(value.shape());
  return value.reshape(shape);
}

}  // namespace zeroplan
