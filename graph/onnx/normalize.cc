#include "graph/onnx/normalize.h"

#include <onnx/defs/schema.h>
#include <onnx/version_converter/convert.h>

#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/limits.h"
#include "graph/onnx/proto_checks.h"

namespace zeroplan {
namespace {

constexpr char kBatchScan[] = "ai.zeroplan.batch_scan";

// All recursion here is bounded by kMaxMessageDepth.
template <typename Fn>
void for_each_node(onnx::GraphProto& graph, const Fn& fn) {
  for (auto& node : *graph.mutable_node()) {
    fn(node);
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.has_g()) for_each_node(*attribute.mutable_g(), fn);
  }
}

// Some exporters write an unknown dimension as -1, or call all of them "?": they need not be equal.
void clear_unknown(onnx::ValueInfoProto& info) {
  if (!info.type().has_tensor_type() || !info.type().tensor_type().has_shape()) return;
  for (auto& dim : *info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
    if (dim.dim_value() == kUnknownDim || dim.dim_param() == "?") dim.clear_value();
}

// Domains that no node is in are dropped, as the library may not know them; those that nodes were moved to are added.
void import_domains(onnx::ModelProto& model) {
  std::set<std::string> used;
  for_each_node(*model.mutable_graph(), [&](const onnx::NodeProto& node) { used.insert(node.domain()); });
  for (const auto& function : model.functions()) used.insert(function.domain());
  auto& imports = *model.mutable_opset_import();
  for (int i = imports.size() - 1; i >= 0; --i)
    if (!imports[i].domain().empty() && !used.count(imports[i].domain())) imports.DeleteSubrange(i, 1);
  for (const char* domain : {kLegacyDomain, kModernDomain, kModernMlDomain}) {
    if (!used.count(domain)) continue;
    const bool known = std::any_of(imports.begin(), imports.end(), [&](const auto& import) { return import.domain() == domain; });
    if (known) continue;
    auto& import = *model.add_opset_import();
    import.set_domain(domain);
    import.set_version(1);
  }
}

void rewrite_graph(onnx::GraphProto& graph, int opset, int& fresh) {
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  nodes.Swap(graph.mutable_node());
  for (auto& node : nodes) {
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.has_g()) rewrite_graph(*attribute.mutable_g(), opset, fresh);
    if (const RewriteNode rewrite = find_rewrite(node, opset)) {
      OldNode old{node, opset, {}, fresh};
      rewrite(old);
      for (onnx::NodeProto& added : old.before) *graph.add_node() = std::move(added);
    }
    *graph.add_node() = std::move(node);
  }
}

// The converter reaches into the bodies of operators that it knows; If stays what it is from opset to opset.
void disguise(onnx::NodeProto& node) {
  node.set_op_type("If");
  auto& mark = *node.add_attribute();
  mark.set_name(kBatchScan);
  mark.set_type(onnx::AttributeProto::INT);
}

bool disguised(const onnx::NodeProto& node) {
  return node.op_type() == "If" && std::any_of(node.attribute().begin(), node.attribute().end(),
                                               [](const auto& attribute) { return attribute.name() == kBatchScan; });
}

constexpr char kMlDomain[] = "ai.onnx.ml";

bool takes_types_for_known(const onnx::NodeProto& node) {
  return node.domain() == kMlDomain ||
         (is_default_domain(node.domain()) && (node.op_type() == "EyeLike" || node.op_type() == "RegexFullMatch"));
}

void refuse_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  for (const auto& node : nodes) {
    if (takes_types_for_known(node))
      throw Error(
          fmt::format("node '{}' ({}) is not supported in a model with functions in another opset than its own; export it without "
                      "functions",
                      node.name(), node.op_type()));
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) refuse_nodes(attribute.g().node());
  }
}

}  // namespace

void refuse_beside_functions(const onnx::ModelProto& model) {
  refuse_nodes(model.graph().node());
  for (const auto& function : model.functions()) refuse_nodes(function.node());
}

void clear_unknown_dims(onnx::GraphProto& graph) {
  for (auto* values : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (auto& info : *values) clear_unknown(info);
  for (auto& node : *graph.mutable_node())
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.has_g()) clear_unknown_dims(*attribute.mutable_g());
}

void set_unknown_aside(onnx::ModelProto& model, int opset) {
  std::set<std::string> functions;  // of the default domain
  for (const auto& function : model.functions())
    if (is_default_domain(function.domain())) functions.insert(function.name());
  for_each_node(*model.mutable_graph(), [&](onnx::NodeProto& node) {
    if (is_default_domain(node.domain())) node.clear_domain();
    if (!node.domain().empty() || functions.count(node.op_type())) return;
    const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), opset, "");
    if (!schema || schema->Deprecated()) node.set_domain(kModernDomain);
  });
  import_domains(model);
}

void rewrite_old_nodes(onnx::ModelProto& model, int opset) {
  int fresh = 0;
  rewrite_graph(*model.mutable_graph(), opset, fresh);
  for_each_node(*model.mutable_graph(), [](onnx::NodeProto& node) {
    if (takes_types_for_known(node)) node.set_domain(node.domain() == kMlDomain ? kModernMlDomain : kModernDomain);
  });
  if (opset == 8)
    for_each_node(*model.mutable_graph(), [](onnx::NodeProto& node) {
      if (node.domain().empty() && node.op_type() == "Scan") disguise(node);
    });
  import_domains(model);
}

void restore_nodes(onnx::ModelProto& model) {
  for_each_node(*model.mutable_graph(), [](onnx::NodeProto& node) {
    if (node.domain() == kModernDomain) node.clear_domain();
    if (node.domain() == kModernMlDomain) node.set_domain(kMlDomain);
    if (!disguised(node)) return;
    node.set_op_type("BatchScan");
    node.set_domain(kLegacyDomain);
  });
}

void raise_opset(onnx::ModelProto& model, int opset) {
  rewrite_old_nodes(model, opset);
  if (opset < kTargetOpset) model = onnx::version_conversion::ConvertVersion(model, kTargetOpset);
  restore_nodes(model);
}

}  // namespace zeroplan
