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

std::string_view precision_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "fp32";
    case DType::f64: return "fp64";
    case DType::f16: return "fp16";
    case DType::bf16: return "bf16";
    default: unhandled_dtype(dtype);
  }
}

std::optional<DType> parse_precision(std::string_view name) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    if (precision_name(dtype) == name) return dtype;
  return std::nullopt;
}

std::optional<OptimizerKind> parse_optimizer(std::string_view name) {
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd})
    if (optimizer_name(kind) == name) return kind;
  return std::nullopt;
}

}  // namespace zeroplan
