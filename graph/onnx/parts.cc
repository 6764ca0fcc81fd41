#include "graph/onnx/parts.h"

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/limits.h"

namespace zeroplan {

namespace {

// Where a body or a node expects an axis that its operand does not have.
Shape shape_with(const FoldingBuilder& build, ValueId x, int64_t axis) {
  const Shape& shape = build.shape(x);
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
    throw Error(fmt::format("an operand of shape {} has no axis {}", to_string(shape), axis));
  return shape;
}

}  // namespace

ValueId part(FoldingBuilder& build, ValueId x, int64_t axis, int64_t start, int64_t count) {
  Shape shape = shape_with(build, x, axis);
  if (start == 0 && count == shape[axis]) return x;
  std::vector<int64_t> starts(shape.size(), 0);
  starts[axis] = start;
  shape[axis] = count;
  return build.add(OpKind::slice, {x},
                   {{Attr::starts, starts}, {Attr::steps, std::vector<int64_t>(shape.size(), 1)}, {Attr::shape, shape}});
}

ValueId item(FoldingBuilder& build, ValueId x, int64_t axis, int64_t index) {
  Shape shape = shape_with(build, x, axis);
  shape.erase(shape.begin() + axis);
  return build.reshape(part(build, x, axis, index, 1), shape);
}

ValueId stack(FoldingBuilder& build, const std::vector<ValueId>& items, int64_t axis) {
  std::vector<ValueId> parts;
  for (const ValueId item : items) {
    Shape shape = build.shape(item);
    shape.insert(shape.begin() + axis, 1);
    parts.push_back(build.reshape(item, shape));
  }
  return join(build, parts, axis);
}

ValueId join(FoldingBuilder& build, const std::vector<ValueId>& parts, int64_t axis) {
  return parts.size() == 1 ? parts[0] : build.add(OpKind::concat, parts, {{Attr::axis, axis}});
}

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
