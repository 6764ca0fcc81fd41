// What a plan keeps, gathers and reduces, counted on the plan and measured while it runs.
#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/memory.h"
#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

const TinyCase& chain_of_four() {
  static const TinyCase tiny(tiny_chain({10, 100, 10, 100, 10}), {{"x", random_tensor({8, 10}, 3)}});
  return tiny;
}

// One unit per weight.
CompileOptions chain_options(int ranks, int prefetch = 1) {
  CompileOptions options;
  options.ranks = ranks;
  options.batch = 4;
  options.prefetch = prefetch;
  options.unit_patterns = {"w\\d"};
  return options;
}

int64_t bytes_of_kind(const Plan& plan, TensorKind kind) {
  int64_t bytes = 0;
  std::set<int64_t> counted;  // views of a buffer begin inside it
  for (const PlanTensor& t : plan.tensors)
    if (t.kind == kind && t.shape.size() == 1 && counted.insert(t.offset).second) bytes += tensor_span_bytes(t);
  return bytes;
}

int64_t count_steps(const PlanProgram& program, StepKind kind) {
  return std::count_if(program.steps.begin(), program.steps.end(), [kind](const Step& s) { return s.kind == kind; });
}

// Most units that are gathered at once, in issue order; none may be left at the end.
int most_live_units(const PlanProgram& program) {
  int live = 0, most = 0;
  for (const Step& step : program.steps) {
    live += step.kind == StepKind::all_gather ? 1 : step.kind == StepKind::free ? -1 : 0;
    most = std::max(most, live);
  }
  EXPECT_EQ(live, 0);
  return most;
}

int64_t widest_window(const Plan& plan, const PlanProgram& program) {
  int64_t live = 0, most = 0;
  for (const Step& step : program.steps) {
    if (step.kind != StepKind::all_gather && step.kind != StepKind::free) continue;
    const PlanUnit& unit = plan.units[step.unit];
    int64_t bytes = 0;
    for (const UnitParameter& p : unit.parameters) bytes += p.elements * dtype_bytes(unit.dtype);
    live += step.kind == StepKind::all_gather ? bytes : -bytes;
    most = std::max(most, live);
  }
  return most;
}

TEST(T06, BytesPerRankBeforeAlignment) {
  const Plan plan = chain_of_four().compile(chain_options(4));
  ASSERT_EQ(plan.units.size(), 4u);
  int64_t shards = 0;
  for (const PlanUnit& unit : plan.units) {
    ASSERT_EQ(unit.parameters.size(), 1u);
    EXPECT_EQ(unit.shard_elements, 256);  // 250 rounded up to 64
    shards += unit.parameters[0].elements * dtype_bytes(unit.dtype) / plan.header.ranks;
  }
  EXPECT_EQ(shards, 4000);
  EXPECT_EQ(bytes_of_kind(plan, TensorKind::weights), 4 * 1024);
  EXPECT_EQ(bytes_of_kind(plan, TensorKind::gradients), 4 * 1024);
  EXPECT_EQ(bytes_of_kind(plan, TensorKind::moments), 8 * 1024);
  EXPECT_LE(widest_window(plan, *find_program(plan, Program::micro_step)), 8000);
}

TEST(T06, MeasuredEqualsPrinted) {
  ExecutorOptions check;
  check.check_memory = true;
  for (CompileOptions options : everywhere(chain_options(1))) {
    const Plan plan = chain_of_four().compile(options);
    int64_t printed = 0;
    for (const MemoryRow& row : memory_rows(plan)) printed += row.bytes;
    const auto executor = make_executor(plan, check);
    const auto data = chain_of_four().data(plan);
    EXPECT_EQ(executor->arena_bytes(), printed) << describe(options);
    EXPECT_EQ(executor->train_step(*data, 0, nullptr, scalars_of_step(0, 0.1)).arena_high_water, printed) << describe(options);
    EXPECT_THAT(memory_table(plan), HasSubstr(std::to_string(printed))) << describe(options);
  }
}

TEST(T07, LiveUnitsByPrefetch) {
  for (const auto& [prefetch, most] : std::map<int, int>{{0, 1}, {1, 2}, {3, 4}}) {
    const Plan plan = chain_of_four().compile(chain_options(4, prefetch));
    EXPECT_EQ(plan.header.max_live_units, most);
    EXPECT_EQ(most_live_units(*find_program(plan, Program::micro_step)), most);
    EXPECT_LE(most_live_units(*find_program(plan, Program::save)), most);
  }
}

