#include "case_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "passes/passes.h"

namespace zeroplan {
namespace {

constexpr const char* kInput = "==== input";
constexpr const char* kOutput = "==== output";

void read_passes(const std::string& line, CaseFile& file) {
  std::istringstream words(line);
  std::string word;
  words >> word;
  while (words >> word) {
    if (word == "eval") file.options.eval = true;
    else file.passes.push_back(word);
  }
}

}  // namespace

CaseFile read_case(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  CaseFile file;
  file.options.micro_batches = 2;
  std::string* section = &file.head;
  for (std::string line; std::getline(in, line);) {
    if (line == kInput) section = &file.input;
    else if (line == kOutput) section = &file.output;
    else *section += line + "\n";
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

PassFunction find_pass(const std::string& name) {
  static const std::map<std::string, PassFunction> passes = {
      {"canonicalize_views", canonicalize_views}, {"fuse_norm", fuse_norm}, {"fuse_gelu", fuse_gelu}, {"fuse_attention", fuse_attention},
      {"cse", cse}, {"dce", dce}, {"clone_eval", clone_eval}, {"autodiff", autodiff}, {"recompute_cheap", recompute_cheap}, {"fuse_elementwise", fuse_elementwise},
      {"snapshot_source", snapshot_source}};
  const auto found = passes.find(name);
  return found == passes.end() ? nullptr : found->second;
}

void run_passes(Graph& graph, const CaseFile& file) {
  verify_graph(graph);
  for (const std::string& name : file.passes) {
    const PassFunction pass = find_pass(name);
    if (!pass) throw std::runtime_error("no pass is called " + name);
    const uint64_t before = graph_hash(graph);
    const bool changed = pass(graph, file.options);
    verify_graph(graph);
    if (changed != (before != graph_hash(graph))) throw std::runtime_error(name + " says changed = " + (changed ? "true" : "false") + ", which is wrong");
  }
}

}  // namespace zeroplan
