#include "case_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "graph/ops/verify_graph.h"
#include "graph/text/text.h"

namespace zeroplan {
namespace {

constexpr const char* kInput = "==== input";
constexpr const char* kOutput = "==== output";

void read_passes(const std::string& line, CaseFile& file) {
  std::istringstream words(line);
  std::string word;
  words >> word;
  while (words >> word) {
    if (word == "eval")
      file.options.eval = true;
    else if (word == "sync_bn")
      file.options.sync_bn = true;
    else if (word == "bf16" || word == "fp16")
      file.options.precision = *parse_precision(word);
    else if (word == "cuda")
      file.options.device = DeviceKind::cuda;
    else if (word == "outputs")
      file.outputs = true;
    else
      file.passes.push_back(word);
  }
}

}  // namespace

CaseFile read_case(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  CaseFile file;
  file.options.ranks = 2;
  file.options.micro_batches = 2;
  std::string* section = &file.head;
  for (std::string line; std::getline(in, line);) {
    if (line == kInput)
      section = &file.input;
    else if (line == kOutput)
      section = &file.output;
    else
      *section += line + "\n";
    if (section == &file.head && line.rfind("passes ", 0) == 0) read_passes(line, file);
  }
  return file;
}

void write_case(const std::string& path, const CaseFile& file) {
  std::ofstream out(path);
  out << file.head << kInput << "\n" << file.input << kOutput << "\n" << file.output;
}

std::vector<std::string> case_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

const Pass& find_pass(const std::string& name) {
  const auto found = std::find_if(pipeline().begin(), pipeline().end(), [&](const Pass& pass) { return name == pass.name; });
  if (found == pipeline().end()) throw std::runtime_error("no pass is called " + name);
  return *found;
}

void run_passes(Graph& graph, const CaseFile& file) {
  verify_graph(graph);
  CompileOptions options = file.options;
  if (file.outputs)
    for (const auto& [name, id] : graph.outputs) options.outputs.push_back(name);
  for (const std::string& name : file.passes) {
    const uint64_t before = graph_hash(graph);
    const bool changed = find_pass(name).run(graph, options);
    verify_graph(graph);
    if (changed != (before != graph_hash(graph)))
      throw std::runtime_error(name + " says changed = " + (changed ? "true" : "false") + ", which is wrong");
  }
}

}  // namespace zeroplan
