#include "graph/onnx/graph_decoder.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/function_body.h"
#include "graph/onnx/limits.h"
#include "graph/onnx/mixed_types.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {

// Depth is bounded by the nesting limit of the file.
void add_reads(const OnnxNode& node, std::set<std::string>& names) {
  for (const std::string& input : node.inputs)
    if (!input.empty()) names.insert(input);
  for (const std::string& name : gradient_names(node)) names.insert(name);
  for (const OnnxAttribute& attribute : node.attributes) {
    if (!attribute.graph) continue;
    for (const OnnxNode& inner : attribute.graph->nodes) add_reads(inner, names);
    for (const OnnxValueInfo& output : attribute.graph->outputs) names.insert(output.name);
  }
}

std::set<std::string> output_names(const OnnxGraph& graph) {
  std::set<std::string> names;
  for (const OnnxValueInfo& output : graph.outputs) names.insert(output.name);
  return names;
}

std::vector<bool> needed_nodes(const OnnxGraph& graph, std::set<std::string> wanted) {
  std::vector<bool> needed(graph.nodes.size(), false);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    for (const std::string& output : graph.nodes[i].outputs) needed[i] = needed[i] || (!output.empty() && wanted.count(output));
    if (needed[i]) add_reads(graph.nodes[i], wanted);
  }
  return needed;
}

namespace {

std::string unsupported(const OnnxNode& node, int opset) {
  const std::string domain = node.domain.empty() ? "" : node.domain + "::";
  return fmt::format("node '{2}' ({0}{1}, opset {3}): this version has no decoder for the operator {0}{1}; export the model without it",
                     domain, node.op, node.label(), opset);
}

}  // namespace

GraphDecoder::GraphDecoder(const OnnxModel& model, WeightFiles& files, const RolePlan& roles, const ImportOptions& options, Graph& graph)
    : model_(model),
      files_(files),
      roles_(roles),
      options_(options),
      precision_(options.precision),
      build_(graph),
      lists_(build_),
      scopes_(1) {
  for (const OnnxGraph* inner : all_graphs(model.graph))
    for (const OnnxTensor& tensor : inner->initializers) initializers_[tensor.name] = &tensor;
}

void GraphDecoder::add_inputs(const BoundDims& dims, const std::map<std::string, HostTensor>& bind) {
  for (const OnnxValueInfo& input : model_.graph.inputs) {
    if (add_list(input, bind)) continue;
    const auto bound = bind.find(input.name);
    const std::optional<DType> dtype = graph_dtype(input.type, precision_);
    if (bound == bind.end() || !dtype) continue;
    if (const std::optional<HostTensor> constant = bound_constant(input, bound->second))
      scopes_[0][input.name] = build_.constant(constant->cast(*dtype));
  }
  for (const BoundInput& input : dims.inputs) {
    const std::optional<DType> dtype = graph_dtype(input.type, precision_);
    if (!dtype) {
      problems_.push_back(fmt::format("input '{}' is {}, which is not supported", input.name, onnx_type_name(input.type)));
      blocked_.insert(input.name);
      continue;
    }
    Value value;
    value.name = input.name;
    value.dtype = *dtype;
    value.shape = input.shape;
    value.kind = ValueKind::input;
    add_input(std::move(value));
  }
}

// False: it is a tensor that is there.
bool GraphDecoder::add_list(const OnnxValueInfo& input, const std::map<std::string, HostTensor>& bind) {
  const std::optional<std::vector<HostTensor>> items = input.item_type != 0 ? bound_items(input, bind) : std::nullopt;
  const std::optional<DType> dtype = graph_dtype(input.item_type, precision_);
  if (items && dtype) {
    std::vector<ValueId> list;
    for (const HostTensor& item : *items) list.push_back(build_.constant(item.cast(*dtype)));
    scopes_[0][input.name] = lists_.make(std::move(list));
    return true;
  }
  if (!input.optional || bind.count(input.name)) return false;
  scopes_[0][input.name] = ValueLists::kNothing;
  return true;
}

ValueId GraphDecoder::add_input(Value value) {
  const std::string name = value.name;
  const ValueId id = build_.graph().add_value(std::move(value));
  build_.graph().inputs.push_back(id);
  scopes_[0][name] = id;
  return id;
}

