#pragma once
// Plans as people and other tools read them.
#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace zeroplan {

// Header, units, memory, collectives and every step. rank < 0: byte ranges of all ranks.
std::string dump_text(const Plan& plan, int rank);
std::string dump_json(const Plan& plan);   // the stored message as protobuf's JSON
std::string dump_dot(const Plan& plan);    // Graphviz: steps by program, coloured by stream, edges for stream order and waits
std::string dump_trace(const Plan& plan);  // Chrome trace of the predicted times: process = rank (the first 16), thread = stream

struct StepTime {
  double begin_us = 0, end_us = 0;
};
// Every stream runs its steps in order, each from when its waits have ended, for the predicted time.
std::vector<StepTime> predicted_times(const PlanProgram& program);

std::string_view arena_name(Arena arena);
std::string_view stream_name(StreamKind stream);
std::string_view tensor_kind_name(TensorKind kind);  // as the rows of the memory table
std::string_view step_kind_name(StepKind kind);
// tensor@arena:offset+bytes, value in front where it has another name.
std::string describe_operand(const Plan& plan, const Operand& operand);
// The op of a kernel, else the kind; then the unit where it has one.
std::string describe_step(const Plan& plan, const Step& step);

}  // namespace zeroplan
