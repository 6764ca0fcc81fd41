// The fuzz target that compiles a forward plan.
#include "tests/fuzz/libfuzzer/run_input.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  zeroplan::run_input(data, size, zeroplan::compile_file);
  return 0;
}
