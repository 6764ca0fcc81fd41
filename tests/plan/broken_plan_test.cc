// One plan per rule, broken by hand, is refused under that rule's name with the step named.
#include "tests/plan/broken_plan.h"
#include "base/error.h"
#include "runtime/plan/memory.h"

namespace zeroplan::test {
namespace {

TEST_F(BrokenPlan, FormatIndex) {
  step(kMicro, 3).inputs[0].tensor = static_cast<int32_t>(plan.tensors.size());
  EXPECT_NE(violations(plan).find("[format]"), std::string::npos);
}

TEST_F(BrokenPlan, FormatOutsideArena) {
  plan.tensors[plan.units[0].weights_tensor].offset = plan.arena_bytes[0];
  EXPECT_NE(violations(plan).find("[format]"), std::string::npos);
}

TEST_F(BrokenPlan, FormatAlignment) {
  plan.tensors[plan.units[0].weights_tensor].offset += 4;
  expect("format", kMicro, -1);
}

TEST_F(BrokenPlan, FormatGradientOfAnotherType) {
  plan.units[0].gradient_dtype = DType::f64;
  EXPECT_NE(violations(plan).find("its gradient shard"), std::string::npos);
}

// A rank's own part is counted in its own elements, whatever the unit's are.
TEST_F(BrokenPlan, RangeOfARanksOwnPart) {
  PlanTensor part = plan.tensors[plan.units[0].weights_tensor];
  part.per_rank = true;
  part.unit = 0;
  part.dtype = DType::f64;
  const auto [begin, end] = tensor_range(plan, part, 1);
  EXPECT_EQ(begin, part.offset + plan.units[0].shard_elements * 8);
  EXPECT_EQ(end - begin, elements(part.shape) * 8);
}

TEST_F(BrokenPlan, FormatOperandCount) {
  const int index = find(kMicro, StepKind::reduce_scatter);
  step(kMicro, index).inputs.pop_back();
  expect("format", kMicro, index);
}

TEST_F(BrokenPlan, FormatGatherOfAnotherOp) {
  const int index = find(kMicro, StepKind::all_gather);
  step(kMicro, index).op = OpKind::gather_gradient;
  expect("format", kMicro, index);
  step(kMicro, index).op = OpKind::reduce_scatter;
  expect("format", kMicro, index);
}

TEST_F(BrokenPlan, FormatExtentOverflows) {
  PlanTensor& t = plan.tensors[0];
  t.shape = {int64_t{1} << 40};
  t.strides = {int64_t{1} << 40};
  EXPECT_NE(violations(plan).find("[format]"), std::string::npos);
}

TEST_F(BrokenPlan, Types) {
  const int index = find(kMicro, OpKind::matmul);
  Shape& shape = plan.tensors[step(kMicro, index).outputs[0].tensor].shape;
  std::reverse(shape.begin(), shape.end());
  plan.tensors[step(kMicro, index).outputs[0].tensor].strides = contiguous_strides(shape);
  expect("types", kMicro, index);
}

TEST_F(BrokenPlan, WaitForWhatDoesNotRecord) {
  const int index = find(kMicro, [](const Step& s) { return !s.waits.empty(); });
  step(kMicro, step(kMicro, index).waits[0]).records = false;
  expect("wait", kMicro, index);
}

TEST_F(BrokenPlan, WaitForALaterStep) {
  step(kMicro, 2).waits = {5};
  expect("wait", kMicro, 2);
}

TEST_F(BrokenPlan, FlowReadsAnotherValue) {
  const int index = find(kMicro, OpKind::layer_norm, 1);
  step(kMicro, index).inputs[0].tensor = step(kMicro, find(kMicro, OpKind::layer_norm)).inputs[0].tensor;
  expect("flow", kMicro, index);
}

TEST_F(BrokenPlan, FlowViewOfWrongPlace) {
  const int index = find(kMicro, OpKind::matmul);
  std::swap(step(kMicro, index).inputs[1].tensor, step(kMicro, find(kMicro, OpKind::matmul, 2)).inputs[1].tensor);
  expect("flow", kMicro, index);
}

TEST_F(BrokenPlan, FlowSwappedInputs) {
  const int index = find(kMicro, OpKind::gather);
  step(kMicro, index).inputs[1].tensor = plan.inputs[1].tensor;
  expect("flow", kMicro, index);
}

TEST_F(BrokenPlan, MaskThatIsNoMask) {
  plan.inputs[0].mask = true;
  expect("format", kMicro, -1);
}

TEST_F(BrokenPlan, RaceWithoutWait) {
  const int index = find(kMicro, [](const Step& s) { return s.kind == StepKind::kernel && !s.waits.empty(); });
  step(kMicro, index).waits.clear();
  expect("race", kMicro, index);
}

TEST_F(BrokenPlan, OverlapWithinAStep) {
  const int index =
      find(kMicro, [](const Step& s) { return s.kind == StepKind::kernel && !s.in_place.empty() && s.op != OpKind::record_loss; });
  step(kMicro, index).in_place.clear();
  expect("overlap", kMicro, index);
}

TEST_F(BrokenPlan, InPlaceThatTheOpForbids) {
  const int index = find(kMicro, OpKind::matmul);
  step(kMicro, index).in_place = {{0, 0}};
  expect("in_place", kMicro, index);
}

TEST_F(BrokenPlan, GatherIsNotFreed) {
  const int free = find(kMicro, StepKind::free, 1);
  const int32_t unit = step(kMicro, free).unit;
  remove_step(program(kMicro), free);
  int last = -1;
  for (int i = 0; i < free; ++i)
    if (step(kMicro, i).kind == StepKind::all_gather && step(kMicro, i).unit == unit) last = i;
  expect("gather", kMicro, last);
}

TEST_F(BrokenPlan, GatherTooManyUnits) {
  plan.header.max_live_units = 1;
  expect("gather", kMicro, find(kMicro, StepKind::all_gather, 1));
}

TEST_F(BrokenPlan, GatherOfAnotherShard) {
  const int index = find(kMicro, StepKind::all_gather);
  step(kMicro, index).inputs[0].tensor = plan.units[(step(kMicro, index).unit + 1) % plan.units.size()].weights_tensor;
  expect("gather", kMicro, index);
}

TEST_F(BrokenPlan, ReduceLeftOut) {
  remove_step(program(kMicro), find(kMicro, StepKind::reduce_scatter));
  expect("reduce", kMicro, -1);
}

TEST_F(BrokenPlan, ReduceWithoutPadding) {
  const int index = find(kMicro, [this](const Step& s) { return s.kind == StepKind::reduce_scatter && s.inputs[1].value != kNone; });
  step(kMicro, index).inputs[1].value = kNone;
  expect("reduce", kMicro, index);
}

TEST_F(BrokenPlan, ReduceAtTheWrongPlace) {
  const int index = find(kMicro, [](const Step& s) { return s.kind == StepKind::reduce_scatter && s.inputs.size() > 3; });
  std::swap(step(kMicro, index).inputs[2], step(kMicro, index).inputs[3]);
  expect("reduce", kMicro, index);
}

TEST_F(BrokenPlan, CollectiveOnTwoStreams) {
  const int index = find(kMicro, StepKind::all_gather, 1);
  step(kMicro, index).stream = StreamKind::compute;
  expect("collective", kMicro, index);
}

TEST_F(BrokenPlan, SourceOfAnotherOp) {
  const int index = find(kMicro, OpKind::relu);
  step(kMicro, index).op = OpKind::neg;
  expect("source", kMicro, index);
}

TEST_F(BrokenPlan, SourceNodeLeftOut) {
  SourceNode extra = plan.source.front();
  plan.values.push_back({"never computed", kNone});
  extra.outputs = {static_cast<int32_t>(plan.values.size()) - 1};
  plan.source.push_back(extra);
  expect("source", kMicro, -1);
}

TEST_F(BrokenPlan, SourceAttributes) {
  const int index = find(kMicro, OpKind::layer_norm);
  step(kMicro, index).attributes = {{Attr::epsilon, 1e-3}};
  expect("source", kMicro, index);
}

TEST_F(BrokenPlan, UpdateLeavesAUnitOut) {
  remove_step(program(Program::update), find(Program::update, OpKind::optimizer_update));
  expect("update", Program::update, -1);
}

TEST_F(BrokenPlan, UpdateNormLeavesAUnitOut) {
  const int index = find(Program::update, OpKind::grad_norm, 1);
  const Operand limbs = step(Program::update, index).inputs[2];
  step(Program::update, index + 1).inputs[2] = limbs;
  remove_step(program(Program::update), index);
  expect("update", Program::update, find(Program::update, OpKind::clip_factor));
}

TEST_F(BrokenPlan, UpdateBeforeTheClipFactor) {
  const int index = find(Program::update, OpKind::optimizer_update);
  step(Program::update, index).inputs[2].value = step(Program::update, find(Program::update, OpKind::fold_metrics)).outputs[0].value;
  expect("update", Program::update, index);
}

TEST_F(BrokenPlan, BorderLeavesStateOut) {
  program(Program::update).exit.pop_back();
  expect("border", Program::update, -1);
}

TEST_F(BrokenPlan, BorderStatesAnotherValue) {
  PlanProgram& micro = program(kMicro);
  const auto exit = std::find_if(micro.exit.begin(), micro.exit.end(), [&](const Operand& o) { return o.tensor == plan.roles.metrics; });
  const auto entry = std::find_if(micro.entry.begin(), micro.entry.end(), [&](const Operand& o) { return o.tensor == plan.roles.metrics; });
  exit->value = entry->value;
  expect("border", kMicro, -1);
}

TEST_F(BrokenPlan, BorderWithoutATensor) {
  program(kMicro).entry.push_back({});
  program(kMicro).exit.push_back({});
  expect("border", kMicro, -1);
}

TEST_F(BrokenPlan, BorderStateIsNotLoaded) {
  const int index = find(Program::load, OpKind::fill);
  remove_step(program(Program::load), index);
  expect("border", Program::load, -1);
}

TEST_F(BrokenPlan, StateChangedByAModelStep) {
  const int index = find(kMicro, OpKind::relu);
  PlanTensor& t = plan.tensors[step(kMicro, index).outputs[0].tensor];
  t.arena = Arena::state;
  t.kind = TensorKind::weights;
  t.offset = 0;
  expect("state", kMicro, index);
}

TEST_F(BrokenPlan, UnitIsNotExported) {
  remove_step(program(Program::save), find(Program::save, OpKind::export_unit));
  expect("unit", Program::save, -1);
}

TEST_F(BrokenPlan, MemoryStatesAnotherBound) {
  plan.transient_lower_bound[static_cast<int>(kMicro)] -= kArenaAlignment;
  set_digest(plan);
  EXPECT_NE(violations(plan).find("[memory]"), std::string::npos);
}

TEST_F(BrokenPlan, Digest) {
  plan.header.batch += 1;
  EXPECT_NE(violations(plan).find("[digest]"), std::string::npos);
  EXPECT_THROW(require_verified(plan), ErrorList);
}

}  // namespace
}  // namespace zeroplan::test
