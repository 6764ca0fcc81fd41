// GatherElements, GatherND, OneHot, Compress, ReverseSequence.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/decode.h"
#include "graph/onnx/take.h"

namespace zeroplan {
namespace {

// The data is cut to the size of the indices on the other axes, so that the leading ones are shared.
void gather_elements(DecodeContext& c) {
  const int64_t axis = c.axis("axis", 0, c.rank(0));
  const Shape to = c.shape(1);
  Shape cut = c.shape(0);
  if (to.size() != cut.size()) throw Error(fmt::format("indices {} and data {} differ in rank", to_string(to), to_string(cut)));
  for (size_t i = 0; i < cut.size(); ++i)
    if (static_cast<int64_t>(i) != axis) cut[i] = std::min(cut[i], to[i]);
  const std::vector<int64_t> starts(cut.size(), 0), steps(cut.size(), 1);
  const Term data = cut == c.shape(0) ? term(c, 0) : slice(term(c, 0), starts, steps, cut);
  const ElementPlaces places = element_places(cut, term(c, 1), axis);
  result(c, gather_rows(data.reshape({places.batch, places.rows}), places.indices).reshape(to));
}

void gather_nd(DecodeContext& c) {
  const int64_t batch_dims = c.attr_int("batch_dims", 0), rank = c.rank(0), many = c.rank(1) > 0 ? c.shape(1).back() : 0;
  const Shape data = c.shape(0), indices = c.shape(1);
  if (many < 1 || batch_dims < 0 || batch_dims >= c.rank(1) || batch_dims + many > rank ||
      !std::equal(data.begin(), data.begin() + batch_dims, indices.begin()))
    throw Error(fmt::format("indices {} do not fit data {} with {} batch axes", to_string(indices), to_string(data), batch_dims));
  const auto part = [](const Shape& s, int64_t from, int64_t to) { return Shape(s.begin() + from, s.begin() + to); };
  const Shape batch = part(data, 0, batch_dims), picked = part(data, batch_dims, batch_dims + many);
  const Shape rest = part(data, batch_dims + many, rank), places = part(indices, batch_dims, c.rank(1) - 1);
  const int64_t rows = elements(picked), inner = elements(rest), count = elements(places), groups = elements(batch);
  const Term linear = linear_indices(term(c, 1), picked).reshape({groups, count});
  Shape to = part(indices, 0, c.rank(1) - 1);
  to.insert(to.end(), rest.begin(), rest.end());
  result(c, gather_rows(term(c, 0).reshape({groups, rows, inner}), linear).reshape(to));
}

// An index below 0 counts from the end; one outside gives a row of the second value alone.
void one_hot(DecodeContext& c) {
  const int64_t depth = c.integer(1, "depth");
  const int64_t axis = c.axis("axis", -1, c.rank(0) + 1);
  if (depth < 1) throw Error(fmt::format("its depth is {}", depth));
  const Term given = term(c, 0).cast(DType::i64), values = term(c, 2);
  Shape shape = c.shape(0);
  shape.insert(shape.begin() + axis, 1);
  const Term index = where(given < 0, given + static_cast<double>(depth), given).reshape(shape);
  const Term hit = index == positions(c.build, depth, axis, c.rank(0) + 1);
  result(c, where(hit, item(values, 0, 1), item(values, 0, 0)));
}

void compress(DecodeContext& c) {
  const HostTensor condition = c.constant(1, "condition");
  const bool flat = c.node.find("axis") == nullptr;
  const Term x = flat ? term(c, 0).reshape({elements(c.shape(0))}) : term(c, 0);
  const int64_t axis = flat ? 0 : c.axis("axis", 0, c.rank(0));
  const int64_t size = x.shape()[axis];
  std::vector<int64_t> places;
  for (int64_t i = 0; i < std::min(size, condition.count()); ++i)
    if (condition.get(i) != 0) places.push_back(i);
  result(c, take(x, axis, places));
}

void reverse_sequence(DecodeContext& c) {
  const int64_t batch_axis = c.attr_int("batch_axis", 1), time_axis = c.attr_int("time_axis", 0);
  const bool known = (batch_axis == 0 && time_axis == 1) || (batch_axis == 1 && time_axis == 0);
  if (!known || c.rank(0) < 2) throw Error(fmt::format("batch axis {} and time axis {} are not 0 and 1", batch_axis, time_axis));
  std::vector<int64_t> order(c.rank(0));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[batch_axis]);
  const Term x = term(c, 0).transpose(order);  // its own inverse
  const Term time = positions(c.build, x.shape()[1], 1, 2), length = term(c, 1).cast(DType::i64).reshape({x.shape()[0], 1});
  result(c, gather_rows(x, where(time < length, length - 1 - time, time)).transpose(order));
}

}  // namespace

void add_gather_nd_decoders(DecoderTable& t) {
  t["GatherElements"] = {gather_elements, gradient_to({0})};
  t["GatherND"] = {gather_nd, gradient_to({0})};
  t["OneHot"] = {one_hot, gradient_to({2}).with_setting({2}, "the values of a one-hot")};
  t["Compress"] = {compress, gradient_to({0})};
  t["ReverseSequence"] = {reverse_sequence, gradient_to({0})};
}

}  // namespace zeroplan
