// Conv and ConvTranspose: the latter is the gradient of the former by its input.
#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/extent.h"
#include "graph/onnx/decode_windows.h"

namespace zeroplan {
namespace {

constexpr int64_t kLargestGroup = int64_t{1} << 31;

int64_t groups_of(const DecodeContext& c) {
  const int64_t groups = c.attr_int("group", 1);
  if (groups < 1 || groups >= kLargestGroup) throw Error(fmt::format("its group {} is no number of groups", groups));
  return groups;
}

Shape kernel_of(const DecodeContext& c, const Shape& x, const Shape& weight) {
  if (weight.size() != x.size()) throw Error(fmt::format("its weight {} does not fit its input {}", to_string(weight), to_string(x)));
  const Shape kernel(weight.begin() + 2, weight.end()), stated = c.attr_ints("kernel_shape");
  if (!stated.empty() && stated != kernel)
    throw Error(fmt::format("its kernel_shape {} is not that of its weight {}", to_string(stated), to_string(weight)));
  return kernel;
}

void set_with_bias(DecodeContext& c, ValueId y) {
  if (c.has(2)) y = c.build.add(OpKind::add, {y, per_channel(c, c.in(2), c.rank(0))});
  c.out(0, y);
}

void conv(DecodeContext& c) { set_with_bias(c, convolution(c, c.in(0), c.in(1))); }

// Sizes of the result, and the padding in front: of what padding takes away in all, a half, by auto_pad the larger or the smaller.
struct Transposed {
  Shape out;
  std::vector<int64_t> pads;
};

Transposed transposed(const DecodeContext& c, const Shape& x, const SlidingWindows& w, const Shape& wanted) {
  const size_t count = w.kernel.size();
  const std::string mode = c.attr_string("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  const std::vector<int64_t> more = window_list(c, "output_padding", count, 0, 0);
  Transposed t;
  t.pads = same || mode == "VALID" ? std::vector<int64_t>(2 * count, 0) : window_list(c, "pads", 2 * count, 0, -kLargestGroup);
  for (size_t i = 0; i < count; ++i) {
    const int64_t reach = checked_add(checked_mul(w.strides[i], x[2 + i] - 1), w.extent(i)), full = checked_add(reach, more[i]);
    if (!same && wanted.empty()) {
      t.out.push_back(checked_add(full, -(t.pads[i] + t.pads[count + i])));
    } else {
      t.out.push_back(wanted.empty() ? checked_mul(x[2 + i], w.strides[i]) : wanted[i]);
      const int64_t total = full - t.out[i];
      t.pads[i] = total <= 0 ? 0 : mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    }
    t.pads[count + i] = reach - t.out[i] - t.pads[i];
  }
  return t;
}

void conv_transpose(DecodeContext& c) {
  const Shape x = c.shape(0), wanted = c.attr_ints("output_shape");
  SlidingWindows w;
  const size_t count = spatial_axes(x);
  w.kernel = kernel_of(c, x, c.shape(1));
  w.strides = window_list(c, "strides", count, 1, 1);
  w.dilations = window_list(c, "dilations", count, 1, 1);
  // Some exporters state batch and channels too.
  const Shape sizes(wanted.size() == count + 2 ? wanted.begin() + 2 : wanted.begin(), wanted.end());
  extent(sizes);  // throws
  if (!sizes.empty() && sizes.size() != count)
    throw Error(fmt::format("its output_shape {} does not fit its input {}", to_string(wanted), to_string(x)));
  const Transposed t = transposed(c, x, w, sizes);
  Shape shape = {x[0], checked_mul(c.shape(1)[1], groups_of(c))};
  shape.insert(shape.end(), t.out.begin(), t.out.end());
  for (const int64_t size : t.out)
    if (size < 1) throw Error(fmt::format("its result would have the shape {}", to_string(shape)));
  Attributes attributes = w.attributes(t.pads);
  attributes.set(Attr::groups, groups_of(c));
  attributes.set(Attr::shape, shape);
  set_with_bias(c, c.build.add(OpKind::conv_grad_input, {c.in(0), c.in(1)}, attributes));
}

}  // namespace

ValueId convolution(DecodeContext& c, ValueId input, ValueId weight) {
  const Shape x = c.build.shape(input);
  spatial_axes(x);
  const SlidingWindows w = sliding_windows(c, x, kernel_of(c, x, c.build.shape(weight)));
  Attributes attributes = w.attributes(w.covering(x));
  attributes.set(Attr::groups, groups_of(c));
  return c.build.add(OpKind::conv, {input, weight}, attributes);
}

void add_conv_decoders(DecoderTable& t) {
  t["Conv"] = conv;
  t["ConvTranspose"] = conv_transpose;
}

}  // namespace zeroplan
