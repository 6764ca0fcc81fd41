// A copy of a model with noise on its trained parameters: what a run of scripts/real_files.sh trains towards.
#include <cmath>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "api/zeroplan.h"
#include "base/error.h"
#include "graph/onnx/exporter.h"
#include "graph/onnx/weights.h"
#include "tools/compile_arguments.h"

namespace zeroplan {
namespace {

// Noise of `share` times the tensor's root mean square.
void add_noise(std::vector<float>& values, double share, std::mt19937_64& random) {
  double squares = 0;
  for (const float v : values) squares += static_cast<double>(v) * v;
  const double scale = share * std::sqrt(squares / static_cast<double>(values.size()));
  std::normal_distribution<double> normal;
  for (float& v : values) v += static_cast<float>(scale * normal(random));
}

void perturb(const std::string& path, const std::string& out, double share, const CompileOptions& options) {
  const ModelFile file(path);
  const ModelInspection inspection = inspect(file, options);
  if (!inspection.problems.empty()) throw ErrorList(fmt::format("{} cannot be trained:", path), inspection.problems);
  const std::vector<Parameter>& parameters = inspection.model.graph.parameters;
  export_model(path, out, parameters, [&](const TakeParameter& take) {
    std::mt19937_64 random(1);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Parameter& p = parameters[i];
      std::vector<float> values(static_cast<size_t>(elements(p.shape)));
      read_weight(*file.weights(), p.source, 0, static_cast<int64_t>(values.size()), DType::f32, values.data());
      if (p.trainable) add_noise(values, share, random);
      HostTensor stored(DType::f32, p.shape);
      std::memcpy(stored.mutable_data(), values.data(), values.size() * sizeof(float));
      stored = stored.cast(p.source.dtype);
      take(static_cast<int>(i), {stored.data(), static_cast<size_t>(stored.bytes())});
    }
  });
}

}  // namespace
}  // namespace zeroplan

int main(int argc, char** argv) {
  CLI::App app("a copy of a model with noise on its trained parameters");
  std::string model, out;
  double share = 0.1;
  zeroplan::CompileArguments compile;
  app.add_option("model", model)->required();
  app.add_option("-o,--output", out)->required();
  app.add_option("--noise", share, "relative to each tensor's root mean square");
  compile.declare(app);
  CLI11_PARSE(app, argc, argv);
  try {
    zeroplan::perturb(model, out, share, compile.finish());
  } catch (const zeroplan::Error& error) {
    fmt::print(stderr, "perturb: {}\n", error.what());
    return 1;
  }
  return 0;
}
