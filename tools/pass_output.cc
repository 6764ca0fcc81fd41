#include "tools/pass_output.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/zeroplan.h"
#include "base/error.h"
#include "graph/onnx/exporter.h"
#include "graph/text/text.h"
#include "tools/console.h"

namespace zeroplan {

void print_pass_list() {
  for (const Pass& pass : pipeline()) say("{:<24}{}\n", pass.name, pass.summary);
}

void PassOutput::declare(CLI::App& command) {
  command.add_option("--print-after", print_after_, "PASS: print the graph after it (--list-passes names them)")->take_all();
  command.add_option("--stop-after", stop_after_, "PASS: print the graph after it and stop");
  command.add_option("--emit-onnx", emit_onnx_, "FILE: the last graph for an ONNX viewer, collectives in domain ai.zeroplan");
}

void PassOutput::check_names() const {
  std::vector<std::string> names = print_after_;
  if (!stop_after_.empty()) names.push_back(stop_after_);
  for (const std::string& name : names) {
    const bool known = std::any_of(pipeline().begin(), pipeline().end(), [&](const Pass& pass) { return name == pass.name; });
    if (!known) throw Error(fmt::format("there is no pass '{}'; `zeroplan compile --list-passes` names them", name));
  }
}

PassObserver PassOutput::observer() const {
  return [this](const Pass& pass, const Graph& graph) {
    if (std::find(print_after_.begin(), print_after_.end(), pass.name) != print_after_.end())
      say("# after {}\n{}\n", pass.name, print_graph(graph));
    const bool last = stop_after_.empty() ? pass.name == pipeline().back().name : pass.name == stop_after_;
    if (last && !emit_onnx_.empty()) write_viewer_model(graph, emit_onnx_);
  };
}

void PassOutput::run_until(const ModelFile& model, const CompileOptions& options) const {
  check_names();
  const Graph graph = compile_until(model, options, stop_after_, observer());
  say("{}", print_graph(graph));
}

}  // namespace zeroplan
