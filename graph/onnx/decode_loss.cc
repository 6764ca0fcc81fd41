// SoftmaxCrossEntropyLoss: the class axis is 1, labels lack it.
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/decode.h"

namespace zeroplan {
namespace {

void softmax_cross_entropy(DecodeContext& c) {
  if (c.has(2)) throw Error("class weights are not supported; leave them out");
  if (c.wants(1)) throw Error("its second output (log_prob) is not supported; use LogSoftmax");
  const std::string reduction = c.attr_string("reduction", "mean");
  if (reduction != "mean" && reduction != "sum") throw Error(fmt::format("reduction '{}' is not supported; use mean or sum", reduction));
  const Shape s = c.shape(0);
  if (s.size() < 2) throw Error("its scores need a class axis 1");
  std::vector<int64_t> classes_last(s.size());
  std::iota(classes_last.begin(), classes_last.end(), 0);
  classes_last.erase(classes_last.begin() + 1);
  classes_last.push_back(1);
  const int64_t rows = elements(c.shape(1));
  const ValueId logits = c.build.reshape(c.build.transpose(c.in(0), classes_last), {rows, s[1]});
  const ValueId labels = c.build.reshape(c.in(1), {rows});
  Attributes attributes;
  if (c.node.find("ignore_index")) attributes.set(Attr::ignore_index, c.attr_int("ignore_index", 0));
  const std::vector<ValueId> y = c.build.add_multi(OpKind::cross_entropy, {logits, labels}, attributes);
  c.out(0, reduction == "sum" ? y[0] : c.build.add(OpKind::div, {y[0], y[1]}));
}

}  // namespace

void add_loss_decoders(DecoderTable& t) { t["SoftmaxCrossEntropyLoss"] = softmax_cross_entropy; }

}  // namespace zeroplan
