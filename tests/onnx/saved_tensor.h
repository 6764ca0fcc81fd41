#pragma once
// What lies in a model file, read by protobuf alone.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <fstream>
#include <string>

namespace zeroplan {

inline onnx::ModelProto load_model(const std::string& path) {
  onnx::ModelProto model;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good() && model.ParseFromIstream(&file)) << path;
  return model;
}

inline const onnx::TensorProto& saved_tensor(const onnx::ModelProto& model, const std::string& name) {
  for (const auto& tensor : model.graph().initializer())
    if (tensor.name() == name) return tensor;
  ADD_FAILURE() << "no initializer " << name;
  return onnx::TensorProto::default_instance();
}

inline std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

}  // namespace zeroplan
