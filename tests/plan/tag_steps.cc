#include "tests/plan/tag_steps.h"

#include "graph/ops/op_def.h"

namespace zeroplan::test {

bool is_collective(const Step& step) {
  return step.kind == StepKind::all_gather || step.kind == StepKind::reduce_scatter || step.kind == StepKind::all_reduce;
}

namespace {

constexpr Tag kZero = 0x5A5A5A5A00ull;

struct HashAttribute {
  Tag operator()(int64_t v) const { return mix(1, static_cast<Tag>(v)); }
  Tag operator()(double v) const { return mix(2, tag_of(std::to_string(v))); }
  Tag operator()(const std::string& v) const { return mix(3, tag_of(v)); }
  Tag operator()(const std::vector<int64_t>& v) const {
    Tag tag = 4;
    for (int64_t x : v) tag = mix(tag, static_cast<Tag>(x));
    return tag;
  }
};

Tag tag_of_attributes(const Attributes& attributes) {
  Tag tag = 0;
  for (const auto& [key, value] : attributes.entries()) tag = mix(mix(tag, static_cast<Tag>(key)), std::visit(HashAttribute{}, value));
  return tag;
}

bool uses_unit(OpKind op) { return op == OpKind::grad_norm || op == OpKind::optimizer_update; }

}  // namespace

void TagStep::begin(int rank, bool early) {
  inputs_.assign(ranks_.size(), {});
  for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
    if (rank >= 0 && r != rank) continue;
    if (early) read(r);
    spoil_outputs(r, early);
  }
}

void TagStep::read(int rank) {
  Inputs& tags = inputs_[rank];
  for (const Operand& o : step_.inputs) tags.push_back(o.tensor == kNone ? std::vector<Tag>{} : ranks_[rank].read(o.tensor));
}

// Outputs are undefined from here on, unless they are operands still to be read.
void TagStep::spoil_outputs(int rank, bool early) {
  if (step_.workspace.tensor != kNone) ranks_[rank].poison(step_.workspace.tensor);
  if (step_.op == OpKind::fill_padding || step_.kind == StepKind::all_reduce) return;
  if (!early && (!step_.in_place.empty() || step_.kind == StepKind::all_gather)) return;
  for (const Operand& o : step_.outputs) ranks_[rank].poison(o.tensor);
}

void TagStep::finish(int rank, Tag& exported) {
  for (int r = 0; r < static_cast<int>(ranks_.size()); ++r)
    if ((rank < 0 || r == rank) && inputs_[r].empty()) read(r);
  if (step_.workspace.tensor != kNone && rank >= 0) ranks_[rank].poison(step_.workspace.tensor);
  switch (step_.kind) {
    case StepKind::all_gather: return all_gather();
    case StepKind::reduce_scatter: return reduce_scatter();
    case StepKind::all_reduce: return all_reduce();
    case StepKind::free: return ranks_[rank].poison(step_.inputs[0].tensor);
    case StepKind::copy: return ranks_[rank].write(step_.outputs[0].tensor, inputs_[rank][0]);
    case StepKind::host: break;
    case StepKind::kernel:
      return step_.op == OpKind::fill_padding ? fill_padding(rank)
             : step_.op == OpKind::copy       ? ranks_[rank].write(step_.outputs[0].tensor, inputs_[rank][0])
                                              : kernel(rank);
  }
  if (step_.op == OpKind::load_unit) return load_unit(rank);
  Tag seen = mix(static_cast<Tag>(rank), static_cast<Tag>(step_.unit));
  for (const UnitParameter& p : plan_.units[step_.unit].parameters)
    for (int64_t i = 0; i < p.elements; ++i) seen = mix(seen, inputs_[rank][0].at(p.offset + i));
  exported += seen;
}

void TagStep::kernel(int rank) {
  Tag seen = mix(static_cast<Tag>(step_.op), tag_of_attributes(step_.attributes));
  if (uses_unit(step_.op)) seen = mix(seen, static_cast<Tag>(step_.unit));
  for (const auto& input : inputs_[rank]) {
    seen = mix(seen, input.size());
    for (Tag tag : input) seen = mix(seen, tag);
  }
  for (size_t o = 0; o < step_.outputs.size(); ++o) {
    std::vector<Tag> tags;
    for (int64_t i = 0; i < elements(plan_.tensors[step_.outputs[o].tensor].shape); ++i)
      tags.push_back(mix(mix(seen, o), static_cast<Tag>(i)));
    ranks_[rank].write(step_.outputs[o].tensor, tags);
  }
}

void TagStep::fill_padding(int rank) {
  const PlanUnit& unit = plan_.units[step_.unit];
  int64_t at = 0;
  const auto fill = [&](int64_t until) {
    if (until > at) ranks_[rank].write_part(step_.outputs[0].tensor, at, std::vector<Tag>(until - at, kZero));
  };
  for (const UnitParameter& p : unit.parameters) {
    fill(p.offset);
    at = p.offset + p.elements;
  }
  fill(unit.padded_elements);
}

void TagStep::load_unit(int rank) {
  const PlanUnit& unit = plan_.units[step_.unit];
  std::vector<Tag> whole(unit.padded_elements, kZero);
  for (const UnitParameter& p : unit.parameters)
    for (int64_t i = 0; i < p.elements; ++i) whole.at(p.offset + i) = mix(mix(1234, static_cast<Tag>(p.parameter)), static_cast<Tag>(i));
  if (unit.weights == Placement::sharded)
    whole = std::vector<Tag>(whole.begin() + rank * unit.shard_elements, whole.begin() + (rank + 1) * unit.shard_elements);
  ranks_[rank].write(step_.outputs[0].tensor, whole);
  for (size_t o = 1; o < step_.outputs.size(); ++o)
    ranks_[rank].write(step_.outputs[o].tensor, std::vector<Tag>(elements(plan_.tensors[step_.outputs[o].tensor].shape), kZero));
}

void TagStep::all_gather() {
  std::vector<Tag> whole;
  for (const Inputs& inputs : inputs_) whole.insert(whole.end(), inputs[0].begin(), inputs[0].end());
  for (TagMemory& memory : ranks_) memory.write(step_.outputs[0].tensor, whole);
}

void TagStep::reduce_scatter() {
  const int64_t shard = elements(plan_.tensors[step_.outputs[0].tensor].shape);
  for (size_t r = 0; r < ranks_.size(); ++r) {
    std::vector<Tag> sum = step_.inputs[0].tensor == kNone ? std::vector<Tag>(shard, kZero) : inputs_[r][0];
    for (const Inputs& inputs : inputs_)
      for (int64_t i = 0; i < shard; ++i) sum[i] = mix(sum[i], inputs[1].at(static_cast<int64_t>(r) * shard + i));
    ranks_[r].write(step_.outputs[0].tensor, sum);
  }
}

void TagStep::all_reduce() {
  std::vector<Tag> sum(inputs_[0][0].size(), 99);
  for (const Inputs& inputs : inputs_)
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = mix(sum[i], inputs[0].at(i));
  for (TagMemory& memory : ranks_) memory.write(step_.outputs[0].tensor, sum);
}

}  // namespace zeroplan::test
