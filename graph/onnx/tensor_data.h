#pragma once
// Element types of ONNX tensors and their contents as host tensors.
#include <cstdint>
#include <optional>
#include <string>

#include "base/host_tensor.h"
#include "graph/onnx/model.h"
#include "graph/onnx/weights.h"

namespace zeroplan {

// TensorProto.DataType
enum OnnxType : int {
  kOnnxFloat = 1,
  kOnnxUint8,
  kOnnxInt8,
  kOnnxUint16,
  kOnnxInt16,
  kOnnxInt32,
  kOnnxInt64,
  kOnnxString,
  kOnnxBool,
  kOnnxFloat16,
  kOnnxDouble,
  kOnnxUint32,
  kOnnxUint64,
  kOnnxComplex64,
  kOnnxComplex128,
  kOnnxBfloat16,
  kOnnxUint4 = 21,
  kOnnxInt4,
};

std::string onnx_type_name(int type);
int onnx_type_bits(int type);  // 0: of no fixed size, or unknown
// The type that values of this ONNX type get in the graph; none where there is no such type. Floats become `precision`.
std::optional<DType> graph_dtype(int type, DType precision);
// The form that weights of this type are stored in; none where there can be no weights of it.
std::optional<StoredType> stored_type(int type);
bool is_floating_type(int type);
// The type of that name in ONNX.
OnnxType onnx_type(DType dtype);
// Bytes that the shape asks for; throws Error naming the tensor on negative or huge dims.
int64_t tensor_bytes(const std::string& name, int type, const Shape& shape);
// Contents converted to graph_dtype. Throws Error on types without one.
HostTensor load_tensor(const OnnxTensor& tensor, WeightFiles& files, DType precision);
// 4-bit integers, which have no type in the graph, as int8 or uint8: what reads them must not ask for the ends of their range.
HostTensor load_nibbles(const OnnxTensor& tensor, WeightFiles& files);

}  // namespace zeroplan
