#pragma once
// Models that may be cut into micro-batches, and those that may not: a case builds y from x[N,3,2] and w[2,2].
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {

constexpr int64_t kBatch = 4, kSteps = 3, kWidth = 2;
struct SampleCase {
  const char* name;
  void (*build)(ModelBuilder& m);
  bool alone = false;  // y is the loss; otherwise its mean square is
};
inline void PrintTo(const SampleCase& c, std::ostream* out) { *out << c.name; }

class Samples : public testing::TestWithParam<SampleCase> {
 protected:
  std::string save(const TemporaryFolder& folder) const {
    ModelBuilder m;
    m.input("x", {"N", "3", "2"}).output("loss", {});
    m.weight("w", {kWidth, kWidth}, {0.5f, -1, 0.25f, 2});
    GetParam().build(m);
    if (GetParam().alone) {
      m.add("Identity", {"y"}, "loss");
    } else {
      m.add("Mul", {"y", "y"}, "square");
      m.add("ReduceMean", {"square"}, "loss", {{"keepdims", 0}});
    }
    return m.save(folder.file("m.onnx"));
  }

  static ImportOptions cut_into(int64_t micro_batches) {
    ImportOptions options = samples(kBatch / micro_batches);
    options.micro_batches = micro_batches;
    return options;
  }

  static HostTensor data(int64_t first, int64_t count) {
    HostTensor x(DType::f32, {count, kSteps, kWidth});
    for (int64_t i = 0; i < x.count(); ++i) x.set(i, 0.5 + static_cast<double>((first * kSteps * kWidth + i) * 7 % 11) / 8);
    return x;
  }

  // The loss of the batch comes out of its micro-batches.
  void expect_apart() const {
    TemporaryFolder folder;
    const std::string path = save(folder);
    const double whole = evaluate_loss(import_model(path, cut_into(1)), {{"x", data(0, kBatch)}});
    ASSERT_NE(whole, 0);
    for (const int64_t micro_batches : {2, 4}) {
      const ImportedModel model = import_model(path, cut_into(micro_batches));
      const double pieces =
          evaluate_in_pieces(model, kBatch, micro_batches, [](int64_t first, int64_t count) { return data(first, count); });
      EXPECT_NEAR(pieces, whole, 1e-5 * std::abs(whole)) << micro_batches;
    }
  }

  void expect_meeting() const {
    TemporaryFolder folder;
    const std::string path = save(folder);
    EXPECT_NO_THROW(evaluate_loss(import_model(path, cut_into(1)), {{"x", data(0, kBatch)}}));
    for (const int64_t micro_batches : {2, 4}) {
      const auto cut = [&] { import_model(path, cut_into(micro_batches)); };
      EXPECT_THAT(cut, testing::ThrowsMessage<Error>(testing::HasSubstr("use one micro-batch"))) << micro_batches;
    }
  }
};

inline std::string sample_case_name(const testing::TestParamInfo<SampleCase>& info) { return info.param.name; }

}  // namespace zeroplan
