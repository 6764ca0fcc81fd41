#pragma once
// What a model file may ask for before anything is built from it.
#include <cstdint>

namespace zeroplan {

inline constexpr int kMaxMessageDepth = 32;
inline constexpr int64_t kProtobufLimit = (int64_t{1} << 31) - 1;  // bytes of a message that protobuf reads
inline constexpr int64_t kMaxNodes = 1'000'000;                    // with subgraphs and function bodies, before and after inlining
inline constexpr int64_t kMaxTensors = 1'000'000;
inline constexpr int64_t kMaxAttributes = 10'000'000;
inline constexpr int64_t kMaxNameBytes = 16'384;
inline constexpr int kMaxCallDepth = 64;  // functions that call functions
inline constexpr int kMaxBodyDepth = 8;   // schema bodies of operators in schema bodies
inline constexpr int64_t kMaxDim = int64_t{1} << 48;
inline constexpr int64_t kUnknownDim = -1;    // as some exporters write it
inline constexpr int64_t kStripBytes = 1024;  // payloads from this size on stay out of the protobuf
#ifdef ZEROPLAN_FUZZ
inline constexpr int64_t kFuzzShare = 64;  // the sanitizers make everything slower and larger
#else
inline constexpr int64_t kFuzzShare = 1;
#endif
inline constexpr int64_t kMaxFoldedBytes = (int64_t{64} << 20) / kFuzzShare;  // one constant computed at import
inline constexpr int64_t kMaxFoldedTotal = (int64_t{1} << 30) / kFuzzShare;
inline constexpr double kMaxFoldedWork = 0x1p28 / kFuzzShare;  // floating-point operations for one constant
inline constexpr double kMaxFoldedWorkTotal = 0x1p30 / kFuzzShare;
inline constexpr size_t kMaxGraphNodes = 1'000'000 / kFuzzShare;      // of the internal form
inline constexpr size_t kMaxUnrolledNodes = 100'000 / kFuzzShare;     // that one recurrent operator, Loop or Scan may become
inline constexpr int64_t kMaxVisitedNodes = 10'000'000 / kFuzzShare;  // of the model and, each time that one is run, of bodies
inline constexpr size_t kMaxListed = 4'000'000;                       // elements of all sequences that come about while a model is read
inline constexpr int kMinOpset = 1;
inline constexpr int kMaxOpset = 25;
inline constexpr int kTargetOpset = 21;  // older models are converted to it
inline constexpr int kMinIrVersion = 3;
inline constexpr int kMaxIrVersion = 14;

}  // namespace zeroplan
