// Runs of numbers of unequal length, read in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "graph/onnx/stored_weight.h"

namespace zeroplan {
namespace {

constexpr int64_t kBlock = 65536;

// Numbers of protobuf, sign-extended to 64 bits: of one, two, three and ten bytes.
struct Numbers {
  std::vector<int16_t> values;
  std::string bytes;

  explicit Numbers(int64_t count) {
    uint32_t state = 1;
    for (int64_t i = 0; i < count; ++i) {
      state = state * 1664525 + 1013904223;
      const auto value = static_cast<int16_t>(static_cast<int32_t>(state) >> 16 >> (state >> 8 & 15));
      values.push_back(value);
      uint64_t rest = static_cast<uint64_t>(int64_t{value});
      for (; rest > 127; rest >>= 7) bytes += static_cast<char>((rest & 127) | 128);
      bytes += static_cast<char>(rest);
    }
  }
};

TEST(StoredRun, BlocksOfNumbersReadInAnyOrder) {
  constexpr int64_t kCount = 3 * kBlock + 100;
  const Numbers numbers(kCount);
  const TemporaryFolder folder;
  const std::string path = folder.file("m.onnx");
  std::ofstream(path, std::ios::binary) << "head" << numbers.bytes << "tail";
  StoredRun run{"w", "", 4, static_cast<int64_t>(numbers.bytes.size()), StoredType::i16, true};
  const auto expect_read = [&](WeightFiles& files, int64_t first, int64_t count) {
    std::vector<int16_t> block(count);
    read_stored(files, run, first, count, block.data());
    const auto expected = numbers.values.begin() + first;
    EXPECT_TRUE(std::equal(block.begin(), block.end(), expected)) << first << " + " << count;
  };
  WeightFiles in_turn(path), backwards(path);
  for (int64_t first = 0; first < kCount; first += kBlock) expect_read(in_turn, first, std::min(kBlock, kCount - first));
  for (int64_t first = kCount - 1000; first >= 0; first -= 30011) expect_read(backwards, first, 1000);
  for (WeightFiles* files : {&in_turn, &backwards})
    for (const int64_t border : {kBlock, 2 * kBlock, 3 * kBlock})
      for (int64_t first = border - 2; first <= border + 1; ++first) expect_read(*files, first, 3);
  int16_t beyond = 0;
  EXPECT_THROW(read_stored(in_turn, run, kCount, 1, &beyond), Error);
  run.bytes = 1000;  // of another tensor that begins there
  EXPECT_THROW(read_stored(in_turn, run, 2 * kBlock, 1, &beyond), Error);
}

}  // namespace
}  // namespace zeroplan
