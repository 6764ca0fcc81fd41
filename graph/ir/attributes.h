#pragma once
// Attributes of a node or step: a few (key, value) pairs, sorted by key. Keys are an enum (attributes.def), so that a
// lookup compares integers and a misspelt key does not compile.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace zeroplan {

enum class Attr : uint8_t {
#define ZP_ATTR(key) key,
#include "graph/ir/attributes.def"
#undef ZP_ATTR
};

std::string_view attr_name(Attr key);
Attr parse_attr(std::string_view name);  // throws Error on an unknown name

class Attributes {
 public:
  using Value = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
  using Entry = std::pair<Attr, Value>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries);
  void set(Attr key, Value value);
  bool has(Attr key) const { return find(key) != nullptr; }
  // The getters without a default throw std::logic_error where the key is missing or of another type.
  int64_t get_int(Attr key) const;
  int64_t get_int(Attr key, int64_t otherwise) const;
  double get_double(Attr key) const;
  const std::string& get_string(Attr key) const;
  const std::vector<int64_t>& get_ints(Attr key) const;
  const std::vector<Entry>& entries() const { return entries_; }
  bool operator==(const Attributes&) const = default;

 private:
  const Value* find(Attr key) const;
  std::vector<Entry> entries_;
};

}  // namespace zeroplan
