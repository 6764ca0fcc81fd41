// Operators of old opsets whose meaning depends on shapes: brought into today's form, whose decoder does the rest.
#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/onnx/decode.h"
#include "graph/onnx/normalize_domains.h"

namespace zeroplan {
namespace {

std::vector<OnnxAttribute> without(const std::vector<OnnxAttribute>& attributes, const char* name) {
  std::vector<OnnxAttribute> rest;
  for (const OnnxAttribute& a : attributes)
    if (a.name != name) rest.push_back(a);
  return rest;
}

// The second operand's axes are those of the first from `axis` on.
void aligned(DecodeContext& c) {
  const int64_t axis = c.axis("axis", 0, c.rank(0));
  Shape shape = c.shape(1);
  if (axis + c.rank(1) > c.rank(0))
    throw Error(fmt::format("{} does not fit into {} from axis {} on", to_string(shape), to_string(c.shape(0)), axis));
  shape.resize(c.rank(0) - axis, 1);
  c.out(0, decode_as(c, c.node.op, {c.in(0), c.build.reshape(c.in(1), shape)}, without(c.node.attributes, "axis"))[0]);
}

// One slope, or one for each channel.
void prelu(DecodeContext& c) {
  ValueId slope = c.in(1);
  if (c.rank(1) == 1 && c.rank(0) > 1) {
    Shape shape(c.rank(0) - 1, 1);
    shape[0] = c.shape(1)[0];
    slope = c.build.reshape(slope, shape);
  }
  c.out(0, decode_as(c, c.node.op, {c.in(0), slope}, c.node.attributes)[0]);
}

// The axes from `axis` on count as one.
void hardmax(DecodeContext& c) {
  const Shape shape = c.shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = c.attr_int("axis", 1) == rank ? rank : c.axis("axis", 1, rank);
  const Shape flat = {elements(Shape(shape.begin(), shape.begin() + axis)), elements(Shape(shape.begin() + axis, shape.end()))};
  const ValueId y = decode_as(c, c.node.op, {c.build.reshape(c.in(0), flat)}, {integer_attribute("axis", 1)})[0];
  c.out(0, c.build.reshape(y, shape));
}

// Repeats of one axis.
void tile(DecodeContext& c) {
  const std::vector<int64_t> times = c.ints(1, "tiles"), axis = c.ints(2, "axis");
  if (times.size() != 1 || axis.size() != 1) throw Error("its tiles and its axis must have one element each");
  std::vector<int64_t> repeats(c.rank(0), 1);
  repeats[normalize_axis(axis[0], c.rank(0))] = times[0];
  c.out(0, decode_as(c, c.node.op, {c.in(0), c.build.ints(repeats)}, {})[0]);
}

// Statistics for each element of a sample: the sample is one row of channels.
void batch_normalization(DecodeContext& c) {
  const Shape shape = c.shape(0);
  if (shape.empty() || shape[0] == 0) throw Error(fmt::format("its input has shape {}", to_string(shape)));
  const int64_t channels = elements(shape) / shape[0];
  std::vector<ValueId> inputs = {c.build.reshape(c.in(0), {shape[0], channels})};
  for (int i = 1; i < 5; ++i) {
    if (elements(c.shape(i)) != channels)
      throw Error(fmt::format("its input {} has shape {}, but a sample has {} elements", i, to_string(c.shape(i)), channels));
    inputs.push_back(c.build.reshape(c.in(i), {channels}));
  }
  c.out(0, c.build.reshape(decode_as(c, c.node.op, inputs, c.node.attributes)[0], shape));
}

// Scale and bias for each group.
void group_normalization(DecodeContext& c) {
  if (c.rank(0) < 2) throw Error(fmt::format("its input {} has no channels", to_string(c.shape(0))));
  const int64_t groups = c.attr_int("num_groups", 0), channels = c.shape(0)[1];
  if (groups <= 0 || channels % groups != 0) throw Error(fmt::format("{} channels cannot be parted into {} groups", channels, groups));
  std::vector<int64_t> group_of = c.build.list(channels);
  for (int64_t i = 0; i < channels; ++i) group_of[i] = i / (channels / groups);
  const ValueId indices = c.build.ints(group_of);
  std::vector<ValueId> inputs = {c.in(0)};
  for (int i = 1; i < 3; ++i) {
    if (c.shape(i) != Shape{groups})
      throw Error(fmt::format("its input {} has shape {}, but there are {} groups", i, to_string(c.shape(i)), groups));
    inputs.push_back(c.build.add(OpKind::gather, {c.in(i), indices}, {{Attr::axis, int64_t{0}}}));
  }
  c.out(0, decode_as(c, c.node.op, inputs, c.node.attributes)[0]);
}

}  // namespace

void add_legacy_decoders(DecoderTable& t) {
  const auto add = [&](const char* op, Decoder decoder) { t[fmt::format("{}::{}", kLegacyDomain, op)] = decoder; };
  for (const char* op : {"Add", "Sub", "Mul", "Div"}) add(op, aligned);
  for (const char* op : {"And", "Or", "Xor", "Equal", "Less", "Greater"}) add(op, {aligned, no_gradient()});
  add("Pow", {aligned, gradient_to_all().with_setting({1}, "an exponent")});
  add("PRelu", prelu);
  add("Hardmax", {hardmax, no_gradient()});
  add("Tile", {tile, gradient_to({0})});
  add("BatchNormalization", {batch_normalization, gradient_to({0, 1, 2})});
  add("GroupNormalization", group_normalization);
}

}  // namespace zeroplan
