#pragma once
// Element types as messages name them. dtype_name (dtype.h) is the short form of graph and plan texts.
#include <string_view>

#include "base/dtype.h"

namespace zeroplan {

std::string_view type_name(DType dtype);  // NumPy's names: float32, int64, …, bool

}  // namespace zeroplan
