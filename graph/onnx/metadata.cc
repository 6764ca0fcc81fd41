#include "graph/onnx/metadata.h"

#include <set>
#include <sstream>

namespace zeroplan {
namespace {

// Items of a printed Python list of strings: ['a', 'b'].
std::vector<std::string> python_list(const std::string& text) {
  std::vector<std::string> items;
  for (size_t at = 0; (at = text.find_first_of("'\"", at)) != std::string::npos;) {
    const size_t end = text.find(text[at], at + 1);
    if (end == std::string::npos) break;
    items.push_back(text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return items;
}

// Lines such as: p_net_wte_weight: PARAMETER target='net.wte.weight'
void read_signature(const std::string& text, ExporterMetadata& out) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": "), target = line.find(" target='");
    if (colon == std::string::npos || target == std::string::npos || target < colon) continue;
    const std::string kind = line.substr(colon + 2, target - colon - 2);
    const size_t from = target + 9, end = line.find('\'', from);
    if (end == std::string::npos) continue;
    const std::string name = line.substr(from, end - from);
    out.target[line.substr(0, colon)] = name;
    out.target_kind[name] = kind;
  }
}

// The values that a printed fx call names: p_… and b_… stand for parameters and buffers.
void read_call(const std::string& text, NodeNote& note) {
  const size_t call = text.find("](args = ");
  std::set<std::string> values;
  for (size_t at = call == std::string::npos ? 0 : call; (at = text.find('%', at)) != std::string::npos;) {
    const size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", ++at);
    const std::string name = text.substr(at, end == std::string::npos ? end : end - at);
    if (name.rfind("p_", 0) == 0 || name.rfind("b_", 0) == 0) note.fx_parameters.push_back(name);
    values.insert(name);
  }
  if (call != std::string::npos) note.fx_values = static_cast<int>(values.size());
}

template <typename Entries>
void read_value_entries(const std::string& name, const Entries& entries, ExporterMetadata& out) {
  for (const auto& entry : entries) {
    if (entry.key() == "pkg.torch.export.graph_signature.InputSpec.kind")
      out.kind[name] = entry.value();
    else if (entry.key() == "pkg.torch.onnx.original_node_name")
      out.original[name] = entry.value();
    else if (entry.key() == "pkg.onnxscript.optimizer.folded_from")
      out.folded_from[name] = python_list(entry.value());
    else
      continue;
    out.torch = true;
  }
}

NodeNote read_node(const onnx::NodeProto& node, bool& torch) {
  NodeNote note;
  note.name = node.name();
  note.op = node.op_type();
  note.inputs.assign(node.input().begin(), node.input().end());
  for (const auto& entry : node.metadata_props()) {
    if (entry.key() == "pkg.torch.onnx.fx_node") read_call(entry.value(), note);
    if (entry.key() == "pkg.torch.onnx.name_scopes") note.scopes = python_list(entry.value());
    torch |= entry.key().rfind("pkg.torch.", 0) == 0;
  }
  return note;
}

}  // namespace

ExporterMetadata read_metadata(const onnx::ModelProto& model) {
  ExporterMetadata out;
  const onnx::GraphProto& graph = model.graph();
  for (const auto& entry : graph.metadata_props()) {
    if (entry.key() != "pkg.torch.export.ExportedProgram.graph_signature") continue;
    read_signature(entry.value(), out);
    out.torch = true;
  }
  for (const auto& info : graph.value_info()) read_value_entries(info.name(), info.metadata_props(), out);
  for (const auto& tensor : graph.initializer()) read_value_entries(tensor.name(), tensor.metadata_props(), out);
  for (const auto& node : graph.node())
    if (node.output_size() > 0) out.nodes.emplace(node.output(0), read_node(node, out.torch));
  return out;
}

}  // namespace zeroplan
