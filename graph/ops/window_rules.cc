#include "graph/ops/window_rules.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/error.h"
#include "base/extent.h"
#include "graph/ops/conv_shape.h"

namespace zeroplan {
namespace {

constexpr int64_t kLargest = int64_t{1} << 31;  // keeps products of sizes within 64 bits

void check_list(const Attributes& attributes, Attr key, size_t count, int64_t least) {
  const std::vector<int64_t>& values = attributes.get_ints(key);
  const bool fits = std::all_of(values.begin(), values.end(), [&](int64_t v) { return v >= least && v < kLargest; });
  if (values.size() != count || !fits)
    throw Error(
        fmt::format("{} {} do not fit {} spatial axes", attr_name(key), to_string(values), attributes.get_ints(Attr::strides).size()));
}

}  // namespace

Shape window_result(const Attributes& attributes, const Shape& x, int64_t channels, const Shape& kernel) {
  const size_t spatial = x.size() - 2;
  extent(x);  // throws
  check_list(attributes, Attr::strides, spatial, 1);
  check_list(attributes, Attr::dilations, spatial, 1);
  check_list(attributes, Attr::pads, 2 * spatial, -kLargest);
  if (kernel.size() != spatial || *std::min_element(kernel.begin(), kernel.end()) < 1 ||
      *std::max_element(kernel.begin(), kernel.end()) >= kLargest)
    throw Error(fmt::format("windows of size {} do not fit an input of shape {}", to_string(kernel), to_string(x)));
  extent(kernel);  // throws
  const Windows w = make_windows(x.data(), static_cast<int>(x.size()), kernel.data(), attributes);
  Shape result = {x[0], channels}, padded = {std::max(x[1], channels)};
  for (size_t i = 0; i < spatial; ++i) {
    const WindowAxis& a = w.axis[w.first + static_cast<int>(i)];
    padded.push_back(a.in + a.extent() + std::abs(a.before));
    if (a.out < 1)
      throw Error(fmt::format("a window of {} elements does not fit spatial axis {} of an input of shape {} with its padding", a.extent(),
                              i, to_string(x)));
    result.push_back(a.out);
  }
  extent(padded);  // throws: what kernels lay out of one sample
  return result;
}

}  // namespace zeroplan
