// SoftmaxCrossEntropyLoss: the class axis is 1, labels lack it.
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/decode.h"

namespace zeroplan {
namespace {

// Entropy of each row: lse - its label's logit, 0 where the label is ignored.
ValueId row_entropies(DecodeContext& c, ValueId logits, ValueId labels, ValueId lse, const Attributes& attributes) {
  const int64_t rows = c.build.shape(logits)[0], classes = c.build.shape(logits)[1];
  const ValueId none = c.build.scalar(0, c.build.dtype(logits)), column = c.build.cast(c.build.reshape(labels, {rows, 1}), DType::i64);
  std::vector<int64_t> numbers(classes);
  std::iota(numbers.begin(), numbers.end(), 0);
  const ValueId chosen = c.build.add(OpKind::equal, {column, c.build.ints(numbers)});
  const ValueId picked = c.build.add(OpKind::reduce_sum, {c.build.add(OpKind::where, {chosen, logits, none})},
                                     {{Attr::axes, std::vector<int64_t>{1}}, {Attr::keepdims, int64_t{0}}});
  const ValueId entropy = c.build.add(OpKind::sub, {lse, picked});
  if (!attributes.has(Attr::ignore_index)) return entropy;
  const ValueId ignored =
      c.build.add(OpKind::equal, {c.build.reshape(column, {rows}), c.build.ints({attributes.get_int(Attr::ignore_index)})});
  return c.build.add(OpKind::where, {ignored, none, entropy});
}

void softmax_cross_entropy(DecodeContext& c) {
  if (c.has(2)) throw Error("class weights are not supported; leave them out");
  if (c.wants(1)) throw Error("its second output (log_prob) is not supported; use LogSoftmax");
  const std::string reduction = c.attr_string("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none") throw Error(fmt::format("reduction '{}' is unknown", reduction));
  const Shape s = c.shape(0), label_shape = c.shape(1);
  if (s.size() < 2) throw Error("its scores need a class axis 1");
  std::vector<int64_t> classes_last(s.size());
  std::iota(classes_last.begin(), classes_last.end(), 0);
  classes_last.erase(classes_last.begin() + 1);
  classes_last.push_back(1);
  const int64_t rows = elements(label_shape);
  const ValueId logits = c.build.reshape(c.build.transpose(c.in(0), classes_last), {rows, s[1]});
  const ValueId labels = c.build.reshape(c.in(1), {rows});
  Attributes attributes;
  if (c.node.find("ignore_index")) attributes.set(Attr::ignore_index, c.attr_int("ignore_index", 0));
  const std::vector<ValueId> y = c.build.add_multi(OpKind::cross_entropy, {logits, labels}, attributes);
  if (reduction == "none")
    c.out(0, c.build.reshape(row_entropies(c, logits, labels, y[2], attributes), label_shape));
  else
    c.out(0, reduction == "sum" ? y[0] : c.build.add(OpKind::div, {y[0], y[1]}));
}

}  // namespace

void add_loss_decoders(DecoderTable& t) { t["SoftmaxCrossEntropyLoss"] = softmax_cross_entropy; }

}  // namespace zeroplan
