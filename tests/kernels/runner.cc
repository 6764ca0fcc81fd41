#include "tests/kernels/runner.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "graph/ops/elementwise.h"

namespace zeroplan {

namespace {

constexpr int64_t kGuard = 256;
constexpr std::byte kPattern{0xA5};

// Bytes between two guards, aligned as workspace is.
class Guarded {
 public:
  explicit Guarded(int64_t bytes) : bytes_(bytes), storage_(bytes + 2 * kGuard + 128, kPattern) {}
  std::byte* data() {
    auto address = reinterpret_cast<uintptr_t>(storage_.data()) + kGuard;
    return reinterpret_cast<std::byte*>((address + 127) / 128 * 128);
  }
  std::span<std::byte> memory() { return storage_; }
  bool intact() {
    const std::byte *begin = data(), *end = begin + bytes_;
    for (const std::byte& b : storage_) {
      if ((&b < begin || &b >= end) && b != kPattern) return false;
    }
    return true;
  }

 private:
  int64_t bytes_;
  std::vector<std::byte> storage_;
};

Strides strides_of(MemoryLayout layout, const Shape& shape) {
  Strides strides(shape.size());
  int64_t step = layout == MemoryLayout::every_other ? 2 : 1;
  for (size_t k = 0; k < shape.size(); ++k) {
    const size_t axis = layout == MemoryLayout::reversed_axes ? k : shape.size() - 1 - k;
    strides[axis] = step;
    step *= shape[axis];
    if (layout == MemoryLayout::padded_rows) step += 3;
  }
  return strides;
}

LaidOut operand(const CaseGraph& built, int input, RunOptions& options) {
  const HostTensor& contents = built.values.at(built.node.inputs[input]);
  const Strides wanted = strides_of(options.layout, contents.shape());
  const bool own = options.in_place && options.in_place->second == input;
  const OpDef& def = op_def(built.node.op);
  if (options.layout != MemoryLayout::contiguous && !own && def.accepts &&
      def.accepts(built.graph, built.node, input, contents.shape(), wanted)) {
    ++options.strided_inputs;
    return lay_out(contents, wanted);
  }
  return lay_out(contents, contiguous_strides(contents.shape()));
}

}  // namespace

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const char* name : {"baseline", "avx2", "avx512"}) {
    if (cpu_kernel(OpKind::add, name)) names.push_back(name);
  }
  return names;
}

TestDevice cpu_device(const std::string& instruction_set) {
  return {instruction_set, [kernel_set = instruction_set](OpKind op, KernelArgs& args, std::span<const std::span<std::byte>>) {
            cpu_kernel(op, kernel_set)(args);
          }};
}

void run_kernel(const TestDevice& device, OpKind op, KernelArgs& args) {
  std::vector<std::span<std::byte>> memory;
  const auto note = [&](const TensorView& view) {
    const bool known = std::any_of(memory.begin(), memory.end(), [&](auto& buffer) { return buffer.data() == view.data; });
    if (view.data != nullptr && !known)
      memory.emplace_back(static_cast<std::byte*>(view.data), static_cast<size_t>(view.elements() * dtype_bytes(view.dtype)));
  };
  std::for_each(args.inputs, args.inputs + args.input_count, note);
  std::for_each(args.outputs, args.outputs + args.output_count, note);
  device.run(op, args, memory);
}

LaidOut lay_out(const HostTensor& contents, const Strides& strides) {
  int64_t last = 0;
  for (size_t i = 0; i < strides.size(); ++i) last += std::max<int64_t>(contents.shape()[i] - 1, 0) * strides[i];
  const int64_t size = dtype_bytes(contents.dtype());
  LaidOut result;
  result.bytes.assign((last + 1) * size, kPattern);
  Shape index(strides.size(), 0);
  for (int64_t n = 0; n < contents.count(); ++n) {
    int64_t at = 0;
    for (size_t i = 0; i < strides.size(); ++i) at += index[i] * strides[i];
    std::memcpy(result.bytes.data() + at * size, contents.data() + n * size, size);
    for (size_t axis = strides.size(); axis-- > 0 && ++index[axis] == contents.shape()[axis];) index[axis] = 0;
  }
  result.view = make_view(result.bytes.data(), contents.dtype(), contents.shape(), strides);
  return result;
}

std::vector<HostTensor> run_case(const CaseGraph& built, RunOptions& options) {
  const Node& node = built.node;
  std::vector<LaidOut> inputs(node.inputs.size());
  std::vector<TensorView> in(node.inputs.size()), out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] == kNone) continue;
    inputs[i] = operand(built, static_cast<int>(i), options);
    in[i] = inputs[i].view;
  }
  std::vector<Guarded> outputs;
  for (const ValueId id : node.outputs) {
    const Value& value = built.graph.value(id);
    outputs.emplace_back(elements(value.shape) * dtype_bytes(value.dtype));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value& value = built.graph.value(node.outputs[i]);
    out.push_back(make_view(outputs[i].data(), value.dtype, value.shape));
  }
  if (options.in_place) {
    const auto [output, input] = *options.in_place;
    std::memcpy(outputs[output].data(), in[input].data, inputs[input].bytes.size());
    in[input].data = outputs[output].data();
  }
  const int64_t scratch = workspace_bytes(built.graph, node, options.device.kind, options.threads);
  Guarded workspace(scratch);
  KernelArgs args;
  args.inputs = in.data();
  args.input_count = static_cast<int>(in.size());
  args.outputs = out.data();
  args.output_count = static_cast<int>(out.size());
  args.workspace = workspace.data();
  args.workspace_bytes = scratch;
  args.attributes = &node.attributes;
  const ElementwiseCode chain = node.op == OpKind::elementwise ? decode_elementwise(node.attributes) : ElementwiseCode{};
  args.chain = &chain;
  args.threads = options.threads;
  const std::vector<LaidOut> before = inputs;
  std::vector<std::span<std::byte>> memory{workspace.memory()};
  for (LaidOut& input : inputs) memory.emplace_back(input.bytes);
  for (Guarded& output : outputs) memory.push_back(output.memory());
  options.device.run(node.op, args, memory);
  EXPECT_TRUE(workspace.intact()) << "wrote around its workspace";
  for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(inputs[i].bytes == before[i].bytes) << "wrote to input " << i;
  std::vector<HostTensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_TRUE(outputs[i].intact()) << "wrote around output " << i;
    HostTensor result(out[i].dtype, built.graph.value(node.outputs[i]).shape);
    if (result.bytes() > 0) std::memcpy(result.mutable_data(), outputs[i].data(), result.bytes());
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace zeroplan
