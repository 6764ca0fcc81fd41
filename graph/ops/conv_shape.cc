#include "graph/ops/conv_shape.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "graph/ops/workspace.h"

namespace zeroplan {
namespace {

constexpr int64_t kChunkElements = 96 * 1024;  // of operand and result together: they stay in a core's second cache

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

int64_t result_points(const Windows& w, bool backward) { return backward ? w.in_points() : w.out_points(); }
int64_t result_extent(const WindowAxis& a, bool backward) { return backward ? a.in : a.out; }

// Places of the buffer that `count` results in a row need at most.
int64_t span_of(const WindowAxis& a, int64_t count, bool backward) {
  if (backward) return (count - 1 + a.extent() - 1) / a.stride + 1;
  return a.kernel == 1 ? count : (count - 1) * a.stride + a.extent();
}

}  // namespace

int64_t WindowAxis::first_result(int64_t t) const { return std::max<int64_t>(0, -floor_div(t * dilation - before, stride)); }
int64_t WindowAxis::last_result(int64_t t) const { return std::min(out, floor_div(in - 1 + before - t * dilation, stride) + 1); }

Windows make_windows(const int64_t* x, int rank, const int64_t* kernel, const Attributes& attributes) {
  const std::vector<int64_t>&strides = attributes.get_ints(Attr::strides), &pads = attributes.get_ints(Attr::pads),
        &dilations = attributes.get_ints(Attr::dilations);
  Windows w;
  const int spatial = rank - 2;
  w.first = 3 - spatial;
  for (int i = 0; i < spatial; ++i) {
    WindowAxis& a = w.axis[w.first + i];
    a = {x[2 + i], 1, kernel[i], strides[i], dilations[i], pads[i]};
    a.out = floor_div(a.in + pads[i] + pads[spatial + i] - a.extent(), a.stride) + 1;
  }
  return w;
}

ConvShape conv_shape(const int64_t* x, const int64_t* w, int rank, const Attributes& attributes) {
  ConvShape s;
  s.windows = make_windows(x, rank, w + 2, attributes);
  s.batch = x[0];
  s.groups = attributes.get_int(Attr::groups);
  s.in_channels = w[1];
  s.out_channels = w[0] / s.groups;
  return s;
}

PaddedPlane::PaddedPlane(const Windows& w) {
  for (int i = 0; i < 2; ++i) rows[i] = (w.axis[i].out - 1) * w.axis[i].stride + w.axis[i].extent();
  const WindowAxis& c = w.axis[2];
  stride = c.stride;
  phases = std::min(c.stride, c.extent());
  span = padded_channels(c.out) + (c.extent() - 1) / c.stride;
}

int64_t PaddedPlane::bytes(int64_t element_bytes) const {
  return checked_mul(checked_mul(checked_mul(rows[0], rows[1]), checked_mul(phases, span)), element_bytes);
}

Windows reversed(const Windows& w) {
  Windows r = w;
  for (WindowAxis& a : r.axis) {
    a.before = a.extent() - 1 - a.before;
    std::swap(a.in, a.out);
  }
  return r;
}

PlaneWorkspace plane_workspace(const Windows& w, int64_t sums, int threads, int64_t element_bytes) {
  PlaneWorkspace s;
  s.plane = workspace_round(w.taps() * static_cast<int64_t>(sizeof(int64_t)));
  s.sums = workspace_round(PaddedPlane(w).bytes(element_bytes));
  s.thread = s.sums + workspace_round(sums * kConvLanes * element_bytes);
  s.total = s.plane + threads * s.thread;
  return s;
}

int64_t padded_channels(int64_t channels) { return (channels + kConvLanes - 1) / kConvLanes * kConvLanes; }

ConvPass conv_pass(const ConvShape& shape, bool backward) {
  const Windows& w = shape.windows;
  ConvPass p;
  p.backward = backward;
  p.from_channels = backward ? shape.out_channels : shape.in_channels;
  p.to_channels = backward ? shape.in_channels : shape.out_channels;
  const int64_t extent = result_extent(w.axis[w.first], backward);
  for (int i = 0; i < 3; ++i) p.span[i] = span_of(w.axis[i], result_extent(w.axis[i], backward), backward);
  const auto size = [&](int64_t rows) {
    const int64_t operand = p.span_points() / p.span[w.first] * span_of(w.axis[w.first], rows, backward) * p.from_channels;
    return shape.groups * (operand + result_points(w, backward) / std::max<int64_t>(extent, 1) * rows * padded_channels(p.to_channels));
  };
  p.rows = extent;
  p.images = std::clamp<int64_t>(kChunkElements / std::max<int64_t>(size(extent), 1), 1, std::max<int64_t>(shape.batch, 1));
  if (size(extent) > kChunkElements) {
    // Whole multiples of what the halo costs, and at least a row.
    while (p.rows > 1 && size(p.rows) > kChunkElements) p.rows = (p.rows + 1) / 2;
    p.bands = (extent + p.rows - 1) / p.rows;
    p.rows = (extent + p.bands - 1) / p.bands;
    p.bands = (extent + p.rows - 1) / p.rows;
  }
  p.span[w.first] = span_of(w.axis[w.first], p.rows, backward);
  p.chunks = (shape.batch + p.images - 1) / p.images * p.bands;
  p.points = p.images * (result_points(w, backward) / std::max<int64_t>(extent, 1)) * p.rows;
  return p;
}

ConvWorkspace conv_workspace(const ConvShape& shape, const ConvPass& pass, int64_t element_bytes) {
  ConvWorkspace s;
  const int64_t taps = shape.windows.taps(), padded = padded_channels(pass.to_channels) * shape.groups;
  const auto place = [&](int64_t& offset, int64_t bytes) {
    offset = s.total;
    s.total += workspace_round(bytes);
  };
  place(s.weights, taps * pass.from_channels * padded * element_bytes);
  place(s.operand, pass.images * pass.span_points() * pass.from_channels * shape.groups * element_bytes);
  place(s.result, pass.points * padded * element_bytes);
  place(s.from_table, pass.points * static_cast<int64_t>(sizeof(int64_t)));
  place(s.to_table, pass.points * static_cast<int64_t>(sizeof(int64_t)));
  place(s.segments, taps * ((pass.from_channels + kConvDepth - 1) / kConvDepth) * static_cast<int64_t>(sizeof(ConvSegment)));
  return s;
}

int64_t conv_workspace_bytes(const ConvShape& shape, OpKind op, int threads, int64_t element_bytes) {
  const bool backward = op == OpKind::conv_grad_input;
  if (!shape.by_planes()) return conv_workspace(shape, conv_pass(shape, backward), element_bytes).total;
  if (backward && !shape.unit_strides()) return 0;
  const int64_t sums = op == OpKind::conv_grad_weight ? shape.out_channels * shape.windows.taps() : 0;
  return plane_workspace(backward ? reversed(shape.windows) : shape.windows, sums, threads, element_bytes).total;
}

}  // namespace zeroplan
