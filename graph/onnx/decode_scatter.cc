// ScatterElements, ScatterND, Col2Im.
#include <limits>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/extent.h"
#include "graph/onnx/decode_windows.h"
#include "graph/onnx/take.h"

namespace zeroplan {
namespace {

bool is_order(const std::string& reduction) { return reduction == "max" || reduction == "min"; }
Term ordered_for(const std::string& reduction, Term x) { return is_order(reduction) ? ordered(x) : wide(x); }

Term scatter(DecodeContext& c, Term data, Term indices, Term updates) {
  const std::string reduction = c.attr_string("reduction", "none");
  const auto written = [&](Term into, Term values) {
    return Term(c.build, c.build.add(OpKind::scatter, {into.id(), indices.id(), values.id()}, {{Attr::reduction, reduction}}));
  };
  if (reduction == "none") return written(data, updates);
  const Term into = ordered_for(reduction, data), y = written(into, ordered_for(reduction, updates));
  return is_order(reduction) ? unordered(y, data.dtype()) : y.cast(data.dtype());
}

void scatter_elements(DecodeContext& c) {
  const Shape data = c.shape(0);
  if (c.shape(1) != c.shape(2))
    throw Error(fmt::format("indices {} and updates {} differ in shape", to_string(c.shape(1)), to_string(c.shape(2))));
  const ElementPlaces p = element_places(data, term(c, 1), c.axis("axis", 0, c.rank(0)));
  const Term rows = term(c, 0).reshape({p.batch, p.rows}), updates = term(c, 2).reshape({p.batch, p.count});
  result(c, scatter(c, rows, p.indices, updates).reshape(data));
}

void scatter_nd(DecodeContext& c) {
  const Shape data = c.shape(0), indices = c.shape(1);
  const int64_t many = indices.empty() ? 0 : indices.back();
  if (many < 1 || many > c.rank(0)) throw Error(fmt::format("indices {} do not fit data {}", to_string(indices), to_string(data)));
  Shape expected(indices.begin(), indices.end() - 1);
  const int64_t count = elements(expected);
  const Shape picked(data.begin(), data.begin() + many), rest(data.begin() + many, data.end());
  expected.insert(expected.end(), rest.begin(), rest.end());
  if (c.shape(2) != expected) throw Error(fmt::format("updates {} should be {}", to_string(c.shape(2)), to_string(expected)));
  const Term linear = linear_indices(term(c, 1), picked).reshape({count});
  const Term rows = term(c, 0).reshape({elements(picked), elements(rest)}), updates = term(c, 2).reshape({count, elements(rest)});
  result(c, scatter(c, rows, linear, updates).reshape(data));
}

// How the blocks of one axis lie in the image.
struct Windows {
  int64_t image, block, stride, dilation, pad_begin, count;
};

std::vector<Windows> windows_of(DecodeContext& c, const std::vector<int64_t>& image, const std::vector<int64_t>& block) {
  const size_t rank = image.size();
  if (block.size() != rank) throw Error("image_shape and block_shape differ in length");
  const auto strides = window_list(c, "strides", rank, 1, 1), dilations = window_list(c, "dilations", rank, 1, 1);
  const auto pads = window_list(c, "pads", 2 * rank, 0, std::numeric_limits<int64_t>::min());
  std::vector<Windows> windows;
  for (size_t i = 0; i < rank; ++i) {
    if (block[i] < 1) throw Error("block_shape must be positive");
    const int64_t reach = checked_mul(dilations[i], block[i] - 1) + 1, padded = checked_add(image[i], checked_add(pads[i], pads[rank + i]));
    const int64_t span = checked_add(padded, -reach);
    windows.push_back({image[i], block[i], strides[i], dilations[i], pads[i], span < 0 ? 0 : span / strides[i] + 1});
  }
  return windows;
}

// Place in the image of every element [block…, window…]; `outside` for what lies in the padding.
std::vector<int64_t> image_places(FoldingBuilder& build, const std::vector<Windows>& windows, int64_t outside) {
  Shape shape;
  for (const Windows& w : windows) shape.push_back(w.block);
  for (const Windows& w : windows) shape.push_back(w.count);
  const Strides strides = contiguous_strides(shape);
  std::vector<int64_t> places = build.list(elements(shape));
  for (int64_t n = 0; n < static_cast<int64_t>(places.size()); ++n) {
    int64_t place = 0;
    bool inside = true;
    for (size_t i = 0; i < windows.size(); ++i) {
      const Windows& w = windows[i];
      const int64_t in_block = n / strides[i] % w.block, window = n / strides[windows.size() + i] % w.count;
      const int64_t at = window * w.stride + in_block * w.dilation - w.pad_begin;
      inside = inside && at >= 0 && at < w.image;
      place = place * w.image + at;
    }
    places[n] = inside ? place : outside;
  }
  return places;
}

// Overlapping blocks add up: the gradient of picking them out. What falls into the padding goes to one element more, which is cut off.
void col2im(DecodeContext& c) {
  const std::vector<int64_t> image = c.ints(1, "image_shape"), block = c.ints(2, "block_shape");
  const std::vector<Windows> windows = windows_of(c, image, block);
  const int64_t pixels = extent(image), per_block = extent(block);
  if (c.rank(0) != 3 || c.shape(0)[1] % per_block != 0)
    throw Error(fmt::format("its input {} does not hold blocks {}", to_string(c.shape(0)), to_string(block)));
  const std::vector<int64_t> places = image_places(c.build, windows, pixels);
  const int64_t batch = c.shape(0)[0], channels = c.shape(0)[1] / per_block, count = static_cast<int64_t>(places.size());
  const ValueId blocks = c.build.reshape(c.in(0), {batch, channels, count});
  const ValueId added = c.build.add(OpKind::gather_grad, {blocks, c.build.ints(places)},
                                    {{Attr::axis, int64_t{2}}, {Attr::shape, Shape{batch, channels, pixels + 1}}});
  Shape to = {batch, channels};
  to.insert(to.end(), image.begin(), image.end());
  result(c, part({c.build, added}, 2, 0, pixels).reshape(to));
}

}  // namespace

void add_scatter_decoders(DecoderTable& t) {
  t["ScatterElements"] = {scatter_elements, gradient_to({0, 2})};
  t["ScatterND"] = {scatter_nd, gradient_to({0, 2})};
  t["Col2Im"] = {col2im, gradient_to({0})};
}

}  // namespace zeroplan
