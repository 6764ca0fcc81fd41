// Plans in 16 bits: what each state holds, what goes over the wire, and that the verifier finds nothing wrong.
#include <map>

#include <gtest/gtest.h>

#include "base/error.h"
#include "runtime/plan/verifier.h"
#include "tests/lower/models.h"

namespace zeroplan::test {
namespace {

CompileOptions half_options(int ranks, int stage, DType precision, std::optional<DType> wire = {}) {
  CompileOptions options = options_of(ranks, stage);
  options.precision = precision;
  options.reduce_dtype = wire;
  return options;
}

std::string violations(const Plan& plan) {
  std::string text;
  for (const Violation& v : verify_plan(plan).violations) text += v.rule + ": " + v.message + "\n";
  return text;
}

int64_t bytes_of(const Plan& plan, TensorKind kind) {
  std::map<int64_t, int64_t> by_offset;  // views of one storage count once
  for (const PlanTensor& t : plan.tensors)
    if (t.kind == kind && t.arena == Arena::state && !t.per_rank)
      by_offset[t.offset] = std::max(by_offset[t.offset], elements(t.shape) * dtype_bytes(t.dtype));
  int64_t bytes = 0;
  for (const auto& [offset, size] : by_offset) bytes += size;
  return bytes;
}

TEST(Precision, EveryStageIsVerified) {
  for (const DType precision : {DType::bf16, DType::f16})
    for (const std::optional<DType> wire : {std::optional<DType>{}, std::optional(DType::bf16), std::optional(DType::f16)})
      for (const int ranks : {1, 2, 3})
        for (int stage = 0; stage <= 3; ++stage)
          for (const bool eval : {false, true}) {
            CompileOptions options = half_options(ranks, stage, precision, wire);
            options.eval = eval;
            EXPECT_EQ(violations(compile_graph(residual(2, 8, 16, 32), options)), "")
                << dtype_name(precision) << " ranks " << ranks << " stage " << stage;
          }
}

TEST(Precision, WiresOfFloatTrainingToo) {
  for (int stage = 0; stage <= 3; ++stage)
    EXPECT_EQ(violations(compile_graph(residual(2, 8, 16, 32), half_options(2, stage, DType::f32, DType::bf16))), "");
}

// 2 bytes of weights, 4 of gradients and 12 of master and moments, each whole or a share.
TEST(Precision, BytesPerParameter) {
  for (int stage = 0; stage <= 3; ++stage) {
    CompileOptions options = half_options(2, stage, DType::bf16);
    options.micro_batches = options.batch = 4;  // two rounds: gradients are accumulated in state
    const Plan plan = compile_graph(chain(4, {64, 64}), options);
    const int64_t count = 64 * 64;
    EXPECT_EQ(bytes_of(plan, TensorKind::weights), 2 * (stage == 3 ? count / 2 : count)) << stage;
    EXPECT_EQ(bytes_of(plan, TensorKind::master), 4 * (stage == 0 ? count : count / 2)) << stage;
    EXPECT_EQ(bytes_of(plan, TensorKind::moments), 8 * (stage == 0 ? count : count / 2)) << stage;
    EXPECT_EQ(bytes_of(plan, TensorKind::gradients), 4 * (stage <= 1 ? count + count / 2 : count / 2)) << stage;
  }
}

const Step& first(const Plan& plan, Program program, StepKind kind) {
  for (const Step& step : find_program(plan, program)->steps)
    if (step.kind == kind) return step;
  throw Error("no such step");
}

TEST(Precision, TypesOnTheWire) {
  for (const DType wire : {DType::f32, DType::f16}) {
    const Plan plan = compile_graph(residual(2, 8, 16, 32), half_options(2, 3, DType::bf16, wire));
    const Step& gather = first(plan, Program::micro_step, StepKind::all_gather);
    const Step& scatter = first(plan, Program::micro_step, StepKind::reduce_scatter);
    const Step& save = first(plan, Program::save, StepKind::all_gather);
    EXPECT_EQ(plan.tensors[gather.inputs[0].tensor].dtype, DType::bf16);
    EXPECT_EQ(plan.tensors[gather.outputs[0].tensor].dtype, DType::bf16);
    EXPECT_EQ(plan.tensors[scatter.inputs[1].tensor].dtype, wire);
    EXPECT_EQ(plan.tensors[scatter.outputs[0].tensor].dtype, DType::f32);
    EXPECT_EQ(plan.tensors[save.outputs[0].tensor].dtype, DType::f32);  // what is exported is the master
    EXPECT_EQ(plan.tensors[save.inputs[0].tensor].kind, TensorKind::master);
  }
}

// A gather moves what the state holds: no cast stands before it, and none between a parameter's product and its reduction.
TEST(Precision, NoCastsAroundCollectives) {
  const Plan plan = compile_graph(chain(8, {16, 16, 16}), half_options(2, 3, DType::bf16));
  for (const Step& step : find_program(plan, Program::micro_step)->steps) {
    if (step.op != OpKind::cast) continue;
    for (const Operand& o : step.outputs) EXPECT_NE(plan.tensors[o.tensor].kind, TensorKind::reduce_buffer);
    for (const Operand& o : step.inputs) EXPECT_NE(plan.tensors[o.tensor].kind, TensorKind::slot);
  }
}

}  // namespace
}  // namespace zeroplan::test
