#include "tests/conformance/suite.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <onnx/onnx-data.pb.h>
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

template <typename Proto>
Proto read_proto(const fs::path& path) {
  Proto proto;
  if (!proto.ParseFromString(read_bytes(path))) throw Error(fmt::format("{} does not hold what the model states", path.string()));
  return proto;
}

SuiteTensor plain_tensor(const onnx::TensorProto& proto, const std::string& name, bool bfloat16, bool item) {
  OnnxTensor tensor;
  tensor.name = name;
  tensor.type = bfloat16 && proto.data_type() == kOnnxUint16 ? kOnnxBfloat16 : proto.data_type();  // the suite writes its bits
  tensor.shape = tensor_shape(proto);
  if (tensor.type == kOnnxString) throw Error(fmt::format("'{}' is a tensor of strings", name));
  tensor.bytes = tensor_contents(proto);
  WeightFiles none("");
  return {name, tensor.type, load_tensor(tensor, none, DType::f64), item};
}

// One that is empty is an empty tensor of its name.
void add_items(const onnx::SequenceProto& proto, const std::string& name, std::vector<SuiteTensor>& to) {
  int i = 0;
  for (const auto& value : proto.tensor_values()) to.push_back(plain_tensor(value, fmt::format("{}[{}]", name, i++), false, true));
  if (i == 0) to.push_back({name, 0, HostTensor(DType::f64, {0}), true});
}

void add_values(const fs::path& path, const onnx::ValueInfoProto& info, std::vector<SuiteTensor>& to) {
  const auto& type = info.type();
  if (type.has_tensor_type()) {
    const bool bfloat16 = type.tensor_type().elem_type() == kOnnxBfloat16;
    to.push_back(plain_tensor(read_proto<onnx::TensorProto>(path), info.name(), bfloat16, false));
  } else if (type.has_sequence_type()) {
    add_items(read_proto<onnx::SequenceProto>(path), info.name(), to);
  } else {
    const auto optional = read_proto<onnx::OptionalProto>(path);
    if (optional.has_tensor_value()) to.push_back(plain_tensor(optional.tensor_value(), info.name(), false, true));
    if (optional.has_sequence_value()) add_items(optional.sequence_value(), info.name(), to);
  }
}

bool is_sequence(const onnx::TypeProto& type) {
  return type.has_sequence_type() || (type.has_optional_type() && type.optional_type().elem_type().has_sequence_type());
}

// Graph inputs that are initializers too have no file where the set leaves them out.
std::vector<SuiteTensor> read_list(const fs::path& set, const std::string& kind,
                                   const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& values) {
  std::vector<SuiteTensor> tensors;
  for (int i = 0; i < values.size(); ++i) {
    const fs::path file = set / fmt::format("{}_{}.pb", kind, i);
    if (fs::exists(file)) add_values(file, values[i], tensors);
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
    for (const auto& output : model.graph().output())
      if (is_sequence(output.type())) suite_case.sets.back().sequences.push_back(output.name());
    suite_case.sets.back().masks = numpy_dropout_masks(model.graph(), suite_case.sets.back());
  }
  if (suite_case.sets.empty()) throw Error("it has no data set");
}

}  // namespace zeroplan
