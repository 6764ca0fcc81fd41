#pragma once
// What kernels throw on bad operands. Compiled once: code of a header that throws would be emitted for every instruction set, and the
// linker might keep one that the machine cannot run.
#include <cstdint>
#include <string>

#include "graph/ir/graph.h"
#include "kernels/kernel.h"

namespace zeroplan {

[[noreturn]] void index_outside_table(int64_t index, int64_t position, int64_t entries);
[[noreturn]] void label_outside_classes(int64_t label, int64_t row, int64_t classes);
[[noreturn]] void chain_too_long();
[[noreturn]] void not_for_integers(OpKind op);
[[noreturn]] void throw_fault(const KernelFault& fault);  // as the functions above; kind none is a bug
[[noreturn]] void unknown_optimizer(const std::string& name);

}  // namespace zeroplan
