#include "graph/ir/attributes.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {
namespace {

constexpr std::string_view kNames[] = {
#define ZP_ATTR(key) #key,
#include "graph/ir/attributes.def"
#undef ZP_ATTR
};

template <typename T>
const T& typed(const Attributes::Value* value, Attr key, const char* type) {
  if (!value) throw std::logic_error(fmt::format("attribute {} is missing", attr_name(key)));
  if (const T* typed = std::get_if<T>(value)) return *typed;
  throw std::logic_error(fmt::format("attribute {} is not {}", attr_name(key), type));
}

}  // namespace

std::string_view attr_name(Attr key) { return kNames[static_cast<size_t>(key)]; }

Attr parse_attr(std::string_view name) {
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames))
    throw Error(fmt::format("attribute '{}' is not known; the known ones are listed in graph/ir/attributes.def", name));
  return static_cast<Attr>(found - std::begin(kNames));
}

Attributes::Attributes(std::initializer_list<Entry> entries) {
  for (const auto& [key, value] : entries) set(key, value);
}

void Attributes::set(Attr key, Value value) {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), key, [](const Entry& entry, Attr k) { return entry.first < k; });
  if (at != entries_.end() && at->first == key)
    at->second = std::move(value);
  else
    entries_.emplace(at, key, std::move(value));
}

const Attributes::Value* Attributes::find(Attr key) const {
  for (const auto& [k, value] : entries_)
    if (k == key) return &value;
  return nullptr;
}

int64_t Attributes::get_int(Attr key) const { return typed<int64_t>(find(key), key, "an integer"); }
int64_t Attributes::get_int(Attr key, int64_t otherwise) const { return has(key) ? get_int(key) : otherwise; }
double Attributes::get_double(Attr key) const { return typed<double>(find(key), key, "a number"); }
const std::string& Attributes::get_string(Attr key) const { return typed<std::string>(find(key), key, "a string"); }
const std::vector<int64_t>& Attributes::get_ints(Attr key) const {
  return typed<std::vector<int64_t>>(find(key), key, "a list of integers");
}

}  // namespace zeroplan