TEST(T07, AHostThatLagsChangesNothing) {
  for (const int prefetch : {0, 1, 3}) {
    ExecutorOptions check, delayed;
    check.check_memory = delayed.check_memory = true;
    delayed.before_step = [](int rank, Program program, int index, const Step&) {
      if (program == Program::micro_step && (index + rank) % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    const TinyRun prompt = train(chain_of_four(), chain_options(4, prefetch), sgd_run(0.01, 3), check);
    const TinyRun late = train(chain_of_four(), chain_options(4, prefetch), sgd_run(0.01, 3), delayed);
    EXPECT_EQ(prompt.losses(), late.losses());
    EXPECT_TRUE(prompt.weights == late.weights);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(prompt.steps[i].arena_high_water, late.steps[i].arena_high_water);
  }
}

// Two untied tables of 256,000 bytes and one small weight: idx → (A[idx] + B[idx])·W → mean.
TinyCase two_tables() {
  TinyModel model;
  model.input("idx", DType::i64, {"N"});
  for (const char* table : {"a", "b"})
    model.weight(table, {1000, 64}, random_values(64000, table[0])).node("Gather", {table, "idx"}, {std::string("h") + table});
  model.node("Add", {"ha", "hb"}, {"h"}).ints("shape", {-1, 8, 8}).node("Reshape", {"h", "shape"}, {"r"});
  model.weight("w", {8, 8}, random_values(64, 3)).node("MatMul", {"r", "w"}, {"y"});
  model.node("ReduceMean", {"y"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return TinyCase(model, {{"idx", HostTensor::of(DType::i64, {8}, std::vector<int64_t>{0, 999, 17, 17, 500, 3, 998, 0})}});
}

int64_t largest_reduce_buffer(const Plan& plan) {
  int64_t most = 0;
  for (const PlanTensor& t : plan.tensors)
    if (t.kind == TensorKind::reduce_buffer) most = std::max(most, tensor_span_bytes(t));
  return most;
}

TEST(T09, ReduceLimitSplitsUnitsAndKeepsEveryBit) {
  const TinyCase tiny = two_tables();
  for (const int ranks : {1, 2, 4}) {
    CompileOptions options = sgd_compile(8, ranks, 3, 4);
    options.unit_bytes = 1 << 20;
    EXPECT_GE(largest_reduce_buffer(tiny.compile(options)), 512000);
    const Weights whole = gradients(tiny, options);
    options.reduce_bytes = 300000;
    const Plan plan = tiny.compile(options);
    EXPECT_GE(largest_reduce_buffer(plan), 256000);
    EXPECT_LE(largest_reduce_buffer(plan), 300000);
    const Weights split = gradients(tiny, options);
    ASSERT_EQ(split.size(), 3u);
    EXPECT_TRUE(split == whole) << ranks;
    EXPECT_NE(split.at("a").get(17 * 64), 0);
  }
}

// Weights [5,3], [7] and [1] in units of their own.
TinyCase odd_sizes() {
  TinyModel model;
  model.input("x", DType::f32, {"N", 5}).input("z", DType::f32, {"N", 7}).ints("axis", {1});
  model.weight("w1", {5, 3}, random_integers(15, 1, 3)).weight("w2", {7}, random_integers(7, 2, 3)).weight("w3", {1}, {2});
  model.node("MatMul", {"x", "w1"}, {"y"})
      .node("ReduceSum", {"y", "axis"}, {"a"})
      .node("Mul", {"z", "w2"}, {"u"})
      .node("ReduceSum", {"u", "axis"}, {"b"});
  model.node("Add", {"a", "b"}, {"c"})
      .node("Mul", {"c", "w3"}, {"d"})
      .node("ReduceMean", {"d"}, {"loss"}, {{"keepdims", int64_t{0}}})
      .loss();
  return TinyCase(model, {{"x", floats({12, 5}, random_integers(60, 3, 4))}, {"z", floats({12, 7}, random_integers(84, 4, 4))}});
}

TEST(T24, PayloadsAreMultiplesOfSixteenBytes) {
  const TinyCase tiny = odd_sizes();
  CompileOptions options = sgd_compile(12, 1, 3, 12);
  options.unit_patterns = {"w\\d"};
  const Weights dense = gradients(tiny, options);
  for (options.ranks = 2; options.ranks <= 4; ++options.ranks)
    for (options.stage = 0; options.stage <= 3; ++options.stage) {
      const Plan plan = tiny.compile(options);
      EXPECT_EQ(plan.units.size(), 3u);
      for (const PlanProgram& program : plan.programs)
        for (const Step& step : program.steps) {
          if (step.kind != StepKind::all_gather && step.kind != StepKind::reduce_scatter && step.kind != StepKind::all_reduce) continue;
          const Operand& part = step.kind == StepKind::reduce_scatter ? step.outputs[0] : step.inputs[0];
          const PlanTensor& payload = plan.tensors[part.tensor];
          EXPECT_GT(tensor_span_bytes(payload), 0);
          EXPECT_EQ(tensor_span_bytes(payload) % 16, 0) << describe(options) << " " << payload.name;
          EXPECT_EQ(payload.offset % 16, 0) << describe(options) << " " << payload.name;
        }
      EXPECT_TRUE(gradients(tiny, options) == dense) << describe(options);
    }
}

// Four equal units: each is gathered once forward and at most once backward, and reduced once.
TEST(T25, CollectivesPerMicroStep) {
  for (const int prefetch : {0, 1, 3}) {
    const Plan plan = chain_of_four().compile(chain_options(4, prefetch));
    const PlanProgram& micro_step = *find_program(plan, Program::micro_step);
    const int64_t gathers = count_steps(micro_step, StepKind::all_gather);
    EXPECT_GE(gathers, 4);
    EXPECT_LE(gathers, 7);  // the last unit is kept from forward to backward
    EXPECT_EQ(count_steps(micro_step, StepKind::free), gathers);
    EXPECT_EQ(count_steps(micro_step, StepKind::reduce_scatter), 4);
    EXPECT_EQ(count_steps(micro_step, StepKind::all_reduce), 0);
    std::map<int32_t, int> by_unit;
    for (const Step& step : micro_step.steps) by_unit[step.unit] += step.kind == StepKind::all_gather;
    for (const auto& [unit, count] : by_unit) EXPECT_LE(count, 2) << unit;
  }
}

TEST(T25, ReplicatedWeightsAreNotGatheredInAMicroStep) {
  CompileOptions options = chain_options(4);
  for (options.stage = 0; options.stage <= 2; ++options.stage) {
    const Plan plan = chain_of_four().compile(options);
    EXPECT_EQ(count_steps(*find_program(plan, Program::micro_step), StepKind::all_gather), 0);
    EXPECT_EQ(count_steps(*find_program(plan, Program::micro_step), StepKind::reduce_scatter), 4);
    EXPECT_EQ(count_steps(*find_program(plan, Program::update), StepKind::all_gather), 4);
  }
}

}  // namespace
}  // namespace zeroplan
