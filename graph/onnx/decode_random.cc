// Dropout, and operators that draw random numbers. A node's numbers are told from another's by the name of its output in the model.
#include <xxhash.h>

#include <limits>
#include <numbers>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/terms.h"
#include "graph/ops/op_def.h"

namespace zeroplan {
namespace {

constexpr int64_t kMaxClasses = 4096;  // of Multinomial, which needs the square of it

// Stable over runs, machines and versions. A node that is there several times (an unrolled loop) draws other numbers each time.
int64_t next_key(const DecodeContext& c, const char* purpose) {
  const std::string stem = fmt::format("{}\n{}", c.node.outputs.at(0), purpose);
  const std::string name = fmt::format("{}\n{}", stem, c.build.next_copy(stem));
  return static_cast<int64_t>(XXH3_64bits(name.data(), name.size()));
}

Term uniform(DecodeContext& c, const Shape& shape, DType dtype, const char* purpose = "") {
  return {c.build, c.build.add(OpKind::random_uniform, {},
                               {{Attr::shape, shape}, {Attr::dtype, dtype_value(dtype)}, {Attr::key, next_key(c, purpose)}})};
}

// Attribute dtype, else that of the operand.
DType wanted_type(DecodeContext& c, DType otherwise) {
  const int type = c.attr_type("dtype", 0);
  return type == 0 ? otherwise : c.dtype_of(type, "it gives");
}

void random_uniform(DecodeContext& c, const Shape& shape, DType dtype) {
  const double low = c.attr_float("low", 0), high = c.attr_float("high", 1);
  result(c, plus(times(uniform(c, shape, dtype), high - low), low));
}

// Box and Muller: sqrt(-2 ln u) cos(2 π v), u in (0, 1].
void random_normal(DecodeContext& c, const Shape& shape, DType dtype) {
  const Term radius = sqrt(log(1 - uniform(c, shape, dtype, "radius")) * -2);
  const Term normal = radius * cos(uniform(c, shape, dtype, "angle") * (2 * std::numbers::pi));
  result(c, plus(times(normal, c.attr_float("scale", 1)), c.attr_float("mean", 0)));
}

using Draw = void (*)(DecodeContext&, const Shape&, DType);

template <Draw draw>
void of_shape(DecodeContext& c) {
  draw(c, c.attr_ints("shape"), wanted_type(c, c.precision));
}

template <Draw draw>
void like(DecodeContext& c) {
  draw(c, c.shape(0), wanted_type(c, c.build.dtype(c.in(0))));
}

void bernoulli(DecodeContext& c) {
  const Term p = term(c, 0);
  result(c, (uniform(c, p.shape(), p.dtype()) < p).cast(wanted_type(c, p.dtype())));
}

// Inverse of the cumulative distribution: the class is the number of sums of probabilities that a uniform number reaches.
void multinomial(DecodeContext& c) {
  const Shape shape = c.shape(0);
  if (shape.size() != 2 || shape[1] > kMaxClasses)
    throw Error(fmt::format("it needs logits [batch, classes] with at most {} classes", kMaxClasses));
  const int64_t classes = shape[1], samples = c.attr_int("sample_size", 1);
  const DType dtype = c.build.dtype(c.in(0));
  HostTensor before = c.build.table(dtype, {classes, classes});
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = 0; j < classes; ++j) before.set(i * classes + j, i <= j);
  const Term p = apply(OpKind::softmax, term(c, 0)), ones(c.build, c.build.constant(std::move(before)));
  const Term reached = uniform(c, {shape[0], samples, 1}, dtype) >= matmul(p, ones).reshape({shape[0], 1, classes});
  result(c, minimum(sum(reached.cast(dtype), {2}), static_cast<double>(classes - 1)).cast(wanted_type(c, DType::i32)));
}

ValueId all_kept(DecodeContext& c) {
  HostTensor kept(DType::boolean, {});
  kept.set_int(0, 1);
  const Shape shape = c.shape(0);
  return c.build.broadcast(c.build.constant(std::move(kept)), shape);
}

// A mask that the caller of the import gives.
bool dropout_by_mask(DecodeContext& c, double ratio) {
  const auto given = c.masks == nullptr ? decltype(c.masks->end()){} : c.masks->find(c.node.outputs[0]);
  if (c.masks == nullptr || given == c.masks->end()) return false;
  const Term mask(c.build, c.build.constant(given->second));
  if (given->second.dtype() != DType::boolean || given->second.shape() != c.shape(0))
    throw Error("the mask given for it is no boolean of its shape");
  result(c, where(mask, times(term(c, 0), 1 / (1 - ratio)), 0));
  result(c, mask, 1);
  return true;
}

void dropout(DecodeContext& c) {
  const bool training = !c.inference && c.has(2) && c.number(2, "training_mode") != 0;
  const double ratio = c.has(1) ? c.number(1, "ratio") : 0.5;
  if (!(ratio >= 0 && ratio < 1)) throw Error(fmt::format("ratio {} is not from 0 to below 1", ratio));
  if (!training || ratio == 0) {
    c.out(0, c.in(0));
    if (c.wants(1)) c.out(1, all_kept(c));
    return;
  }
  if (dropout_by_mask(c, ratio)) return;
  const std::vector<ValueId> y = c.build.add_multi(OpKind::dropout, {c.in(0)}, {{Attr::ratio, ratio}, {Attr::key, next_key(c, "")}});
  c.out(0, y[0]);
  c.out(1, y[1]);
}

}  // namespace

void add_random_decoders(DecoderTable& t) {
  t["Dropout"] = {dropout, gradient_to({0})};
  t["RandomUniform"] = of_shape<random_uniform>;
  t["RandomUniformLike"] = {like<random_uniform>, no_gradient()};
  t["RandomNormal"] = of_shape<random_normal>;
  t["RandomNormalLike"] = {like<random_normal>, no_gradient()};
  t["Bernoulli"] = {bernoulli, no_gradient()};
  t["Multinomial"] = {multinomial, no_gradient()};
}

}  // namespace zeroplan
