#include "tests/fuzz/libfuzzer/run_input.h"

#include <fstream>

#include "base/temporary_folder.h"
#include "tests/fuzz/libfuzzer/mutate_model.h"

namespace zeroplan {

void run_input(const uint8_t* data, size_t size, void (*target)(const std::string& path)) {
  static const TemporaryFolder folder;
  const std::string path = folder.file("model.onnx");
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  target(path);
}

}  // namespace zeroplan

// libFuzzer's own mutation of bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned int seed) {
  constexpr unsigned int kRawShare = 8;  // one of so many
  if (seed % kRawShare != 0)
    if (const std::string bytes = zeroplan::mutated_model({reinterpret_cast<const char*>(data), size}, seed);
        !bytes.empty() && bytes.size() <= most) {
      bytes.copy(reinterpret_cast<char*>(data), bytes.size());
      return bytes.size();
    }
  return LLVMFuzzerMutate(data, size, most);
}
