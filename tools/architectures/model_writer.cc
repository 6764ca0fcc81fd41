#include "tools/architectures/model_writer.h"

#include <cmath>
#include <filesystem>
#include <numbers>

#include <fmt/format.h>

#include "api/zeroplan.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/random.h"

namespace zeroplan {
namespace {

constexpr int64_t kLargestInside = int64_t{1} << 30;  // bytes of weights kept in the model file
constexpr int64_t kChunk = 1 << 20;                   // elements generated at a time

// In (0, 1).
double uniform(uint64_t key, uint64_t counter) {
  return (static_cast<double>(SplitMix64::mix(key + counter * SplitMix64::kStep) >> 11) + 0.5) * 0x1p-53;
}

// Elements [first, first + values.size()) of a weight: Box–Muller on pairs of counters.
void generate(Init init, uint64_t key, int64_t first, std::vector<float>& values) {
  if (init.deviation == 0) return std::fill(values.begin(), values.end(), static_cast<float>(init.value)), void();
  for (size_t i = 0; i < values.size(); i += 2) {
    const uint64_t counter = static_cast<uint64_t>(first) + i;
    const double radius = init.deviation * std::sqrt(-2 * std::log(uniform(key, counter)));
    const double angle = 2 * std::numbers::pi * uniform(key, counter + 1);
    values[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < values.size()) values[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
}

uint64_t weight_key(uint64_t seed, size_t index) { return (seed + 1) * 0xd1342543de82ef95ull + index * 0xaf251af3b0f025b5ull; }

void set_entry(onnx::TensorProto& tensor, const char* key, const std::string& value) {
  onnx::StringStringEntryProto* entry = tensor.add_external_data();
  entry->set_key(key);
  entry->set_value(value);
}

}  // namespace

ModelWriter::ModelWriter(const std::string& graph_name, int opset) {
  model_.set_ir_version(9);
  model_.set_producer_name("zeroplan");
  model_.set_producer_version(version());
  model_.mutable_graph()->set_name(graph_name);
  onnx::OperatorSetIdProto* import = model_.add_opset_import();
  import->set_domain("");
  import->set_version(opset);
}

void ModelWriter::input(const std::string& name, bool integer, int64_t batch, const std::vector<int64_t>& rest) {
  onnx::ValueInfoProto* info = model_.mutable_graph()->add_input();
  info->set_name(name);
  onnx::TypeProto_Tensor* type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(integer ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT);
  onnx::TensorShapeProto_Dimension* first = type->mutable_shape()->add_dim();
  if (batch > 0)
    first->set_dim_value(batch);
  else
    first->set_dim_param("batch");
  for (const int64_t size : rest) type->mutable_shape()->add_dim()->set_dim_value(size);
}

void ModelWriter::scalar_output(const std::string& name) {
  onnx::ValueInfoProto* info = model_.mutable_graph()->add_output();
  info->set_name(name);
  info->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  info->mutable_type()->mutable_tensor_type()->mutable_shape();
}

std::string ModelWriter::weight(const std::string& name, const std::vector<int64_t>& shape, Init init) {
  weights_.push_back({name, shape, init, elements(shape)});
  onnx::TensorProto* tensor = model_.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t size : shape) tensor->add_dims(size);
  return name;
}

std::string ModelWriter::constant(const onnx::TensorProto& tensor) {
  const std::string name = node("Constant", {});
  onnx::AttributeProto& value = last_attribute("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  *value.mutable_t() = tensor;
  return name;
}

std::string ModelWriter::ints(const std::vector<int64_t>& values) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) tensor.add_int64_data(value);
  return constant(tensor);
}

std::string ModelWriter::int_scalar(int64_t value) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_int64_data(value);
  return constant(tensor);
}

std::string ModelWriter::floats(const std::vector<float>& values) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const float value : values) tensor.add_float_data(value);
  return constant(tensor);
}

std::string ModelWriter::float_scalar(float value) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_float_data(value);
  return constant(tensor);
}

