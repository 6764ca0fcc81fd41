#pragma once
// What the verifier's rule groups share: the plan, derived tables, and the list of violations. Private to runtime/plan.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/plan/dump.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/verifier.h"

namespace zeroplan {

inline constexpr size_t kMaxViolations = 100;

class VerifyContext {
 public:
  VerifyContext(const Plan& plan, Verification& result) : plan(plan), result_(result) {}

  const Plan& plan;

  bool full() const { return result_.violations.size() >= kMaxViolations; }
  bool clean() const { return result_.violations.empty(); }
  Verification& result() { return result_; }
  void fail(std::string_view rule, std::string message) { add(rule, {}, -1, std::move(message)); }
  void fail(std::string_view rule, const PlanProgram& program, int step, std::string message) {
    add(rule, std::string(program_name(program.program)), step, std::move(message));
  }

  // Filled by prepare(), once the indices are known to be in range.
  std::vector<std::array<int64_t, 2>> ranges;  // by tensor: bytes [begin, end) in its arena on any rank
  std::vector<int32_t> source_of;              // by value: source node that computes it
  std::vector<int32_t> parameter_of;           // by value: parameter that it is; gradients and other results excluded
  std::vector<bool> carried;                   // by tensor: gradient shard that micro_step hands to update
  void prepare();

  std::string value_name(int32_t value) const { return value == kNone ? "nothing" : "'" + plan.values[value].name + "'"; }
  std::string tensor_name(int32_t tensor) const { return describe_operand(plan, {tensor, kNone}); }
  bool same_bytes(int32_t a, int32_t b) const { return plan.tensors[a].arena == plan.tensors[b].arena && ranges[a] == ranges[b]; }

 private:
  void add(std::string_view rule, std::string program, int step, std::string message) {
    if (!full()) result_.violations.push_back({std::string(rule), std::move(program), step, std::move(message)});
  }

  Verification& result_;
};

// Which steps of a program are over when another begins, on every execution: by stream order and waits.
class StepOrder {
 public:
  explicit StepOrder(const PlanProgram& program);
  bool before(int a, int b) const {  // a = -1: the program's start
    return a < 0 || clock_[b][stream_[a]] >= position_[a];
  }

 private:
  std::vector<int> stream_, position_;
  std::vector<std::array<int, kStreams>> clock_;
};

// Copies of a program that are not nodes of the source graph: both values are the same thing.
class CopyNames {
 public:
  CopyNames(const VerifyContext& context, const PlanProgram& program);
  int32_t original(int32_t value) const;
  bool same(int32_t a, int32_t b) const { return a == b || original(a) == original(b); }

 private:
  std::vector<int32_t> original_;
};

bool is_copy(const Step& step);
// The attribute if it is there and of this type.
template <typename T>
const T* attribute_of(const Attributes& attributes, Attr key) {
  for (const auto& [name, value] : attributes.entries())
    if (name == key) return std::get_if<T>(&value);
  return nullptr;
}

// The rule groups, in the order in which they run.
bool verify_indices(VerifyContext& context);  // false: nothing else can be looked at
void verify_format(VerifyContext& context);
void verify_steps(VerifyContext& context, const PlanProgram& program);
void verify_waits(VerifyContext& context, const PlanProgram& program);
void verify_flow(VerifyContext& context, const PlanProgram& program, std::vector<int32_t>& input_values);
void verify_borders(VerifyContext& context);
void verify_state_writers(VerifyContext& context, const PlanProgram& program);
void verify_units(VerifyContext& context, const PlanProgram& program);
void verify_reductions(VerifyContext& context, const PlanProgram& program);
void verify_collectives(VerifyContext& context, const PlanProgram& program);
void verify_source(VerifyContext& context, const PlanProgram& program);
void verify_update(VerifyContext& context, const PlanProgram& program);
void verify_statistics_layout(VerifyContext& context);
void verify_statistics(VerifyContext& context, const PlanProgram& program);
void verify_once_per_unit(VerifyContext& context, const PlanProgram& program);
void verify_memory(VerifyContext& context);

}  // namespace zeroplan
