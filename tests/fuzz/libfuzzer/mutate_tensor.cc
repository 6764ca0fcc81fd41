#include "tests/fuzz/libfuzzer/mutate_tensor.h"

#include <cstring>

#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

constexpr int64_t kMostElements = 4096;

template <typename T>
void put(std::string& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

void put_element(Choice& choice, int type, std::string& bytes, size_t at) {
  if (type == kOnnxFloat) return put(bytes, at, static_cast<float>(choice.number()));
  if (type == kOnnxDouble) return put(bytes, at, choice.number());
  const int64_t value = choice.integer();
  std::memcpy(bytes.data() + at, &value, static_cast<size_t>(onnx_type_bits(type)) / 8);
}

int64_t element_count(const onnx::TensorProto& tensor) {
  int64_t count = 1;
  for (const int64_t dim : tensor.dims()) count = dim < 0 || dim > kMostElements || count > kMostElements ? kMostElements + 1 : count * dim;
  return count;
}

bool whole_bytes(int type) { return onnx_type_bits(type) >= 8 && onnx_type_bits(type) <= 64; }

void clear_data(onnx::TensorProto& tensor) {
  tensor.clear_float_data();
  tensor.clear_int32_data();
  tensor.clear_int64_data();
  tensor.clear_double_data();
  tensor.clear_uint64_data();
  tensor.clear_external_data();
  tensor.clear_data_location();
}

// One of the elements, in whatever field they are.
void change_element(Choice& choice, onnx::TensorProto& tensor) {
  if (tensor.int64_data_size()) return tensor.set_int64_data(choice.below(tensor.int64_data_size()), choice.integer());
  if (tensor.int32_data_size())
    return tensor.set_int32_data(choice.below(tensor.int32_data_size()), static_cast<int32_t>(choice.integer()));
  if (tensor.float_data_size()) return tensor.set_float_data(choice.below(tensor.float_data_size()), static_cast<float>(choice.number()));
  const size_t size = static_cast<size_t>(onnx_type_bits(tensor.data_type())) / 8;
  std::string& bytes = *tensor.mutable_raw_data();
  if (!whole_bytes(tensor.data_type()) || bytes.size() < size) return;
  put_element(choice, tensor.data_type(), bytes, static_cast<size_t>(choice.below(static_cast<int>(bytes.size() / size))) * size);
}

}  // namespace

void refill(Choice& choice, onnx::TensorProto& tensor) {
  const int64_t count = element_count(tensor);
  if (count > kMostElements || !whole_bytes(tensor.data_type())) return;
  const size_t size = static_cast<size_t>(onnx_type_bits(tensor.data_type())) / 8;
  clear_data(tensor);
  std::string bytes(static_cast<size_t>(count) * size, '\0');
  for (size_t i = 0; i < bytes.size() / size && i < 16; ++i) put_element(choice, tensor.data_type(), bytes, i * size);
  tensor.set_raw_data(std::move(bytes));
}

void change_tensor(Choice& choice, onnx::TensorProto& tensor) {
  switch (choice.below(8)) {
    case 0: tensor.set_data_type(choice.element_type()); return refill(choice, tensor);
    case 1: tensor.add_dims(choice.size()); return refill(choice, tensor);
    case 2: choice.drop(*tensor.mutable_dims()); return refill(choice, tensor);
    case 3:
      if (tensor.dims_size()) tensor.set_dims(choice.below(tensor.dims_size()), choice.size());
      return refill(choice, tensor);
    case 4: return refill(choice, tensor);
    default: return change_element(choice, tensor);
  }
}

}  // namespace zeroplan
