#pragma once
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "graph/onnx/importer.h"
#include "passes/pass.h"

namespace zeroplan {

void print_pass_list();

// --print-after, --stop-after, --emit-onnx.
class PassOutput {
 public:
  void declare(CLI::App& command);
  const std::string& stop_after() const { return stop_after_; }
  void check_names() const;  // throws Error on a pass that does not exist
  // Prints after the passes that were asked for, and writes the viewer's file after the last.
  PassObserver observer() const;
  // Runs the pipeline up to --stop-after and prints the graph there; emits no plan.
  void run_until(const ModelFile& model, const CompileOptions& options) const;
  const std::string& viewer_file() const { return emit_onnx_; }

 private:
  std::vector<std::string> print_after_;
  std::string stop_after_, emit_onnx_;
};

}  // namespace zeroplan
