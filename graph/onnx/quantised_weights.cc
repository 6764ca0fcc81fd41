#include "graph/onnx/quantised_weights.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

// Inputs of an operator: quantised numbers, their scale, their zero point; the axis along which there may be several scales.
struct Reader {
  const char* op;
  int numbers, scale, zero_point;
  int axis;  // negative: from the end; DequantizeLinear states it
};

constexpr Reader kReaders[] = {{"DequantizeLinear", 0, 1, 2, 1}, {"QLinearMatMul", 3, 4, 5, -1}, {"QLinearConv", 3, 4, 5, 0}};

const Reader* reader_of(const Use& use) {
  for (const Reader& reader : kReaders)
    if (use.node->domain.empty() && use.node->op == reader.op && use.input == reader.numbers) return &reader;
  return nullptr;
}

std::string input_of(const OnnxNode& node, int input) { return input < static_cast<int>(node.inputs.size()) ? node.inputs[input] : ""; }

bool may_be_weights(int type) {
  return type == kOnnxInt8 || type == kOnnxUint8 || type == kOnnxInt16 || type == kOnnxUint16 || type == kOnnxInt32;
}

const OnnxTensor* find_stored(const TensorMap& stored, const std::string& name) {
  const auto found = stored.find(name);
  return found == stored.end() || !found->second->in_file ? nullptr : found->second;
}

int64_t product(const Shape& shape, size_t from) {
  return std::accumulate(shape.begin() + static_cast<int64_t>(from), shape.end(), int64_t{1}, std::multiplies<>());
}

// False: the scale's shape is not one that the reader allows, which its decoder refuses by name.
bool lay_out(Quantization& q, const Shape& shape, const Shape& scale, int64_t axis, int64_t block) {
  q.count = product(scale, 0);
  q.block = block;
  if (q.count == 1 && block == 0) return true;
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < -rank || axis >= rank || block < 0) return false;
  const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  q.extent = shape[at];
  q.inner = product(shape, at + 1);
  if (block == 0) return q.count == q.extent;
  Shape blocks = shape;
  blocks[at] = ceil_div(shape[at], block);
  return blocks == scale;
}

QuantisedWeight read_by(const OnnxTensor& tensor, const Use& use, const Reader& reader, const TensorMap& stored) {
  const auto no = [&](const std::string& why) { return QuantisedWeight{std::nullopt, why}; };
  const std::string scale_name = input_of(*use.node, reader.scale), zero_name = input_of(*use.node, reader.zero_point);
  const OnnxTensor* scale = find_stored(stored, scale_name);
  const OnnxTensor* zero = find_stored(stored, zero_name);
  if (!scale || !is_floating_type(scale->type)) return no(fmt::format("its scale '{}' is not stored in one piece", scale_name));
  if (!zero_name.empty() && !zero) return no(fmt::format("its zero point '{}' is not stored in one piece", zero_name));
  Quantization q;
  q.scale = scale->source;
  if (zero) q.zero_point = zero->source;
  const bool states_axis = use.node->op == "DequantizeLinear";
  const int64_t axis = states_axis ? use.node->integer("axis", reader.axis) : reader.axis;
  const bool laid_out = lay_out(q, tensor.shape, scale->shape, axis, states_axis ? use.node->integer("block_size", 0) : 0);
  if (!laid_out || (zero && (zero->type != tensor.type || product(zero->shape, 0) != q.count)))
    return no("its scale or zero point does not fit it");
  return {q, ""};
}

bool same(const StoredRun& a, const StoredRun& b) { return a.initializer == b.initializer; }

bool same(const Quantization& a, const Quantization& b) {
  return same(a.scale, b.scale) && same(a.zero_point, b.zero_point) && a.extent == b.extent && a.inner == b.inner && a.block == b.block;
}

}  // namespace

int64_t quantised_axis(const Quantization& q, const Shape& shape) {
  if (q.count == 1 && q.block == 0) return 0;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] == q.extent && product(shape, axis + 1) == q.inner) return static_cast<int64_t>(axis);
  throw Error("the scales of a quantised weight lie along none of its axes");
}

DType stored_dtype(StoredType integers) {
  switch (integers) {
    case StoredType::i8: return DType::i8;
    case StoredType::u8: return DType::u8;
    case StoredType::i16: return DType::i16;
    case StoredType::u16: return DType::u16;
    case StoredType::i32: return DType::i32;
    default: throw Error("weights of a floating-point type are not quantised");
  }
}

TensorMap stored_tensors(const OnnxGraph& graph) {
  TensorMap stored;
  for (const OnnxGraph* inner : all_graphs(graph)) {
    for (const OnnxTensor& tensor : inner->initializers) stored.emplace(tensor.name, &tensor);
    for (const OnnxNode& node : inner->nodes) {
      const OnnxAttribute* value = node.op == "Constant" && node.domain.empty() && node.outputs.size() == 1 ? node.find("value") : nullptr;
      if (value) stored.emplace(node.outputs[0], &value->tensor);
    }
  }
  return stored;
}

std::optional<QuantisedWeight> quantised_weight(const OnnxTensor& tensor, const std::vector<Use>& readers, const TensorMap& stored) {
  const bool weight = std::any_of(readers.begin(), readers.end(), [](const Use& use) { return reader_of(use) != nullptr; });
  if (!weight || !may_be_weights(tensor.type)) return std::nullopt;
  std::optional<QuantisedWeight> found;
  for (const Use& use : readers) {
    const Reader* reader = reader_of(use);
    if (!reader) return QuantisedWeight{std::nullopt, fmt::format("node '{}' reads its integers", use.node->label())};
    QuantisedWeight here = read_by(tensor, use, *reader, stored);
    if (!here.quantization) return here;
    if (found && !same(*found->quantization, *here.quantization)) return QuantisedWeight{std::nullopt, "it is read with several scales"};
    found = std::move(here);
  }
  return found;
}

}  // namespace zeroplan
