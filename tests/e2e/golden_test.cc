// Ten training steps of exported models against their float64 reference, at every stage and several rank counts.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/golden.h"
#include "tests/e2e_support/npz.h"
#include "tests/sanitized.h"

namespace zeroplan {
namespace {

using Case = std::tuple<std::string, DType>;

// Trained at every stage and with up to eight ranks; the others at stage 3 alone, with one rank and with two.
bool is_swept(const std::string& model) {
  if (kSanitized) return model == "mlp";
  return model == "mlp" || model == "gpt2_nano_dynamo" || model == "gpt2_nano_ts" || model == "gpt2_nano_logits";
}

class GoldenTest : public testing::TestWithParam<Case> {};

TEST_P(GoldenTest, LossesAtEveryStageAndRankCount) {
  const auto& [model, precision] = GetParam();
  const std::vector<int> rank_counts = is_swept(model) ? std::vector<int>{1, 2, 4, 8} : std::vector<int>{1, 2};
  const double tolerance = precision == DType::f64 ? 1e-9 : 1e-5;
  for (const char* file : {"golden", "golden2", "golden3"}) {
    const Golden golden = read_golden(model, file);
    for (const int ranks : rank_counts)
      for (int stage = is_swept(model) ? 0 : 3; stage <= 3; ++stage) {
        CompileOptions options = golden.compile;
        options.ranks = ranks;
        options.stage = stage;
        options.precision = precision;
        const GoldenRun run = run_golden(model, golden, options);
        ASSERT_EQ(run.losses.size(), golden.losses.size());
        for (size_t i = 0; i < run.losses.size(); ++i)
          EXPECT_LE(std::abs(run.losses[i] - golden.losses[i]), tolerance * std::abs(golden.losses[i]))
              << file << " ranks " << ranks << " stage " << stage << " step " << i;
      }
  }
}

// By the name that the original model used, or the initializer that golden.json says it was exported as.
int parameter_index(const Plan& plan, const std::string& name, const std::string& initializer) {
  const auto index_where = [&](auto matches) {
    const auto found =
        std::find_if(plan.parameters.begin(), plan.parameters.end(), [&](const PlanParameter& p) { return matches(p.parameter); });
    return found == plan.parameters.end() ? -1 : static_cast<int>(found - plan.parameters.begin());
  };
  const int by_name = index_where([&](const Parameter& p) { return p.name == name; });
  return by_name >= 0 ? by_name : index_where([&](const Parameter& p) { return p.source.initializer == initializer; });
}

// The reference is in the original model's layout; an exported Linear weight may be stored transposed.
double element_in_layout(const HostTensor& reference, const Shape& shape, int64_t index) {
  if (reference.shape() == shape || shape.size() != 2) return reference.get(index);
  const int64_t row = index / shape[1], column = index % shape[1];
  return reference.get(column * shape[0] + row);
}

// Recurrent layers: the gates i, f, g, o of the original are i, o, f, g in the file, and both biases are one tensor.
HostTensor recurrent_gradient(const HostTensor& gradient, const std::string& name, const Shape& shape) {
  const int64_t block = elements(shape) / 4, first = name.find("bias_hh") == std::string::npos ? 0 : 4 * block;
  HostTensor part(gradient.dtype(), shape);
  const int64_t lies[] = {0, 2, 3, 1};
  for (int64_t i = 0; i < part.count(); ++i) part.set(i, gradient.get(first + lies[i / block] * block + i % block));
  return part;
}

TEST_P(GoldenTest, GradientsOfTheFirstStep) {
  const auto& [model, precision] = GetParam();
  const double tolerance = precision == DType::f64 ? 1e-9 : 1e-4;
  const std::map<std::string, HostTensor> references = read_npz(model_folder(model) + "/grads.npz");
  ASSERT_GE(references.size(), 4u);
  const Golden golden = read_golden(model, "golden");
  CompileOptions options = golden.compile;
  options.ranks = 2;
  options.precision = precision;
  const Plan plan = compile(model_folder(model) + "/model.onnx", options);
  const auto executor = make_executor(plan);
  const auto data = open_npy_folder(model_folder(model) + "/data", plan);
  RunScalars scalars;
  scalars.step = 1;
  const StepReport report = executor->accumulate(*data, 0, nullptr, scalars);
  for (const auto& [name, reference] : references) {
    const int parameter = parameter_index(plan, name, golden.initializers.at(name));
    ASSERT_GE(parameter, 0) << name;
    HostTensor gradient = executor->gradient(parameter);
    if (name.rfind("rnn.", 0) == 0) gradient = recurrent_gradient(gradient, name, reference.shape());
    ASSERT_EQ(gradient.count(), reference.count()) << name;
    // Square weights exported transposed have the same shape either way: the better of the two layouts counts.
    const bool square = gradient.shape().size() == 2 && gradient.shape()[0] == gradient.shape()[1];
    double largest = 0, worst = 0, worst_transposed = 0;
    for (int64_t i = 0; i < gradient.count(); ++i) {
      const double mine = gradient.get(i) / report.weight;
      largest = std::max(largest, std::abs(reference.get(i)));
      worst = std::max(worst, std::abs(mine - element_in_layout(reference, gradient.shape(), i)));
      if (square) {
        const int64_t n = gradient.shape()[0];
        worst_transposed = std::max(worst_transposed, std::abs(mine - reference.get(i % n * n + i / n)));
      }
    }
    EXPECT_GT(largest, 0) << name;
    EXPECT_LE(square ? std::min(worst, worst_transposed) : worst, tolerance * largest) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest,
                         testing::Combine(testing::Values("mlp", "gpt2_nano_dynamo", "gpt2_nano_ts", "gpt2_nano_logits", "gpt2_nano_static",
                                                          "gpt2_nano_zero_bias", "llama_nano", "llama_nano_op23", "llama_nano_op23_rope",
                                                          "lstm_nano", "bert_nano", "resnet_nano_eval", "unet_nano", "vit_nano"),
                                          testing::Values(DType::f32, DType::f64)),
                         [](const testing::TestParamInfo<Case>& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param), std::get<1>(info.param) == DType::f64 ? "fp64" : "fp32");
                         });

}  // namespace
}  // namespace zeroplan
