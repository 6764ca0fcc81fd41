#include "graph/onnx/sample_count.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/same_samples.h"
#include "graph/ops/op_def.h"

namespace zeroplan {
namespace {

using Kind = SampleAxis::Kind;

// What a value without samples has of their number.
struct Trace {
  bool counted = false;  // its elements are made of it
  int doubled = -1;      // the axis that it lengthens
};

std::vector<NodeId> live_nodes(const SampleReading& reading) {
  std::vector<bool> live(reading.graph.values.size(), false);
  live[reading.output] = true;
  std::vector<NodeId> nodes;
  for (size_t i = reading.graph.nodes.size(); i-- > 0;) {
    const Node& node = reading.graph.nodes[i];
    if (std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) { return id != kNone && live[id]; })) continue;
    for (const ValueId id : node.inputs)
      if (id != kNone) live[id] = true;
    nodes.push_back(static_cast<NodeId>(i));
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

// Counted where the shapes differ in another way than by one axis of twice the length.
Trace compare_shapes(const Shape& once, const Shape& twice) {
  if (once.size() != twice.size()) return {true};
  Trace trace;
  for (size_t i = 0; i < once.size(); ++i) {
    if (once[i] == twice[i]) continue;
    if (twice[i] != 2 * once[i] || trace.doubled >= 0) return {true};
    trace.doubled = static_cast<int>(i);
  }
  return trace;
}

// Are the samples of `once` the first ones of `twice`, where `stride` elements along the axis belong to one?
bool begins_with(const HostTensor& once, const HostTensor& twice, int axis, int64_t stride, int64_t samples) {
  const int64_t size = dtype_bytes(once.dtype());
  int64_t inner = stride * size;
  for (size_t i = axis + 1; i < once.shape().size(); ++i) inner *= once.shape()[i];
  const int64_t block = inner * samples;
  const std::byte *a = once.data(), *b = twice.data();
  for (int64_t at = 0; at < once.count() * size; at += block)
    if (std::memcmp(a + at, b + 2 * at, block) != 0 || std::memcmp(a + at, b + 2 * at + block, block) != 0) return false;
  return true;
}

Trace compare_constants(const HostTensor& once, const HostTensor& twice, int64_t samples) {
  if (once.dtype() != twice.dtype()) return {true};
  Trace trace = compare_shapes(once.shape(), twice.shape());
  if (trace.counted || once.count() == 0) return trace;
  if (trace.doubled < 0) {
    trace.counted = std::memcmp(once.data(), twice.data(), once.count() * dtype_bytes(once.dtype())) != 0;
    return trace;
  }
  trace.counted = true;
  const int64_t rounds = once.shape()[trace.doubled] / samples;
  if (once.shape()[trace.doubled] % samples != 0) return trace;
  for (int64_t stride = rounds; stride > 0 && trace.counted; --stride)
    if (rounds % stride == 0) trace.counted = !begins_with(once, twice, trace.doubled, stride, samples);
  return trace;
}

// Shapes are compared where they are the outputs'; what counts along the doubled axis may double.
bool same_attributes(const Attributes& once, const Attributes& twice, int doubled) {
  const auto same = [&](const Attributes::Entry& a, const Attributes::Entry& b) {
    if (a.first != b.first) return false;
    if (a.first == Attr::shape || a.second == b.second) return true;
    if (a.first != Attr::starts || doubled < 0) return false;
    auto starts = std::get<std::vector<int64_t>>(a.second);
    starts[doubled] *= 2;
    return starts == std::get<std::vector<int64_t>>(b.second);
  };
  return std::equal(once.entries().begin(), once.entries().end(), twice.entries().begin(), twice.entries().end(), same);
}

class Comparison {
 public:
  Comparison(const SampleReading& once, const SampleReading& twice, int64_t micro_batches)
      : once_(once), twice_(twice), micro_batches_(micro_batches), twins_(once.graph.values.size(), kNone), traces_(twins_.size()) {}

  void run() {
    const std::vector<NodeId> nodes = live_nodes(once_), twins = live_nodes(twice_);
    for (size_t i = 0; i < nodes.size(); ++i) {
      const Node& node = once_.graph.nodes[nodes[i]];
      if (i >= twins.size()) refuse(node);
      compare(node, twice_.graph.nodes[twins[i]]);
    }
    if (twins.size() > nodes.size()) refuse(twice_.graph.nodes[twins[nodes.size()]]);
  }

 private:
  [[noreturn]] void refuse(const Node& node) const {
    throw Error(
        fmt::format("node '{}' ({}) depends on the number of samples that are computed together, so that {} micro-batches would not "
                    "give the result of the whole batch; use one micro-batch (--micro-batches 1), or let the model take a mean over "
                    "samples, or divide after their sum",
                    node.origin, op_name(node.op), micro_batches_));
  }