ValueId GraphDecoder::find(const std::string& name) {
  const ValueId id = lookup(name);
  if (id >= kNone) return id;
  throw Error(
      fmt::format("'{}' is {}, but a tensor is needed", name, ValueLists::is_list(id) ? "a sequence" : "an optional without a value"));
}

std::vector<std::pair<std::string, ValueId>> GraphDecoder::find_all(const std::string& name) {
  const ValueId id = lookup(name);
  if (!ValueLists::is_list(id)) return {{name, find(name)}};
  std::vector<std::pair<std::string, ValueId>> all;
  for (const ValueId item : lists_.items(id)) all.emplace_back(fmt::format("{}[{}]", name, all.size()), item);
  return all;
}

ValueId GraphDecoder::lookup(const std::string& name) {
  for (size_t scope = scopes_.size(); scope-- > 0;) {
    const auto found = scopes_[scope].find(name);
    if (found != scopes_[scope].end()) return from_scope(scope, found->second);
  }
  if (blocked_.count(name)) return kNone;
  const ValueId id = stored(name);
  if (id != kNone) scopes_[0][name] = id;
  return from_scope(0, id);
}

ValueId GraphDecoder::operand(const OnnxNode& node, int input) {
  const std::string& name = node.inputs[input];
  if (name.empty()) return kNone;
  if (!node.outputs.empty()) {
    const auto own = roles_.split_uses.find({node.outputs[0], input});
    if (own != roles_.split_uses.end()) return from_scope(0, shown(own->second));
  }
  const ValueId small = nibbles(node, name), id = small == kNone ? lookup(name) : small;
  if (id == kNone) throw Error(fmt::format("its input '{}' is not defined before it", name));
  return id;
}

// An initializer of 4-bit integers, which DequantizeLinear alone may read; else kNone.
ValueId GraphDecoder::nibbles(const OnnxNode& node, const std::string& name) {
  const auto tensor = node.op == "DequantizeLinear" && node.domain.empty() ? initializers_.find(name) : initializers_.end();
  if (tensor == initializers_.end() || (tensor->second->type != kOnnxInt4 && tensor->second->type != kOnnxUint4)) return kNone;
  const auto [found, added] = nibbles_.emplace(name, kNone);
  if (added) found->second = build_.constant(load_nibbles(*tensor->second, files_));
  return found->second;
}

void GraphDecoder::bind(const std::string& name, ValueId id) {
  if (name.empty() || id == kNone) return;
  scopes_.back()[name] = id;
  if (ValueLists::is_value(id) && build_.graph().values[id].kind == ValueKind::computed) names_.emplace(id, name);
}

void GraphDecoder::block(const OnnxNode& node) {
  for (const std::string& output : node.outputs)
    if (!output.empty()) blocked_.insert(output);
}

bool GraphDecoder::blocked(const OnnxNode& node) const {
  if (blocked_.empty()) return false;
  std::set<std::string> reads;
  add_reads(node, reads);
  for (const std::string& name : reads)
    if (blocked_.count(name)) return true;
  return false;
}

void GraphDecoder::decode(const std::set<std::string>& wanted) {
  decode_nodes(model_.graph, needed_nodes(model_.graph, wanted));
  for (const std::string& name : wanted) lookup(name);  // one that is stored becomes a value now, not when it is first asked for
}

void GraphDecoder::decode_nodes(const OnnxGraph& graph, const std::vector<bool>& needed) {
  visited_ += static_cast<int64_t>(graph.nodes.size());
  if (visited_ > kMaxVisitedNodes)
    throw Error(fmt::format("bodies of nodes are run for more than {} nodes; export the model with fewer steps", kMaxVisitedNodes));
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (needed[i]) decode_node(graph.nodes[i]);
}

// A batch normalization works in the mode that was decided, whatever the file says.
OnnxNode GraphDecoder::in_mode(const OnnxNode& node, bool batch) const {
  OnnxNode changed = node;
  std::erase_if(changed.attributes, [](const OnnxAttribute& a) { return a.name == "training_mode"; });
  changed.attributes.push_back({.name = "training_mode", .i = batch});
  return changed;
}

