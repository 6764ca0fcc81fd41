#include "passes/compile_options.h"

#include <stdexcept>

namespace zeroplan {

std::string_view optimizer_name(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::adamw: return "adamw";
    case OptimizerKind::adam: return "adam";
    case OptimizerKind::sgd: return "sgd";
  }
  throw std::logic_error("optimizer out of range");
}

std::optional<OptimizerKind> parse_optimizer(std::string_view name) {
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd})
    if (optimizer_name(kind) == name) return kind;
  return std::nullopt;
}

}  // namespace zeroplan
