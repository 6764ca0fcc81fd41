#pragma once
// Checkpoints of ONNX Runtime built in a test: a flatbuffer in which each object is followed by the objects that it points to.
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace zeroplan {

struct TestTensor {
  std::string name;
  std::vector<int64_t> dims;
  std::vector<float> values;
  int64_t external_offset = -1;  // 0 or above: no values inside
};

struct TestCheckpoint {
  std::vector<TestTensor> trained, frozen;
  int32_t version = 2;
  bool nominal = false, external = false;
  int64_t step = 0;
  float learning_rate = 0;
};

class CheckpointBuilder {
 public:
  std::string build(const TestCheckpoint& c) {
    bytes_.assign(4, '\0');
    bytes_ += "ODTC";
    const auto group = [&] { return table({scalar(1, c.step), scalar(2, c.learning_rate)}); };
    const auto module = [&] {
      return table({child(0, [&] { return tensors(c.trained); }), child(1, [&] { return tensors(c.frozen); }), scalar(2, c.nominal),
                    scalar(3, c.external)});
    };
    std::vector<Field> fields = {scalar(0, c.version), child(1, module)};
    if (c.step > 0) fields.push_back(child(2, [&] { return list({group}); }));
    patch(0, table(fields));
    return bytes_;
  }

 private:
  using Write = std::function<uint32_t()>;  // returns where the object lies
  struct Field {
    int index = 0;
    std::string value;  // of a scalar
    Write write;        // of an object that the field points to
  };

  template <typename T>
  static std::string raw(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof(T)};
  }
  template <typename T>
  static Field scalar(int index, T value) {
    return {index, raw(value), nullptr};
  }
  static Field child(int index, Write write) { return {index, raw(uint32_t{0}), std::move(write)}; }
  uint32_t here() const { return static_cast<uint32_t>(bytes_.size()); }
  void patch(uint32_t at, uint32_t target) { bytes_.replace(at, 4, raw(target - at)); }

  uint32_t table(const std::vector<Field>& fields) {
    uint16_t slots = 0, size = 4;
    for (const Field& f : fields) slots = std::max<uint16_t>(slots, f.index + 1);
    std::vector<uint16_t> offsets(slots);
    for (const Field& f : fields) {
      offsets[f.index] = size;
      size += static_cast<uint16_t>(f.value.size());
    }
    const uint32_t vtable = here();
    bytes_ += raw<uint16_t>(4 + 2 * slots) + raw(size);
    for (const uint16_t offset : offsets) bytes_ += raw(offset);
    const uint32_t at = here();
    bytes_ += raw(static_cast<int32_t>(at - vtable));
    for (const Field& f : fields) bytes_ += f.value;
    for (const Field& f : fields)
      if (f.write) patch(at + offsets[f.index], f.write());
    return at;
  }
  uint32_t list(const std::vector<Write>& elements) {
    const uint32_t at = here();
    bytes_ += raw(static_cast<uint32_t>(elements.size())) + std::string(4 * elements.size(), '\0');
    for (size_t i = 0; i < elements.size(); ++i) patch(at + 4 + 4 * static_cast<uint32_t>(i), elements[i]());
    return at;
  }
  template <typename T>
  uint32_t numbers(const T* values, size_t count) {
    const uint32_t at = here();
    bytes_ += raw(static_cast<uint32_t>(count));
    bytes_.append(reinterpret_cast<const char*>(values), count * sizeof(T));
    return at;
  }
  uint32_t tensors(const std::vector<TestTensor>& all) {
    std::vector<Write> elements;
    for (const TestTensor& t : all) elements.push_back([this, &t] { return tensor(t); });
    return list(elements);
  }
  uint32_t tensor(const TestTensor& t) {
    std::vector<Field> fields = {child(0, [&] { return numbers(t.name.data(), t.name.size()); }),
                                 child(2, [&] { return numbers(t.dims.data(), t.dims.size()); }), scalar(3, int32_t{1})};
    if (t.external_offset >= 0)
      fields.push_back(scalar(6, t.external_offset));
    else
      fields.push_back(child(4, [&] { return numbers(reinterpret_cast<const char*>(t.values.data()), 4 * t.values.size()); }));
    return table(fields);
  }

  std::string bytes_;
};

}  // namespace zeroplan
