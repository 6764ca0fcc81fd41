#pragma once

namespace zeroplan {

// Prints the table of internal operators: which kernels there are, on which device and for which element types.
void print_internal_operators();

}  // namespace zeroplan
