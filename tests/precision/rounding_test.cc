// mlp against mlp_roundings.py, which rounds where --precision says: a cast in another place shows.
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/e2e_support/golden.h"
#include "tests/e2e_support/tested_device.h"
#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

class Rounding : public testing::TestWithParam<DType> {};

TEST_P(Rounding, OfEveryValueIsWhereItBelongs) {
  const std::string way = tested_device() == DeviceKind::cuda ? " with bias" : "";
  const nlohmann::json want =
      nlohmann::json::parse(read_file(model_folder("mlp") + "/golden_half.json")).at(std::string(dtype_name(GetParam())) + way);
  const Golden golden = read_golden("mlp", "golden");
  CompileOptions options = golden.compile;
  options.precision = GetParam();
  options.micro_batches = 1;
  const GoldenRun run = run_golden("mlp", golden, options);
  const std::vector<double> losses = want.at("losses");
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(run.losses[i], losses[i], 2e-6 * losses[i]) << "step " << i;
  for (const char* name : {"net.out.bias", "net.fc1.bias"}) {
    const std::vector<double> weights = want.at(name);
    const HostTensor got = run.executor->weights(parameter_index(run.executor->plan(), name));
    for (size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(got.get(static_cast<int64_t>(i)), weights[i], 2e-6) << name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Rounding, testing::Values(DType::bf16, DType::f16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

}  // namespace
}  // namespace zeroplan
