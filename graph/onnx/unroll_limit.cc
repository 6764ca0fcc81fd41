#include "graph/onnx/unroll_limit.h"

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/limits.h"

namespace zeroplan {

UnrollLimit::UnrollLimit(const FoldingBuilder& build)
    : build_(build), nodes_(build.graph().nodes.size()), values_(build.graph().values.size()), bytes_(build.constant_bytes()) {}

// Constants are no nodes, but a loop that computes nothing else must end too.
constexpr size_t kMaxUnrolledValues = 4 * kMaxUnrolledNodes;

void UnrollLimit::check(int64_t done, int64_t total) const {
  const bool within =
      build_.graph().nodes.size() - nodes_ <= kMaxUnrolledNodes && build_.graph().values.size() - values_ <= kMaxUnrolledValues;
  if (!within || build_.constant_bytes() - bytes_ > kMaxFoldedTotal) refuse(done, total);
}

void UnrollLimit::check_steps(int64_t total) const {
  if (total > static_cast<int64_t>(kMaxUnrolledValues)) refuse(0, total);
}

void UnrollLimit::refuse(int64_t done, int64_t total) {
  throw Error(fmt::format(
      "unrolling it gives more than {} nodes, or constants of more than {} MiB ({} of {} repetitions); export the model with fewer steps",
      kMaxUnrolledNodes, kMaxFoldedTotal >> 20, done, total < 0 ? "unknown" : std::to_string(total)));
}

}  // namespace zeroplan
