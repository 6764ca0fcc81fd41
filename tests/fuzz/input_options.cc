#include "tests/fuzz/input_options.h"

#include <filesystem>

namespace zeroplan {
namespace {

constexpr int64_t kDim = 2;  // of every symbol

}  // namespace

ImportOptions input_options(const std::string& path, const ModelFile& file) {
  const uintmax_t size = std::filesystem::file_size(path);
  const auto chosen = [&](int bit) { return (size >> bit & 1) != 0; };
  const ModelPeek peek = file.peek();
  ImportOptions options;
  for (const auto& [symbol, inputs] : peek.symbols) options.dims[symbol] = kDim;
  options.samples = peek.baked_batch > 0 ? peek.baked_batch : chosen(0) ? 1 : kDim;
  options.micro_batches = chosen(1) ? 2 : 1;
  options.precision = chosen(2) ? DType::f64 : DType::f32;
  return options;
}

}  // namespace zeroplan
