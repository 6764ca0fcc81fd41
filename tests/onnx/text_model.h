#pragma once
// A model in ONNX's text form as a file.
#include <onnx/defs/parser.h>

#include <string>

#include "base/error.h"
#include "tests/onnx/write_bytes.h"

namespace zeroplan {

inline std::string save_text(const std::string& path, const std::string& text) {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(model, text.c_str());
  if (!status.IsOK()) throw Error("test model: " + status.ErrorMessage());
  write_bytes(path, model.SerializeAsString());
  return path;
}

}  // namespace zeroplan
