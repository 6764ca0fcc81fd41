#include "base/counted.h"

#include <fmt/format.h>

namespace zeroplan {

std::string counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : noun.ends_with("ch") ? "es" : "s");
}

}  // namespace zeroplan
