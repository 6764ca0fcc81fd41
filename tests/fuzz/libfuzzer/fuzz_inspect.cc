// The fuzz target that imports for training.
#include "tests/fuzz/libfuzzer/run_input.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  zeroplan::run_input(data, size, zeroplan::inspect_file);
  return 0;
}
