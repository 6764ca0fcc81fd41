#pragma once
// A pass: one function in its own file, listed in pipeline.cc, under another name where it runs again. Returns whether it changed the graph
// (the runner checks that against the graph's hash, and verifies the graph before and after).
#include <functional>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "passes/compile_options.h"
#include "runtime/plan/plan.h"

namespace zeroplan {

struct Pass {
  const char* name;
  bool (*run)(Graph&, const CompileOptions&);
  const char* summary;  // one line for --list-passes
};

const std::vector<Pass>& pipeline();

// Called after each pass with its name.
using PassObserver = std::function<void(const Pass&, const Graph&)>;

// Runs the pipeline up to and including `stop_after` (empty: all).
void run_pipeline(Graph& graph, const CompileOptions& options, const PassObserver& observer = {}, const std::string& stop_after = {});

// Lowered graph to plan: offsets, steps, streams, events. The graph must have been through the whole pipeline.
Plan emit_plan(const Graph& graph, const CompileOptions& options);

}  // namespace zeroplan
