#include <cmath>

#include "base/error.h"
#include "tools/architectures/model_writer.h"

namespace zeroplan {

// x [batch, 64] → 256 → 256 → 10 classes, labels [batch].
void build_mlp(ModelWriter& m, const NewOptions& options) {
  if (options.context != 0) throw Error("--context goes with gpt2 and llama models; an mlp has none");
  const std::vector<int64_t> widths = {64, 256, 256, 10};
  m.input("x", false, options.batch, {widths.front()});
  m.input("labels", true, options.batch, {});
  std::string h = "x";
  for (size_t layer = 0; layer + 1 < widths.size(); ++layer) {
    const std::string name = "layers." + std::to_string(layer);
    const double deviation = std::sqrt(2.0 / static_cast<double>(widths[layer]));
    const std::string weight = m.weight(name + ".weight", {widths[layer + 1], widths[layer]}, {.deviation = deviation});
    const std::string bias = m.weight(name + ".bias", {widths[layer + 1]}, {});
    h = m.node("Gemm", {h, weight, bias});
    m.attribute("transB", int64_t{1});
    if (layer + 2 < widths.size()) h = m.node("Relu", {h});
  }
  m.node("SoftmaxCrossEntropyLoss", {h, "labels"}, "loss");
  m.scalar_output("loss");
}

}  // namespace zeroplan