std::string ModelWriter::node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output) {
  onnx::NodeProto* node = model_.mutable_graph()->add_node();
  const std::string name = output.empty() ? fmt::format("{}_{}", op, ++counter_) : output;
  node->set_op_type(op);
  node->set_name("node_" + name);
  for (const std::string& input : inputs) node->add_input(input);
  node->add_output(name);
  return name;
}

std::vector<std::string> ModelWriter::split(const std::string& x, const std::vector<int64_t>& sizes, int64_t axis) {
  const std::string lengths = ints(sizes);
  const std::string first = node("Split", {x, lengths});
  std::vector<std::string> outputs = {first};
  onnx::NodeProto* split = model_.mutable_graph()->mutable_node(model_.graph().node_size() - 1);
  for (size_t i = 1; i < sizes.size(); ++i) {
    outputs.push_back(fmt::format("{}_part{}", first, i));
    split->add_output(outputs.back());
  }
  attribute("axis", axis);
  return outputs;
}

onnx::AttributeProto& ModelWriter::last_attribute(const std::string& name) {
  onnx::NodeProto* node = model_.mutable_graph()->mutable_node(model_.graph().node_size() - 1);
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  return *attribute;
}

void ModelWriter::attribute(const std::string& name, int64_t value) {
  onnx::AttributeProto& attribute = last_attribute(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

void ModelWriter::attribute(const std::string& name, float value) {
  onnx::AttributeProto& attribute = last_attribute(name);
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_f(value);
}

void ModelWriter::attribute(const std::string& name, const std::string& value) {
  onnx::AttributeProto& attribute = last_attribute(name);
  attribute.set_type(onnx::AttributeProto::STRING);
  attribute.set_s(value);
}

void ModelWriter::attribute(const std::string& name, const std::vector<int64_t>& value) {
  onnx::AttributeProto& attribute = last_attribute(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const int64_t item : value) attribute.add_ints(item);
}

void ModelWriter::place_inside(uint64_t seed) {
  for (size_t i = 0; i < weights_.size(); ++i) {
    std::vector<float> values(weights_[i].count);
    generate(weights_[i].init, weight_key(seed, i), 0, values);
    model_.mutable_graph()->mutable_initializer(static_cast<int>(i))->set_raw_data(values.data(), values.size() * sizeof(float));
  }
}

// Every weight at a 4 KiB border of <output>.data; without weights the file is only named.
void ModelWriter::place_beside(const NewOptions& options, OutputFile& data) {
  if (options.weights) data.create();
  int64_t offset = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    onnx::TensorProto& tensor = *model_.mutable_graph()->mutable_initializer(static_cast<int>(i));
    const int64_t bytes = checked_mul(weights_[i].count, sizeof(float));
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    set_entry(tensor, "location", std::filesystem::path(data.path()).filename().string());
    set_entry(tensor, "offset", fmt::to_string(offset));
    set_entry(tensor, "length", fmt::to_string(bytes));
    if (options.weights) data.pad_to(offset);
    for (int64_t first = 0; options.weights && first < weights_[i].count; first += kChunk) {
      std::vector<float> values(std::min(kChunk, weights_[i].count - first));
      generate(weights_[i].init, weight_key(options.seed, i), first, values);
      data.write(values.data(), static_cast<int64_t>(values.size() * sizeof(float)));
    }
    offset = round_up(checked_add(offset, bytes), 4096);
  }
}

int64_t ModelWriter::save(const NewOptions& options) {
  int64_t count = 0;
  for (const Weight& weight : weights_) count = checked_add(count, weight.count);
  if (!options.weights) {
    onnx::StringStringEntryProto* entry = model_.add_metadata_props();
    entry->set_key("ai.zeroplan.weights");
    entry->set_value("absent");
  }
  OutputFile file(options.output), data(options.output + ".data");
  if (options.weights && count * 4 <= kLargestInside)
    place_inside(options.seed);
  else
    place_beside(options, data);
  file.create();
  if (!model_.SerializeToFileDescriptor(file.descriptor()))
    throw Error(fmt::format("cannot write '{}': the disk is full, or the model is larger than 2 GB", options.output));
  if (data.created()) data.commit();
  file.commit();
  return count;
}

}  // namespace zeroplan
