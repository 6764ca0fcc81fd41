#pragma once
#include <algorithm>
#include <string>
#include <vector>

namespace zeroplan {

// What stands before, between and behind the separators: one part more than there are of them.
inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace zeroplan
