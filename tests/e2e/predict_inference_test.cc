// `zeroplan predict` leaves training mode, whatever the file states.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/npy.h"
#include "base/temporary_folder.h"
#include "tests/e2e_support/command.h"
#include "tests/e2e_support/tiny_run.h"
#include "tests/onnx/text_model.h"
#include "tests/paths/paths.h"

namespace zeroplan {
namespace {

constexpr const char* kTraining = R"(<ir_version: 8, opset_import: ["" : 15]>
case (float[N,2] x) => (float[N,2] y, float[N,2] z)
<float[2] w = {2, 3}, float[2] s = {1, 2}, float[2] b = {0, 1}, float[2] m = {0.5, 0}, float[2] v = {4, 1}> {
  h = Mul (x, w)
  half = Constant <value = float {0.5}> ()
  on = Constant <value = bool {1}> ()
  y, mask = Dropout (h, half, on)
  z, next_m, next_v = BatchNormalization <training_mode = 1> (x, s, b, m, v)
})";

TEST(PredictInference, DropoutPassesAndRunningStatisticsCount) {
  const TemporaryFolder folder, out;
  const HostTensor x = floats({3, 2}, {1, -2, 0.5, 4, -3, 0.25});
  save_text(folder.file("model.onnx"), kTraining);
  write_npy(folder.file("x.npy"), x);
  const std::string to = out.file("made/here");
  const Outcome outcome =
      run_command(fmt::format("{} predict {} --data {} -o {} --batch 2", kProgram, folder.file("model.onnx"), folder.path(), to));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const HostTensor y = NpyFile(to + "/y.npy").tensor(), z = NpyFile(to + "/z.npy").tensor();
  ASSERT_EQ(y.shape(), x.shape());
  for (int64_t i = 0; i < x.count(); ++i) {
    EXPECT_NEAR(y.get(i), x.get(i) * (i % 2 == 0 ? 2 : 3), 1e-6);
    EXPECT_NEAR(z.get(i), i % 2 == 0 ? (x.get(i) - 0.5) / 2 : x.get(i) * 2 + 1, 1e-4);
  }
}

}  // namespace
}  // namespace zeroplan
