// Where numbers are kept in which type: masters, wires, running statistics.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

CompileOptions in(DType precision, CompileOptions options) {
  options.precision = precision;
  return options;
}

// No float16 and no bfloat16 holds these.
const std::vector<double> kStart = {0.1, 1.0 / 3, -2.7182817, 1.0000001};

// x[N,4] · w[4,1] → loss = mean.
TinyCase product(const std::vector<double>& x) {
  TinyModel model;
  model.input("x", DType::f32, {"N", 4}).weight("w", {4, 1}, kStart);
  model.node("MatMul", {"x", "w"}, {"y"}).node("ReduceMean", {"y"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return TinyCase(model, {{"x", floats({static_cast<int64_t>(x.size()) / 4, 4}, x)}});
}

// The model computes with rounded weights, the update and the export with those of the file.
TEST(Master, KeepsWhatTheFileHas) {
  const TinyCase tiny = product(std::vector<double>(16, 1));
  double rounded = 0;
  for (const double w : kStart) rounded += HostTensor::of<double>(DType::bf16, {}, {w}).get(0);
  for (const CompileOptions& options : everywhere(in(DType::bf16, sgd_compile(4, 1, 3, 4)))) {
    const TinyRun still = train(tiny, options, sgd_run(0, 2));
    EXPECT_NEAR(still.losses()[0], rounded, 1e-6) << describe(options);
    EXPECT_TRUE(still.weights.at("w") == floats({4, 1}, kStart)) << describe(options);
    // A hundred steps of 2^-12 move a weight of 1 that bfloat16 would never see moved.
    const TinyRun moved = train(tiny, options, sgd_run(0x1p-12, 100));
    EXPECT_NEAR(moved.weights.at("w").get(3), 1.0000001 - 100 * 0x1p-12, 1e-6) << describe(options);
    EXPECT_LT(moved.losses().back(), moved.losses()[0] - 0.05) << describe(options);
  }
}

TEST(Master, FrozenWeightsAreThoseOfTheFile) {
  const TinyCase tiny(tiny_chain({3, 4, 1}), {{"x", random_tensor({4, 3}, 1)}});
  const TinyRun free = train(tiny, sgd_compile(4), sgd_run(0, 1));
  for (CompileOptions options : everywhere(in(DType::bf16, sgd_compile(4, 1, 3, 4)))) {
    options.freeze = {"^w0$"};
    const TinyRun run = train(tiny, options, sgd_run(0.1, 2));
    EXPECT_TRUE(run.weights.at("w0") == free.weights.at("w0")) << describe(options);
    EXPECT_FALSE(run.weights.at("w1") == free.weights.at("w1")) << describe(options);
  }
}

// Eight ranks hold the gradients 256 and seven times 1: the sum is 263, which bfloat16 does not have.
TEST(T14, GradientsOfEightRanksAreAddedInFloat) {
  std::vector<double> x(32, 0);
  for (int i = 0; i < 8; ++i) x[4 * i] = i == 0 ? 256 : 1;
  for (const DType precision : {DType::f32, DType::bf16})
    for (const DType wire : {DType::f32, DType::bf16})
      for (int stage = 0; stage <= 3; ++stage) {
        CompileOptions options = in(precision, sgd_compile(8, 8, stage, 8));
        options.reduce_dtype = wire;
        EXPECT_EQ(gradients(product(x), options).at("w").get(0), 32.875) << describe(options);
        std::vector<double> wide = x;
        wide[0] = 257;  // the wire rounds it to 256
        const double sum = wire == DType::bf16 || precision == DType::bf16 ? 263 : 264;
        EXPECT_EQ(gradients(product(wide), options).at("w").get(0), sum / 8) << describe(options);
      }
}

// Weights [5,3], [7] and [1] in 16 bits.
TinyCase odd_shapes() {
  TinyModel model;
  model.input("x", DType::f32, {"N", 5}).input("z", DType::f32, {"N", 7});
  model.weight("a", {5, 3}, random_values(15, 1)).weight("b", {7}, random_values(7, 2)).weight("c", {1}, {0.75});
  model.node("MatMul", {"x", "a"}, {"xa"}).node("Mul", {"z", "b"}, {"zb"}).node("Relu", {"zb"}, {"r"});
  model.ints("axes", {1}).node("ReduceSum", {"xa", "axes"}, {"s"}, {{"keepdims", int64_t{0}}});
  model.node("ReduceSum", {"r", "axes"}, {"t"}, {{"keepdims", int64_t{0}}});
  model.node("Add", {"s", "t"}, {"u"}).node("Mul", {"u", "c"}, {"v"}).node("Mul", {"v", "v"}, {"w"});
  model.node("ReduceMean", {"w"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return TinyCase(model, {{"x", random_tensor({24, 5}, 3)}, {"z", random_tensor({24, 7}, 4)}});
}

int64_t payload(const Plan& plan, const Step& step) {
  const PlanTensor& t = plan.tensors[step.kind == StepKind::reduce_scatter ? step.inputs[1].tensor : step.inputs[0].tensor];
  const int64_t bytes = elements(t.shape) * dtype_bytes(t.dtype);
  return step.kind == StepKind::reduce_scatter ? bytes / plan.header.ranks : bytes;
}

TEST(T24, PayloadsAreWholeAndResultsDense) {
  const TinyCase tiny = odd_shapes();
  for (const DType wire : {DType::f32, DType::bf16}) {
    CompileOptions dense = in(DType::bf16, sgd_compile(12, 1, 0, 12));
    dense.reduce_dtype = wire;
    dense.unit_patterns = {"[abc]"};
    const TinyRun reference = train(tiny, dense, sgd_run(0.01, 4));
    for (CompileOptions options : everywhere(dense, {2, 3, 4})) {
      const Plan plan = tiny.compile(options);
      for (const PlanProgram& program : plan.programs)
        for (const Step& step : program.steps)
          if (step.kind == StepKind::all_gather || step.kind == StepKind::reduce_scatter || step.kind == StepKind::all_reduce)
            EXPECT_EQ(payload(plan, step) % 16, 0) << describe(options);
      for (const PlanUnit& unit : plan.units) EXPECT_EQ(unit.shard_elements * dtype_bytes(unit.dtype) % 128, 0) << describe(options);
      const TinyRun run = train(tiny, options, sgd_run(0.01, 4));
      EXPECT_EQ(run.losses(), reference.losses()) << describe(options);
      for (const auto& [name, weights] : reference.weights)
        EXPECT_TRUE(run.weights.at(name) == weights) << describe(options) << " " << name;
    }
  }
}

// x[N,1,1] through a convolution by 1, which makes it 16-bit, and a BatchNormalization; as T18 has it.
TEST(T18, RunningStatisticsStayFloat) {
  TinyModel model;
  model.input("x", DType::f32, {"N", 1, 1}).weight("k", {1, 1, 1}, {1});
  model.weight("bn.weight", {1}, {1}).weight("bn.bias", {1}, {0}).weight("bn.mean", {1}, {0}).weight("bn.var", {1}, {1});
  model.node("Conv", {"x", "k"}, {"y"});
  model.node("BatchNormalization", {"y", "bn.weight", "bn.bias", "bn.mean", "bn.var"}, {"n", "m", "v"},
             {{"training_mode", int64_t{1}}, {"momentum", 0.9}, {"epsilon", 1e-5}});
  model.node("Mul", {"n", "n"}, {"square"}).node("ReduceMean", {"square"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  const TinyCase tiny(model, {{"x", floats({4, 1, 1}, {0, 2, 4, 6})}});
  for (const DType precision : {DType::bf16, DType::f16})
    for (const bool sync : {false, true})
      for (CompileOptions options : everywhere(in(precision, sgd_compile(4, 1, 3, 0)))) {
        options.sync_bn = sync;
        const Plan plan = tiny.compile(options);
        const PlanUnit& unit = plan.units[plan.parameters[parameter_index(plan, "bn.mean")].unit];
        EXPECT_EQ(unit.dtype, DType::f32) << describe(options);
        const TinyRun run = train(tiny, options, sgd_run(0.1, 1));
        EXPECT_NEAR(run.weights.at("bn.mean").get(0), 0.3, 1e-7) << describe(options);
        EXPECT_NEAR(run.weights.at("bn.var").get(0), 1.4, 1e-6) << describe(options);
      }
}

}  // namespace
}  // namespace zeroplan
