// Scan, unrolled; that of opset 8 has a batch axis in front of everything and runs once for each entry of it.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/graph_decoder.h"
#include "graph/onnx/parts.h"

namespace zeroplan {

struct GraphDecoder::ScanPlan {
  const OnnxGraph* body = nullptr;
  int64_t inputs = 0;                                    // that are scanned
  std::vector<int64_t> input_axes, output_axes;          // not normalized; empty: all 0
  std::vector<int64_t> input_reversed, output_reversed;  // 1: from the end; empty: none

  static ScanPlan read(const OnnxNode& node) {
    ScanPlan plan;
    const auto ints = [&](const char* name) {
      const OnnxAttribute* a = node.find(name);
      return a ? a->ints : std::vector<int64_t>{};
    };
    const OnnxAttribute *body = node.find("body"), *count = node.find("num_scan_inputs");
    if (!body || !body->graph || !count || count->i < 1) throw Error("its body or its num_scan_inputs is missing");
    plan.body = body->graph.get();
    plan.inputs = count->i;
    plan.input_axes = ints("scan_input_axes");
    plan.output_axes = ints("scan_output_axes");
    plan.input_reversed = ints(node.op == "BatchScan" ? "directions" : "scan_input_directions");
    plan.output_reversed = ints("scan_output_directions");
    return plan;
  }

  static int64_t entry(const std::vector<int64_t>& list, size_t i) { return i < list.size() ? list[i] : 0; }
};

// States after the last step, then the collected outputs, which are 0 from `length` steps on (-1: all). Empty: a node inside could not be
// decoded.
std::vector<ValueId> GraphDecoder::run_scan(const ScanPlan& plan, std::vector<ValueId> state, const std::vector<ValueId>& sequences,
                                            int64_t length) {
  std::vector<int64_t> axes;
  int64_t steps = -1;
  for (size_t k = 0; k < sequences.size(); ++k) {
    const Shape& shape = build_.shape(sequences[k]);
    axes.push_back(normalize_axis(ScanPlan::entry(plan.input_axes, k), static_cast<int64_t>(shape.size())));
    if (steps >= 0 && shape[axes[k]] != steps) throw Error("the sequences that it scans differ in length");
    steps = shape[axes[k]];
  }
  if (length < 0) length = steps;
  if (steps == 0 || length == 0 || length > steps) throw Error("the sequences that it scans are empty");
  if (plan.body->outputs.size() < state.size()) throw Error("its body has fewer outputs than states");
  std::vector<std::vector<ValueId>> items(plan.body->outputs.size() - state.size());
  const Body body(*plan.body);
  const UnrollLimit limit(build_);
  limit.check_steps(steps);
  for (int64_t t = 0; t < length; ++t) {
    std::vector<ValueId> arguments = state;
    for (size_t k = 0; k < sequences.size(); ++k)
      arguments.push_back(item(build_, sequences[k], axes[k], ScanPlan::entry(plan.input_reversed, k) ? length - 1 - t : t));
    const std::vector<ValueId> results = run_body(body, arguments);
    if (results.empty()) return {};
    std::copy_n(results.begin(), state.size(), state.begin());
    for (const ValueId result : results)
      if (!ValueLists::is_value(result)) throw Error("an output of its body is no tensor");
    for (size_t k = 0; k < items.size(); ++k) items[k].push_back(results[state.size() + k]);
    limit.check(t + 1, steps);
  }
  for (size_t k = 0; k < items.size(); ++k) {
    const DType dtype = build_.dtype(items[k][0]);
    if (length < steps) items[k].resize(steps, build_.broadcast(build_.scalar(0, dtype), build_.shape(items[k][0])));
    if (ScanPlan::entry(plan.output_reversed, k)) std::reverse(items[k].begin(), items[k].end());
    const auto rank = static_cast<int64_t>(build_.shape(items[k][0]).size()) + 1;
    state.push_back(stack(build_, items[k], normalize_axis(ScanPlan::entry(plan.output_axes, k), rank)));
  }
  return state;
}

void GraphDecoder::decode_scan(const OnnxNode& node, const std::vector<ValueId>& inputs) {
  const ScanPlan plan = ScanPlan::read(node);
  const auto states = static_cast<int64_t>(inputs.size()) - plan.inputs;
  if (states < 0 || std::find(inputs.begin(), inputs.end(), kNone) != inputs.end()) throw Error("an input is missing");
  const std::vector<ValueId> results = run_scan(plan, {inputs.begin(), inputs.begin() + states}, {inputs.begin() + states, inputs.end()});
  build_.set_origin(node.label());
  bind_all(node, results);
}

// Input 0: lengths of the sequences, which may be left out; all others have the batch in front.
void GraphDecoder::decode_batch_scan(const OnnxNode& node, const std::vector<ValueId>& inputs) {
  const ScanPlan plan = ScanPlan::read(node);
  const auto states = static_cast<int64_t>(inputs.size()) - plan.inputs - 1;
  if (states < 0 || std::find(inputs.begin() + 1, inputs.end(), kNone) != inputs.end()) throw Error("an input is missing");
  if (build_.shape(inputs[1]).empty()) throw Error("its first operand has no batch axis");
  const int64_t batch = build_.shape(inputs[1])[0];
  const UnrollLimit limit(build_);
  limit.check_steps(batch);
  std::vector<int64_t> lengths(batch, -1);
  if (inputs[0] != kNone) {
    if (!build_.is_constant(inputs[0])) throw Error("the lengths of its sequences depend on the data of the model");
    lengths = build_.graph().values[inputs[0]].constant.cast(DType::i64).to_ints();
  }
  if (static_cast<int64_t>(lengths.size()) != batch) throw Error("it states another number of lengths than its batch has");
  std::vector<std::vector<ValueId>> entries;
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<ValueId> own;
    for (size_t i = 1; i < inputs.size(); ++i) own.push_back(item(build_, inputs[i], 0, b));
    const std::vector<ValueId> results = run_scan(plan, {own.begin(), own.begin() + states}, {own.begin() + states, own.end()}, lengths[b]);
    if (results.empty()) return block(node);
    entries.resize(results.size());
    for (size_t k = 0; k < results.size(); ++k) entries[k].push_back(results[k]);
    limit.check(b + 1, batch);
  }
  if (entries.empty()) throw Error("its batch is empty");
  build_.set_origin(node.label());
  std::vector<ValueId> outputs;
  for (const std::vector<ValueId>& list : entries) outputs.push_back(stack(build_, list, 0));
  bind_all(node, outputs);
}

}  // namespace zeroplan
