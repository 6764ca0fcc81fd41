#include "tests/conformance/suite.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "base/error.h"
#include "graph/onnx/proto_checks.h"
#include "graph/onnx/tensor_data.h"
#include "tests/conformance/dropout_masks.h"

namespace zeroplan {
namespace {

namespace fs = std::filesystem;

std::string read_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  if (!in) throw Error(fmt::format("cannot read {}", path.string()));
  return bytes.str();
}

SuiteTensor read_tensor(const fs::path& path, const onnx::ValueInfoProto& info) {
  const auto& type = info.type();
  if (!type.has_tensor_type()) throw Error(fmt::format("'{}' is a sequence or an optional", info.name()));
  onnx::TensorProto proto;
  if (!proto.ParseFromString(read_bytes(path))) throw Error(fmt::format("{} holds no tensor", path.string()));
  OnnxTensor tensor;
  tensor.name = info.name();
  // The suite writes bfloat16 as its bits.
  const bool bits = type.tensor_type().elem_type() == kOnnxBfloat16 && proto.data_type() == kOnnxUint16;
  tensor.type = bits ? kOnnxBfloat16 : proto.data_type();
  tensor.shape = tensor_shape(proto);
  if (tensor.type == kOnnxString) throw Error(fmt::format("'{}' is a tensor of strings", info.name()));
  tensor.bytes = tensor_contents(proto);
  WeightFiles none("");
  return {info.name(), tensor.type, load_tensor(tensor, none, DType::f64)};
}

// Graph inputs that are initializers too have no file where the set leaves them out.
std::vector<SuiteTensor> read_list(const fs::path& set, const std::string& kind,
                                   const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& values) {
  std::vector<SuiteTensor> tensors;
  for (int i = 0; i < values.size(); ++i) {
    const fs::path file = set / fmt::format("{}_{}.pb", kind, i);
    if (fs::exists(file)) tensors.push_back(read_tensor(file, values[i]));
  }
  return tensors;
}

}  // namespace

std::vector<SuiteCase> list_cases(const fs::path& folder) {
  std::vector<SuiteCase> cases;
  if (!fs::is_directory(folder)) throw Error(fmt::format("{} is no folder", folder.string()));
  for (const auto& entry : fs::directory_iterator(folder))
    if (fs::exists(entry.path() / "model.onnx")) cases.push_back({entry.path().filename().string(), entry.path() / "model.onnx", {}});
  std::sort(cases.begin(), cases.end(), [](const SuiteCase& a, const SuiteCase& b) { return a.name < b.name; });
  return cases;
}

void load_case(SuiteCase& suite_case) {
  onnx::ModelProto model;
  if (!model.ParseFromString(read_bytes(suite_case.model))) throw Error("the model cannot be parsed");
  for (int i = 0;; ++i) {
    const fs::path set = suite_case.model.parent_path() / fmt::format("test_data_set_{}", i);
    if (!fs::is_directory(set)) break;
    suite_case.sets.push_back({read_list(set, "input", model.graph().input()), read_list(set, "output", model.graph().output()), {}});
    suite_case.sets.back().masks = numpy_dropout_masks(model.graph(), suite_case.sets.back());
  }
  if (suite_case.sets.empty()) throw Error("it has no data set");
}

}  // namespace zeroplan
