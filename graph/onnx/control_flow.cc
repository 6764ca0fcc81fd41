// If, Loop and Scan: folded where their conditions are constants, else both branches with a choice; loops are unrolled.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/type_name.h"
#include "graph/onnx/graph_decoder.h"
#include "graph/onnx/normalize_domains.h"
#include "graph/onnx/quantize.h"
#include "graph/onnx/terms.h"
#include "graph/onnx/unroll_limit.h"

namespace zeroplan {
namespace {

const OnnxGraph& subgraph(const OnnxNode& node, const char* attribute) {
  const OnnxAttribute* found = node.find(attribute);
  if (!found || !found->graph) throw Error(fmt::format("its {} is missing", attribute));
  return *found->graph;
}

bool truth(const FoldingBuilder& build, ValueId id) {
  const HostTensor& value = build.graph().values[id].constant;
  if (value.count() != 1) throw Error(fmt::format("its condition has {} elements", value.count()));
  return value.get(0) != 0;
}

ValueId boolean(FoldingBuilder& build, bool value) {
  HostTensor tensor(DType::boolean, {});
  tensor.set_int(0, value);
  return build.constant(std::move(tensor));
}

bool in_default_domain(const OnnxNode& node) { return node.domain.empty() || node.domain == kLegacyDomain; }

}  // namespace

bool is_control_flow(const OnnxNode& node) {
  return is_gradient(node) || (in_default_domain(node) && (node.op == "If" || node.op == "Loop" || node.op == "Scan" ||
                                                           node.op == "BatchScan" || node.op == "SequenceMap"));
}

bool GraphDecoder::decode_control(const OnnxNode& node, const std::vector<ValueId>& inputs) {
  if (!is_control_flow(node)) return false;
  const size_t first_list = node.op == "SequenceMap" ? 0 : node.op == "Loop" ? 2 : inputs.size();  // below it tensors alone
  for (size_t i = 0; i < first_list && i < inputs.size(); ++i)
    if (inputs[i] < kNone) throw Error(fmt::format("its input {} is a sequence or an optional, but it takes tensors there", i));
  if (node.op == "SequenceMap") bind_all(node, map_sequence(node, inputs));
  if (node.op == "If") decode_if(node, inputs);
  if (node.op == "Loop") decode_loop(node, inputs);
  if (node.op == "Scan") decode_scan(node, inputs);
  if (node.op == "BatchScan") decode_batch_scan(node, inputs);
  if (node.op == "Gradient") decode_gradient(node, inputs);
  return true;
}

// Empty: a node inside could not be decoded, which is among the problems.
std::vector<ValueId> GraphDecoder::run_body(const Body& body, const std::vector<ValueId>& inputs) {
  if (body.graph.inputs.size() != inputs.size())
    throw Error(fmt::format("its body takes {} inputs, but it is given {}", body.graph.inputs.size(), inputs.size()));
  const Scope scope(*this);
  for (size_t i = 0; i < inputs.size(); ++i) bind(body.graph.inputs[i].name, inputs[i]);
  decode_nodes(body.graph, body.needed);
  std::vector<ValueId> results;
  for (const OnnxValueInfo& output : body.graph.outputs) results.push_back(lookup(output.name));
  if (std::find(results.begin(), results.end(), kNone) == results.end()) return results;
  if (problems_.empty() && constant_problems_.empty()) throw Error("an output of its body is not computed there");
  return {};
}

void GraphDecoder::bind_all(const OnnxNode& node, const std::vector<ValueId>& results) {
  if (results.empty()) return block(node);
  if (results.size() < node.outputs.size())
    throw Error(fmt::format("it has {} outputs, but only {} are computed", node.outputs.size(), results.size()));
  for (size_t i = 0; i < node.outputs.size(); ++i) bind(node.outputs[i], results[i]);
}

ValueId GraphDecoder::enter(Branch& branch, ValueId id) {
  const auto [found, added] = branch.inside.emplace(id, id);
  if (!added) return found->second;
  if (ValueLists::is_list(id)) {
    std::vector<ValueId> items = lists_.items(id);
    for (ValueId& item : items) item = enter(branch, item);
    return branch.inside[id] = lists_.make(std::move(items));
  }
  if (!ValueLists::is_value(id) || build_.is_constant(id) || !is_floating(build_.dtype(id))) return id;
  const Term x{build_, id}, fixed = detached(x), condition{build_, branch.condition};
  return branch.inside[id] = (branch.taken ? where(condition, x, fixed) : where(condition, fixed, x)).id();
}

// A value of a scope as the branches that were opened since then see it. A forward pass has no gradients to keep apart.
ValueId GraphDecoder::from_scope(size_t scope, ValueId id) {
  if (!options_.outputs.empty() || id == kNone) return id;
  for (Branch& branch : branches_)
    if (scope < branch.scopes) id = enter(branch, id);
  return id;
}

std::vector<ValueId> GraphDecoder::run_branch(const OnnxNode& node, ValueId condition, bool taken) {
  const Body body(subgraph(node, taken ? "then_branch" : "else_branch"));
  if (condition == kNone) return run_body(body, {});
  struct Open {
    Open(std::vector<Branch>& branches, Branch branch) : branches(branches) { branches.push_back(std::move(branch)); }
    ~Open() { branches.pop_back(); }
    std::vector<Branch>& branches;
  };
  const Open open(branches_, {condition, taken, scopes_.size()});
  return run_body(body, {});
}

void GraphDecoder::decode_if(const OnnxNode& node, const std::vector<ValueId>& inputs) {
  if (inputs.empty() || inputs[0] == kNone) throw Error("its condition is missing");
  if (build_.is_constant(inputs[0])) return bind_all(node, run_branch(node, kNone, truth(build_, inputs[0])));
  if (elements(build_.shape(inputs[0])) != 1)
    throw Error(fmt::format("its condition has shape {}; it must be one element", to_string(build_.shape(inputs[0]))));
  const ValueId condition = build_.reshape(inputs[0], {});
  std::vector<ValueId> then = run_branch(node, condition, true);
  const std::vector<ValueId> otherwise = run_branch(node, condition, false);
  if (then.empty() || otherwise.empty()) return block(node);
  build_.set_origin(node.label());
  for (size_t i = 0; i < then.size() && i < otherwise.size(); ++i) then[i] = choose(condition, then[i], otherwise[i], i);
  bind_all(node, then);
}

// `output`: its number, for messages.
ValueId GraphDecoder::choose(ValueId condition, ValueId then, ValueId otherwise, size_t output) {
  constexpr const char* kBoth = "its condition depends on the data of the model, so both branches are computed, but";
  if (then == otherwise) return then;
  if (ValueLists::is_list(then) && ValueLists::is_list(otherwise)) {
    std::vector<ValueId> list = lists_.items(then);
    const std::vector<ValueId> other = lists_.items(otherwise);
    if (list.size() != other.size())
      throw Error(fmt::format("{} output {} is a sequence of {} in one and of {} in the other; export one branch", kBoth, output,
                              list.size(), other.size()));
    for (size_t i = 0; i < list.size(); ++i) list[i] = choose(condition, list[i], other[i], output);
    return lists_.make(std::move(list));
  }
  if (!ValueLists::is_value(then) || !ValueLists::is_value(otherwise))
    throw Error(fmt::format("{} output {} is a tensor in one and none in the other; export one branch", kBoth, output));
  const Value &a = build_.graph().values[then], &b = build_.graph().values[otherwise];
  if (a.shape != b.shape || a.dtype != b.dtype)
    throw Error(fmt::format("{} output {} is {} {} in one and {} {} in the other; export one branch", kBoth, output, type_name(a.dtype),
                            to_string(a.shape), type_name(b.dtype), to_string(b.shape)));
  return build_.add(OpKind::where, {condition, then, otherwise});
}

// The body once per item of the first sequence; what is a tensor is the same each time.
std::vector<ValueId> GraphDecoder::map_sequence(const OnnxNode& node, const std::vector<ValueId>& inputs) {
  const Body body(subgraph(node, "body"));
  if (inputs.empty()) throw Error("it is given no sequence");
  const size_t count = lists_.items(inputs[0]).size();
  std::vector<std::vector<ValueId>> made(body.graph.outputs.size());
  const UnrollLimit limit(build_);
  for (size_t i = 0; i < count; ++i) {
    std::vector<ValueId> arguments = inputs;
    for (ValueId& argument : arguments) {
      if (!ValueLists::is_list(argument)) continue;
      const std::vector<ValueId>& list = lists_.items(argument);
      if (list.size() != count) throw Error(fmt::format("it is given sequences of {} and of {}", count, list.size()));
      argument = list[i];
    }
    const std::vector<ValueId> results = run_body(body, arguments);
    if (results.empty()) return {};
    for (size_t k = 0; k < made.size(); ++k) made[k].push_back(results[k]);
    limit.check(static_cast<int64_t>(i) + 1, static_cast<int64_t>(count));
  }
  build_.set_origin(node.label());
  std::vector<ValueId> lists;
  for (std::vector<ValueId>& list : made) lists.push_back(lists_.make(std::move(list)));
  return lists;
}

// Values carried from one repetition to the next, then one item per repetition for each output that is collected.
void GraphDecoder::decode_loop(const OnnxNode& node, const std::vector<ValueId>& inputs) {
  const Body body(subgraph(node, "body"));
  const auto given = [&](size_t i) { return i < inputs.size() && inputs[i] != kNone; };
  const auto known = [&](size_t i, const char* what) {
    if (!build_.is_constant(inputs[i]))
      throw Error(fmt::format("its {} depends on the data of the model; it must be known when the model is compiled", what));
  };
  int64_t trips = std::numeric_limits<int64_t>::max();
  if (given(0)) {
    known(0, "number of repetitions");
    const HostTensor count = build_.graph().values[inputs[0]].constant.cast(DType::i64);
    if (count.count() != 1) throw Error(fmt::format("its number of repetitions has {} elements", count.count()));
    trips = count.get_int(0);
  }
  if (given(1)) known(1, "condition");
  bool more = !given(1) || truth(build_, inputs[1]);
  std::vector<ValueId> carried(inputs.begin() + std::min<size_t>(2, inputs.size()), inputs.end());
  std::vector<std::vector<ValueId>> items(node.outputs.size() > carried.size() ? node.outputs.size() - carried.size() : 0);
  if (body.graph.outputs.size() != 1 + carried.size() + items.size()) throw Error("its outputs are not those of its body");
  const UnrollLimit limit(build_);
  for (int64_t i = 0; more && i < trips; ++i) {
    std::vector<ValueId> arguments = {build_.constant(HostTensor::of<int64_t>(DType::i64, {}, {i})), boolean(build_, true)};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    const std::vector<ValueId> results = run_body(body, arguments);
    if (results.empty()) return block(node);
    if (!build_.is_constant(results[0]))
      throw Error("whether it goes on depends on the data of the model; it must be known when the model is compiled");
    more = truth(build_, results[0]);
    std::copy_n(results.begin() + 1, carried.size(), carried.begin());
    for (size_t k = 0; k < items.size(); ++k) items[k].push_back(results[1 + carried.size() + k]);
    limit.check(i + 1, given(0) ? trips : -1);
  }
  build_.set_origin(node.label());
  for (const std::vector<ValueId>& list : items) {
    if (std::any_of(list.begin(), list.end(), [](ValueId id) { return !ValueLists::is_value(id); }))
      throw Error("an output that it collects is no tensor");
    if (list.empty()) throw Error("it is never carried out, so that the shape of an output that it collects is not known");
    carried.push_back(stack(terms_of(build_, list), 0).id());
  }
  bind_all(node, carried);
}

}  // namespace zeroplan
