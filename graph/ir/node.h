#pragma once
// Nodes of a graph, and the programs that they belong to.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/attributes.h"
#include "graph/ir/value.h"

namespace zeroplan {

enum class OpKind : uint16_t {
#define ZP_OP(name) name,
#include "graph/ops/ops.def"
#undef ZP_OP
};

// load once; then micro_step (once per round), update, repeated; eval_step/eval_end in between; save at the end.
enum class Program : uint8_t { load, micro_step, update, eval_step, eval_end, save };
inline constexpr int kPrograms = 6;
std::string_view program_name(Program program);

struct Node {
  OpKind op{};
  std::vector<ValueId> inputs;  // kNone: optional input left out
  std::vector<ValueId> outputs;
  Attributes attributes;
  Program program = Program::micro_step;
  int32_t unit = kNone;  // collectives, free, update
  bool backward = false;
  std::string origin;  // node of the model that it came from, for messages
  std::string reason;  // why a pass put it here (gathers: what bound the prefetch)
};

// One node of the training graph before sharding, kept for the verifier.
struct SourceNode {
  OpKind op{};
  std::vector<ValueId> inputs, outputs;
  Attributes attributes;
  Program program{};
};

}  // namespace zeroplan
