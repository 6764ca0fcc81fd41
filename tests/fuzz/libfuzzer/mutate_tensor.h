#pragma once
// Mutations of tensors: their data fits their shape and type again afterwards, as the importer looks at nothing else otherwise.
#include <onnx/onnx_pb.h>

#include "tests/fuzz/libfuzzer/choice.h"

namespace zeroplan {

void change_tensor(Choice& choice, onnx::TensorProto& tensor);
void refill(Choice& choice, onnx::TensorProto& tensor);  // data for the type and the shape that it has

}  // namespace zeroplan
