#include "graph/onnx/ort_checkpoint.h"

#include <cstring>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/limits.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

constexpr char kIdentifier[] = "ODTC";
constexpr int32_t kVersion = 2;

[[noreturn]] void fail(const std::string& what) {
  throw Error(fmt::format("the checkpoint is damaged or of another kind: {}; copy or save it again", what));
}

// Access to a flatbuffer; every offset and length is checked against the file.
class FlatBuffer {
 public:
  explicit FlatBuffer(std::span<const std::byte> file) : file_(file) {}

  struct Vector {
    int64_t first = 0;  // of the elements
    int64_t count = 0;
  };

  template <typename T>
  T number(int64_t at) const {
    check_range(at, sizeof(T));
    T value;
    std::memcpy(&value, file_.data() + at, sizeof(T));
    return value;
  }
  int64_t follow(int64_t at) const { return at + number<uint32_t>(at); }
  // Where field `index` of a table lies; -1: left out.
  int64_t field(int64_t table, int index) const {
    const int64_t vtable = table - number<int32_t>(table), slot = 4 + 2 * int64_t{index};
    if (slot + 2 > number<uint16_t>(vtable)) return -1;
    const auto offset = number<uint16_t>(vtable + slot);
    return offset == 0 ? -1 : table + offset;
  }
  template <typename T>
  T number_field(int64_t table, int index, T otherwise) const {
    const int64_t at = field(table, index);
    return at < 0 ? otherwise : number<T>(at);
  }
  // -1: left out.
  int64_t table_field(int64_t table, int index) const {
    const int64_t at = field(table, index);
    return at < 0 ? -1 : follow(at);
  }
  Vector vector_field(int64_t table, int index, int64_t element_bytes) const {
    const int64_t at = table_field(table, index);
    if (at < 0) return {};
    const Vector vector{at + 4, number<uint32_t>(at)};
    check_range(vector.first, vector.count * element_bytes);
    return vector;
  }

 private:
  void check_range(int64_t at, int64_t bytes) const {
    const auto size = static_cast<int64_t>(file_.size());
    if (at < 0 || bytes > size || at > size - bytes) fail(fmt::format("it points to byte {} of {}", at, size));
  }

  std::span<const std::byte> file_;
};

// Fields by their number in the schema.
enum CheckpointField { kCheckpointVersion, kModule, kOptimizerGroups };
enum ModuleField { kTrained, kFrozen, kNominal, kExternal };
enum GroupField { kGroupName, kStep, kLearningRate };
enum TensorField { kName, kDocString, kDims, kDataType, kRawData, kStringData, kExternalOffset };

class Reader {
 public:
  explicit Reader(std::span<const std::byte> file) : flat_(file), names_left_(static_cast<int64_t>(file.size())), file_(file) {}

  OrtCheckpoint run() {
    if (!is_checkpoint(file_)) fail("its identifier is not ODTC");
    const int64_t root = flat_.follow(0);
    if (const auto version = flat_.number_field<int32_t>(root, kCheckpointVersion, 0); version != kVersion)
      throw Error(fmt::format("the checkpoint has version {}, but only version {} can be read; save it with ONNX Runtime 1.17 or later",
                              version, kVersion));
    const int64_t module = flat_.table_field(root, kModule);
    if (module < 0) fail("it holds no parameters");
    if (flat_.number_field<uint8_t>(module, kNominal, 0) != 0)
      throw Error("the checkpoint is nominal: it names the parameters but holds no values; use the one that holds them");
    external_ = flat_.number_field<uint8_t>(module, kExternal, 0) != 0;
    add_tensors(module, kTrained, true);
    add_tensors(module, kFrozen, false);
    read_groups(root);
    return std::move(out_);
  }

 private:
  void add_tensors(int64_t module, int field, bool trained) {
    const FlatBuffer::Vector list = flat_.vector_field(module, field, 4);
    if (list.count > kMaxTensors) fail(fmt::format("it lists {} tensors (limit {})", list.count, kMaxTensors));
    for (int64_t i = 0; i < list.count; ++i) {
      CheckpointTensor tensor = read_tensor(flat_.follow(list.first + 4 * i));
      tensor.trained = trained;
      if (!names_.insert(tensor.name).second) fail(fmt::format("it lists '{}' twice", tensor.name));
      out_.tensors.push_back(std::move(tensor));
    }
  }

  CheckpointTensor read_tensor(int64_t table) {
    CheckpointTensor out;
    out.name = read_name(table);
    const FlatBuffer::Vector dims = flat_.vector_field(table, kDims, 8);
    if (dims.count > kMaxRank) fail(fmt::format("'{}' has rank {}", out.name, dims.count));
    for (int64_t i = 0; i < dims.count; ++i) {
      out.shape.push_back(flat_.number<int64_t>(dims.first + 8 * i));
      if (out.shape.back() < 0 || out.shape.back() > kMaxDim) fail(fmt::format("'{}' has a dimension of {}", out.name, out.shape.back()));
    }
    out.type = flat_.number_field<int32_t>(table, kDataType, 0);
    if (onnx_type_bits(out.type) == 0) fail(fmt::format("'{}' has the element type {}", out.name, out.type));
    out.bytes = tensor_bytes(out.name, out.type, out.shape);
    place(table, out);
    return out;
  }

  void place(int64_t table, CheckpointTensor& out) const {
    const auto offset = flat_.number_field<int64_t>(table, kExternalOffset, -1);
    if (offset >= 0) {
      if (!external_) fail(fmt::format("'{}' lies in external data, of which the checkpoint has none", out.name));
      out.external = true;
      out.offset = offset;
      return;
    }
    const FlatBuffer::Vector data = flat_.vector_field(table, kRawData, 1);
    if (data.count != out.bytes)
      fail(fmt::format("'{}' of shape {} needs {} bytes but holds {}", out.name, to_string(out.shape), out.bytes, data.count));
    out.offset = data.first;
  }

  // Names may overlap in a hostile file: all together they are no longer than it.
  std::string read_name(int64_t table) {
    const FlatBuffer::Vector text = flat_.vector_field(table, kName, 1);
    names_left_ -= text.count;
    if (text.count == 0 || text.count > kMaxNameBytes || names_left_ < 0) fail(fmt::format("a name of {} bytes", text.count));
    return {reinterpret_cast<const char*>(file_.data()) + text.first, static_cast<size_t>(text.count)};
  }

  void read_groups(int64_t root) {
    const FlatBuffer::Vector groups = flat_.vector_field(root, kOptimizerGroups, 4);
    if (groups.count == 0) return;
    const int64_t group = flat_.follow(groups.first);
    out_.step = flat_.number_field<int64_t>(group, kStep, 0);
    out_.learning_rate = static_cast<double>(flat_.number_field<float>(group, kLearningRate, 0));
  }

  FlatBuffer flat_;
  int64_t names_left_;
  std::span<const std::byte> file_;
  std::set<std::string> names_;
  bool external_ = false;
  OrtCheckpoint out_;
};

}  // namespace

bool is_checkpoint(std::span<const std::byte> file) { return file.size() >= 8 && std::memcmp(file.data() + 4, kIdentifier, 4) == 0; }

OrtCheckpoint read_checkpoint(std::span<const std::byte> file) { return Reader(file).run(); }

}  // namespace zeroplan
