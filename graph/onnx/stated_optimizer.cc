#include "graph/onnx/stated_optimizer.h"

#include <fmt/format.h>

namespace zeroplan {

std::string describe(const StatedOptimizer& o) {
  std::string text = o.kind;
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) text += fmt::format(", {} {}", name, *value);
  };
  add("lr", o.lr);
  if (o.momentum != 0) add("momentum", o.momentum);
  add("beta1", o.beta1);
  add("beta2", o.beta2);
  add("eps", o.eps);
  add("weight decay", o.weight_decay);
  add("clip", o.clip);
  if (o.hugging_face) text += o.kind == "adamw" ? ", Hugging Face's form" : ", eps without correction";
  return text;
}

}  // namespace zeroplan