void GraphDecoder::decode_node(const OnnxNode& stored_node) {
  const auto mode = roles_.batch_norms.find(&stored_node);
  const std::optional<OnnxNode> changed =
      mode == roles_.batch_norms.end() ? std::nullopt : std::optional(in_mode(stored_node, mode->second));
  const OnnxNode& node = changed ? *changed : stored_node;
  if (blocked(node)) return block(node);
  build_.set_origin(node.label());
  std::vector<ValueId> inputs;
  try {
    if (node.outputs.empty()) throw Error("it has no outputs");
    if (changed && mode->second) refuse_in_branch(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) inputs.push_back(operand(node, static_cast<int>(i)));
    if (decode_control(node, inputs)) return;
    if (const std::optional<ValueId> made = lists_.decode(node, inputs)) return bind(node.outputs[0], *made);
    const bool constant_weight =
        node.op == "Constant" && node.domain.empty() && !node.outputs.empty() && roles_.by_name.count(node.outputs[0]);
    const ValueId weight = constant_weight ? stored(node.outputs[0]) : kNone;
    if (weight != kNone) return bind(node.outputs[0], weight);
    DecodeContext context(build_, node, files_, precision_, inputs);
    context.masks = &options_.dropout_masks;
    context.inference = options_.inference;
    run_decoder(node, context);
  } catch (const Error& error) {
    std::vector<const Value*> operands;
    for (const ValueId id : inputs) operands.push_back(ValueLists::is_value(id) ? &build_.graph().values[id] : nullptr);
    const std::string mixed = mixed_types(node, operands, model_.decoded_opset);  // decoders know them by other names
    problems_.push_back(
        fmt::format("node '{}' ({}, opset {}): {}", node.label(), node.op, model_.opset, mixed.empty() ? error.message() : mixed));
    block(node);
  }
}

// Both branches are computed, but only one of them counts.
void GraphDecoder::refuse_in_branch(const OnnxNode& node) const {
  if (branches_.empty() || !options_.outputs.empty()) return;
  throw Error(
      fmt::format("it normalizes with the statistics of its batch inside a branch that data chooses, so that its running statistics "
                  "would follow batches that do not take the branch; --eval-bn '{}' normalizes with the running ones",
                  node.label()));
}

void GraphDecoder::run_decoder(const OnnxNode& node, DecodeContext& context) {
  const Decoder decoder = find_decoder(node);
  if (decoder) {
    decoder(context);
  } else {
    if (expand_function(node, context)) return;
    bool constant = true;
    for (int i = 0; i < context.count(); ++i) constant = constant && (!context.has(i) || build_.is_constant(context.in(i)));
    (constant ? constant_problems_ : problems_).push_back(unsupported(node, model_.opset));
    return block(node);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId id = context.outputs()[i];
    if (!node.outputs[i].empty() && id == kNone) throw Error(fmt::format("its output {} is not supported", i));
    bind(node.outputs[i], id);
  }
}

// What blocks a branch of constants alone is named where nothing else is wrong: no trained parameter depends on it.
std::vector<std::string> GraphDecoder::problems() const { return problems_.empty() ? constant_problems_ : problems_; }

std::vector<std::string> unsupported_nodes(const OnnxModel& model, const RolePlan& roles, const std::set<std::string>& wanted) {
  std::vector<std::string> lines;
  const std::vector<bool> needed = needed_nodes(model.graph, wanted);
  std::set<std::string> varying;  // depends on data or on a parameter
  for (const OnnxValueInfo& input : model.graph.inputs) varying.insert(input.name);
  for (const Candidate& c : roles.candidates)
    if (c.parameter >= 0) varying.insert(c.tensor->name);
  for (size_t i = 0; i < needed.size(); ++i) {
    const OnnxNode& node = model.graph.nodes[i];
    std::set<std::string> reads;
    add_reads(node, reads);
    if (std::none_of(reads.begin(), reads.end(), [&](const std::string& name) { return varying.count(name) > 0; })) continue;
    varying.insert(node.outputs.begin(), node.outputs.end());
    if (needed[i] && !is_control_flow(node) && !makes_or_takes_lists(node) && !find_decoder(node) &&
        !has_function_body(node, model.decoded_opset))
      lines.push_back(unsupported(node, model.opset));
  }
  return lines;
}

}  // namespace zeroplan
