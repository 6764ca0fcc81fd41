#include "kernels/failures.h"

#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/op_def.h"

namespace zeroplan {

void index_outside_table(int64_t index, int64_t position, int64_t entries) {
  throw Error(fmt::format("index {} at position {} is outside the {} entries of the table; correct the data", index, position, entries));
}

void label_outside_classes(int64_t label, int64_t row, int64_t classes) {
  throw Error(fmt::format("label {} of row {} is outside the {} classes; correct the data or set ignore_index", label, row, classes));
}

void chain_too_long() {
  throw Error("an elementwise chain is longer or keeps more values alive than the CPU kernel has room for; cut it into shorter chains");
}

void not_for_integers(OpKind op) {
  throw Error(fmt::format("{} has no CPU kernel for integers; cast the operands to a floating-point type", op_name(op)));
}

void unknown_optimizer(const std::string& name) { throw Error(fmt::format("unknown optimizer '{}'; adamw, adam and sgd exist", name)); }

}  // namespace zeroplan