  void compare(const Node& node, const Node& twin) {
    if (node.op != twin.op || node.outputs.size() != twin.outputs.size()) refuse(node);
    const std::vector<Trace> reads = compare_operands(node, twin);
    const bool of_samples =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return id != kNone && once_.axes[id].kind == Kind::axis; });
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i], other = twin.outputs[i];
      if (id == kNone || other == kNone) continue;
      twins_[id] = other;
      const SampleAxis &lie = once_.axes[id], &lie_of_twin = twice_.axes[other];
      if (lie.kind != lie_of_twin.kind || lie.axis != lie_of_twin.axis || lie.stride != lie_of_twin.stride) refuse(node);
      if (lie.kind == Kind::none)
        without_samples(node, twin, reads, id);
      else if (of_samples)
        with_samples(node, twin, reads, id);
    }
  }

  // Of a gather: where table and indices go through samples together.
  static int shared_axes(const Node& node) {
    return node.attributes.has(Attr::axes) ? static_cast<int>(node.attributes.get_ints(Attr::axes).size()) : 0;
  }

  // A gather along the samples by constants, each its own (the axes say so for both readings): sample 0 takes the same in both.
  bool takes_own_samples(const Node& node, const Node& twin) const {
    if (node.op != OpKind::gather || once_.graph.values[node.inputs[1]].kind != ValueKind::constant) return false;
    const SampleAxis& table = once_.axes[node.inputs[0]];
    if (table.kind != Kind::axis || table.axis != node.attributes.get_int(Attr::axis)) return false;
    const HostTensor &once = once_.graph.values[node.inputs[1]].constant, &twice = twice_.graph.values[twin.inputs[1]].constant;
    const Trace shape = compare_shapes(once.shape(), twice.shape());
    if (shape.counted || shape.doubled < 0) return false;
    const int64_t inner = inner_elements(once.shape(), shape.doubled, once.shape()[shape.doubled] / once_.samples),
                  block = inner * once_.samples;
    for (int64_t i = 0; i < once.count(); ++i)
      if (i % block < inner && once.get_int(i) != twice.get_int(i / block * 2 * block + i % block)) return false;
    return true;
  }

  // Samples apart, or brought together by this node.
  void with_samples(const Node& node, const Node& twin, const std::vector<Trace>& reads, ValueId id) const {
    const Trace shape = compare_shapes(once_.graph.values[id].shape, twice_.graph.values[twins_[id]].shape);
    bool counted = false;
    for (size_t i = 0; i < reads.size(); ++i) counted = counted || (reads[i].counted && !(i == 1 && takes_own_samples(node, twin)));
    const bool longer_table =
        node.op == OpKind::gather && once_.axes[node.inputs[0]].kind == Kind::none && reads[0].doubled >= shared_axes(node);
    if (counted || longer_table || shape.counted || shape.doubled != once_.axes[id].axis ||
        !same_attributes(node.attributes, twin.attributes, shape.doubled))
      refuse(node);
  }

  // An axis that counts samples may be there as long as it meets samples in the end: a reduction of it counts them.
  void without_samples(const Node& node, const Node& twin, const std::vector<Trace>& reads, ValueId id) {
    const Trace shape = compare_shapes(once_.graph.values[id].shape, twice_.graph.values[twins_[id]].shape);
    const bool lost = std::any_of(reads.begin(), reads.end(),
                                  [&](const Trace& trace) { return trace.counted || (trace.doubled >= 0 && shape.doubled < 0); });
    if (lost || shape.counted || !same_attributes(node.attributes, twin.attributes, shape.doubled)) refuse(node);
    traces_[id] = shape;
  }

  std::vector<Trace> compare_operands(const Node& node, const Node& twin) {
    const size_t count = node.inputs.size();
    const bool repeated = node.op == OpKind::concat && twin.inputs.size() == 2 * count;  // a table once for each sample
    if (twin.inputs.size() != count && !repeated) refuse(node);
    std::vector<Trace> reads;
    for (size_t i = 0; i < twin.inputs.size(); ++i) {
      const std::optional<Trace> trace = compare_operand(node.inputs[i % count], twin.inputs[i]);
      if (!trace) refuse(node);
      reads.push_back(*trace);
    }
    return reads;
  }

  // Empty: not the same value of the model.
  std::optional<Trace> compare_operand(ValueId id, ValueId other) const {
    if (id == kNone || other == kNone) return id == other ? std::optional<Trace>(Trace{}) : std::nullopt;
    const Value &value = once_.graph.values[id], &twin = twice_.graph.values[other];
    if (value.kind != twin.kind) return std::nullopt;
    bool same = true;
    switch (value.kind) {
      case ValueKind::constant: return compare_constants(value.constant, twin.constant, once_.samples);
      case ValueKind::parameter: same = value.parameter == twin.parameter; break;
      case ValueKind::computed: same = twins_[id] == other; break;
      default: same = value.name == twin.name;
    }
    return same ? std::optional<Trace>(traces_[id]) : std::nullopt;
  }

  const SampleReading &once_, &twice_;
  const int64_t micro_batches_;
  std::vector<ValueId> twins_;  // value of `once` -> the same in `twice`
  std::vector<Trace> traces_;   // of values without samples
};

}  // namespace

void check_sample_count(const SampleReading& once, const SampleReading& twice, int64_t micro_batches) {
  Comparison(once, twice, micro_batches).run();
}

}  // namespace zeroplan
