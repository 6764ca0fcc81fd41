#include "graph/onnx/parse_model.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "base/error.h"
#include "graph/onnx/limits.h"

namespace zeroplan {

onnx::ModelProto parse_model(const WireModel& wire) {
  onnx::ModelProto model;
  google::protobuf::io::ArrayInputStream stream(wire.stripped.data(), static_cast<int>(wire.stripped.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetRecursionLimit(2 * kMaxMessageDepth);
  if (!model.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage())
    throw Error("not a valid ONNX model: the file is damaged or of another kind; export the model again");
  return model;
}

}  // namespace zeroplan
