// Operators with windows over spatial axes, and statistics over a batch.
#include <cmath>
#include <limits>

#include "tests/op_cases/case_lists.h"

namespace zeroplan {

namespace {

using Ints = std::vector<int64_t>;

struct Sliding {
  Ints strides, pads, dilations;
  int64_t groups = 1;
};

Attributes windows(const Sliding& s) { return {{Attr::strides, s.strides}, {Attr::pads, s.pads}, {Attr::dilations, s.dilations}}; }

Attributes convolved(const Sliding& s) {
  Attributes attributes = windows(s);
  attributes.set(Attr::groups, s.groups);
  return attributes;
}

Attributes pooled(Ints kernel, const Sliding& s) {
  Attributes attributes = windows(s);
  attributes.set(Attr::kernel_shape, std::move(kernel));
  return attributes;
}

Attributes averaged(Ints kernel, const Sliding& s, int64_t all) {
  Attributes attributes = pooled(std::move(kernel), s);
  attributes.set(Attr::count_include_pad, all);
  return attributes;
}

Attributes with_shape(Attributes attributes, const Shape& shape) {
  attributes.set(Attr::shape, shape);
  return attributes;
}

struct ConvNames {
  const char *forward, *input, *weight;
};

// The three operators of one convolution x · w → y. Long sums are of small numbers, as rounding is judged beside 1.
void add_conv(CaseList& cases, const ConvNames& names, const Shape& x, const Shape& w, const Shape& y, const Sliding& s,
              bool small = true) {
  const auto operand = [&](const Shape& shape) { return small ? real(shape) : real(shape, -0.25, 0.25); };
  cases.push_back({names.forward, OpKind::conv, {operand(x), operand(w)}, convolved(s), small});
  cases.push_back({names.input, OpKind::conv_grad_input, {operand(y), operand(w)}, with_shape(convolved(s), x), small});
  cases.push_back({names.weight, OpKind::conv_grad_weight, {operand(x), operand(y)}, with_shape(convolved(s), w), small});
}
#define ZP_CONV_CASE(name) \
  ConvNames { "conv_" name, "conv_grad_input_" name, "conv_grad_weight_" name }

void add_small_convs(CaseList& cases) {
  add_conv(cases, ZP_CONV_CASE("plain"), {2, 3, 4, 5}, {2, 3, 3, 2}, {2, 2, 2, 4}, {{1, 1}, {0, 0, 0, 0}, {1, 1}});
  add_conv(cases, ZP_CONV_CASE("padded"), {1, 2, 4, 3}, {3, 2, 3, 3}, {1, 3, 4, 4}, {{1, 1}, {1, 2, 1, 1}, {1, 1}});
  add_conv(cases, ZP_CONV_CASE("strided"), {1, 2, 5, 6}, {2, 2, 3, 2}, {1, 2, 3, 2}, {{2, 3}, {1, 0, 1, 0}, {1, 1}});
  add_conv(cases, ZP_CONV_CASE("dilated"), {1, 2, 7, 6}, {2, 2, 3, 2}, {1, 2, 2, 4}, {{2, 1}, {1, 0, 0, 1}, {2, 3}});
  add_conv(cases, ZP_CONV_CASE("groups"), {2, 4, 3, 3}, {6, 2, 2, 2}, {2, 6, 2, 2}, {{1, 1}, {0, 0, 0, 0}, {1, 1}, 2});
  add_conv(cases, ZP_CONV_CASE("depthwise"), {2, 3, 4, 5}, {6, 1, 3, 2}, {2, 6, 4, 2}, {{1, 2}, {1, 0, 1, 0}, {1, 1}, 3});
  add_conv(cases, ZP_CONV_CASE("depthwise_same"), {2, 3, 6, 18}, {3, 1, 5, 5}, {2, 3, 6, 18}, {{1, 1}, {2, 2, 2, 2}, {1, 1}, 3}, false);
  add_conv(cases, ZP_CONV_CASE("depthwise_pairs"), {2, 2, 5, 4}, {4, 1, 2, 3}, {2, 4, 4, 4}, {{1, 1}, {0, 1, 0, 1}, {1, 1}, 2});
  add_conv(cases, ZP_CONV_CASE("depthwise_dilated"), {1, 2, 7, 8}, {2, 1, 3, 2}, {1, 2, 4, 4}, {{1, 2}, {1, 0, 0, 2}, {2, 3}, 2});
  add_conv(cases, ZP_CONV_CASE("depthwise_line"), {2, 2, 9}, {2, 1, 4}, {2, 2, 9}, {{1}, {1, 2}, {1}, 2});
  add_conv(cases, ZP_CONV_CASE("depthwise_volume"), {1, 2, 3, 4, 3}, {2, 1, 2, 3, 2}, {1, 2, 4, 2, 2},
           {{1, 1, 1}, {1, 0, 0, 1, 0, 0}, {1, 1, 1}, 2});
  add_conv(cases, ZP_CONV_CASE("depthwise_far"), {1, 2, 3, 3}, {2, 1, 2, 2}, {1, 2, 8, 6}, {{1, 1}, {3, 1, 3, 3}, {1, 1}, 2});
  add_conv(cases, ZP_CONV_CASE("depthwise_cropped"), {1, 2, 6, 5}, {2, 1, 3, 3}, {1, 2, 3, 4}, {{1, 1}, {-1, 1, 0, 0}, {1, 1}, 2});
  add_conv(cases, ZP_CONV_CASE("depthwise_past"), {1, 2, 1, 2}, {2, 1, 1, 2}, {1, 2, 1, 51}, {{1, 1}, {0, 100, 0, -50}, {1, 1}, 2}, false);
  add_conv(cases, ZP_CONV_CASE("depthwise_wide_step"), {1, 2, 9, 8}, {2, 1, 2, 1}, {1, 2, 2, 2}, {{5, 4}, {1, 0, 0, 0}, {2, 1}, 2});
  add_conv(cases, ZP_CONV_CASE("line"), {2, 2, 9}, {3, 2, 4}, {2, 3, 3}, {{3}, {1, 1}, {1}});
  add_conv(cases, ZP_CONV_CASE("volume"), {1, 2, 3, 4, 3}, {2, 2, 2, 3, 1}, {1, 2, 2, 2, 3}, {{2, 1, 1}, {1, 0, 0, 0, 0, 0}, {1, 1, 1}});
  add_conv(cases, ZP_CONV_CASE("point"), {2, 3, 2, 3}, {4, 3, 1, 1}, {2, 4, 2, 3}, {{1, 1}, {0, 0, 0, 0}, {1, 1}});
  add_conv(cases, ZP_CONV_CASE("point_strided"), {1, 2, 5, 4}, {3, 2, 1, 1}, {1, 3, 3, 2}, {{2, 2}, {0, 0, 0, 0}, {1, 1}});
  add_conv(cases, ZP_CONV_CASE("cropped"), {1, 2, 6, 5}, {2, 2, 3, 3}, {1, 2, 3, 4}, {{1, 1}, {-1, 1, 0, 0}, {1, 1}});
  add_conv(cases, ZP_CONV_CASE("wide_step"), {1, 1, 9, 8}, {2, 1, 2, 1}, {1, 2, 2, 2}, {{5, 4}, {1, 0, 0, 0}, {2, 1}});
}

// More channels than lanes, more products than one pass takes, more points than one chunk.
void add_large_convs(CaseList& cases) {
  add_conv(cases, ZP_CONV_CASE("channels"), {3, 37, 5, 4}, {83, 37, 3, 3}, {3, 83, 5, 4}, {{1, 1}, {1, 1, 1, 1}, {1, 1}}, false);
  add_conv(cases, ZP_CONV_CASE("channels_strided"), {2, 70, 7, 8}, {33, 70, 3, 3}, {2, 33, 4, 4}, {{2, 2}, {1, 1, 1, 1}, {1, 1}}, false);
  add_conv(cases, ZP_CONV_CASE("bands"), {2, 16, 70, 90}, {20, 16, 3, 3}, {2, 20, 70, 90}, {{1, 1}, {1, 1, 1, 1}, {1, 1}}, false);
  add_conv(cases, ZP_CONV_CASE("bands_strided"), {2, 12, 91, 120}, {18, 12, 3, 3}, {2, 18, 46, 60}, {{2, 2}, {1, 1, 1, 1}, {1, 1}}, false);
  add_conv(cases, ZP_CONV_CASE("many_images"), {37, 16, 9, 9}, {20, 16, 3, 3}, {37, 20, 7, 7}, {{1, 1}, {0, 0, 0, 0}, {1, 1}}, false);
  add_conv(cases, ZP_CONV_CASE("stem"), {2, 3, 23, 21}, {17, 3, 7, 7}, {2, 17, 12, 11}, {{2, 2}, {3, 3, 3, 3}, {1, 1}}, false);
  add_conv(cases, ZP_CONV_CASE("grouped_channels"), {2, 40, 6, 6}, {60, 20, 3, 3}, {2, 60, 6, 6}, {{1, 1}, {1, 1, 1, 1}, {1, 1}, 2}, false);
  add_conv(cases, ZP_CONV_CASE("long_line"), {1, 1, 3000}, {19, 1, 256}, {1, 19, 22}, {{128}, {0, 0}, {1}}, false);
}

void add_pools(CaseList& cases) {
  const TensorSpec x = real({2, 3, 5, 6});
  cases.push_back({"max_pool", OpKind::max_pool, {x}, pooled({2, 2}, {{2, 2}, {0, 0, 0, 0}, {1, 1}}), true});
  cases.push_back({"max_pool_padded", OpKind::max_pool, {x}, pooled({3, 3}, {{2, 1}, {1, 1, 1, 1}, {1, 1}}), true});
  cases.push_back({"max_pool_dilated", OpKind::max_pool, {x}, pooled({2, 3}, {{1, 1}, {0, 1, 1, 0}, {2, 2}}), true});
  cases.push_back({"max_pool_line", OpKind::max_pool, {real({1, 2, 40})}, pooled({3}, {{1}, {1, 1}, {1}}), true});
  cases.push_back(
      {"max_pool_volume", OpKind::max_pool, {real({1, 2, 3, 4, 3})}, pooled({2, 2, 2}, {{1, 2, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}}), true});
  const double nan = std::nan(""), low = -std::numeric_limits<double>::infinity();
  cases.push_back(
      {"max_pool_special", OpKind::max_pool, {reals({1, 1, 8}, {low, low, 1, nan, 2, 5, 5, low})}, pooled({2}, {{1}, {0, 1}, {1}})});
  for (const int64_t all : {0, 1}) {
    const char* names[][2] = {{"average_pool", "average_pool_all"}, {"average_pool_grad", "average_pool_grad_all"}};
    const Attributes padded = averaged({3, 2}, {{2, 1}, {1, 1, 1, 0}, {1, 1}}, all);
    cases.push_back({names[0][all], OpKind::average_pool, {x}, padded, true});
    cases.push_back({names[1][all], OpKind::average_pool_grad, {real({2, 3, 3, 6})}, with_shape(padded, {2, 3, 5, 6}), true});
  }
  cases.push_back({"average_pool_dilated", OpKind::average_pool, {x}, averaged({2, 3}, {{1, 2}, {2, 1, 0, 2}, {2, 2}}, 0), true});
  cases.push_back({"average_pool_long", OpKind::average_pool, {real({2, 2, 9, 50})}, averaged({3, 3}, {{1, 1}, {1, 1, 1, 1}, {1, 1}}, 0)});
}

}  // namespace

CaseList spatial_cases() {
  CaseList cases;
  add_small_convs(cases);
  add_large_convs(cases);
  add_pools(cases);
  const Attributes epsilon = {{Attr::epsilon, 1e-3}};
  const TensorSpec x = real({3, 4, 2, 3}, -2, 2), channels = real({4}, 0.5, 2);
  cases.push_back({"batch_norm", OpKind::batch_norm, {x, channels, real({4})}, epsilon, true});
  cases.push_back({"batch_norm_rows", OpKind::batch_norm, {real({6, 4}), channels, real({4})}, epsilon, true});
  cases.push_back({"batch_norm_offset", OpKind::batch_norm, {real({3, 5, 11, 9}, 10, 11), real({5}), real({5})}, epsilon});
  cases.push_back({"batch_norm_grad", OpKind::batch_norm_grad, {x, x, channels, wide(real({4})), wide(channels)}, epsilon});
  cases.push_back({"batch_norm_grad_large",
                   OpKind::batch_norm_grad,
                   {real({3, 5, 11, 9}), real({3, 5, 11, 9}), real({5}), wide(real({5})), wide(real({5}, 0.5, 2))},
                   epsilon});
  return cases;
}

}  // namespace zeroplan
