#include "kernels/failures.h"

#include <stdexcept>

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
  throw Error("an elementwise chain is longer or keeps more values alive than the kernel has room for; cut it into shorter chains");
}

void not_for_integers(OpKind op) {
  throw Error(fmt::format("{} has no kernel for integers; cast the operands to a floating-point type", op_name(op)));
}

void throw_fault(const KernelFault& fault) {
  switch (fault.kind) {
    case KernelFault::index_outside_table: index_outside_table(fault.value, fault.position, fault.limit);
    case KernelFault::label_outside_classes: label_outside_classes(fault.value, fault.position, fault.limit);
    default: throw std::logic_error("a kernel reported a fault of no known kind");
  }
}

void unknown_optimizer(const std::string& name) { throw Error(fmt::format("unknown optimizer '{}'; adamw, adam and sgd exist", name)); }

}  // namespace zeroplan
