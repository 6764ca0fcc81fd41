#pragma once
// What is fuzzed. The file may be refused with an Error; any other exception, a broken check, a sanitizer's report, too much time or
// too much memory is a fault.
#include <string>

namespace zeroplan {

void inspect_file(const std::string& path);  // the import for training, as `inspect` does it
void compile_file(const std::string& path);  // the import of all outputs, and the plan that computes them

}  // namespace zeroplan
