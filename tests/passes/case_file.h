#pragma once
// A pass test: one text file.
//   # what it shows
//   passes fuse_gelu dce
//   ==== input
//   (graph as text)
//   ==== output
//   (graph as text after the passes)
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "passes/compile_options.h"
#include "passes/pass.h"

namespace zeroplan {

struct CaseFile {
  std::string head;  // everything above the input, as it stands
  std::vector<std::string>
      passes;  // names; the words `eval`, `sync_bn`, `bf16` and `fp16` set those options, `outputs` asks for all outputs and no training
  CompileOptions options;
  bool outputs = false;
  std::string input, output;
};

CaseFile read_case(const std::string& path);
void write_case(const std::string& path, const CaseFile& file);
std::vector<std::string> case_names(const std::string& folder);  // without .txt, sorted

const Pass& find_pass(const std::string& name);  // of the pipeline; throws if there is none
// Runs the passes; each must say truly whether it changed the graph, and leave a graph that the verifier accepts.
void run_passes(Graph& graph, const CaseFile& file);

}  // namespace zeroplan
