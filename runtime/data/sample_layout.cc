#include "runtime/data/sample_layout.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/type_name.h"

namespace zeroplan {

SampleLayout sample_layout(const PlanInput& input) {
  SampleLayout layout;
  for (int i = 0; i < static_cast<int>(input.shape.size()); ++i) {
    if (i < input.sample_axis) layout.outer *= input.shape[i];
    if (i > input.sample_axis) layout.inner *= input.shape[i];
  }
  return layout;
}

Shape sample_shape(const PlanInput& input) {
  Shape shape = input.shape;
  if (input.sample_axis >= 0) shape.erase(shape.begin() + input.sample_axis);
  return shape;
}

void check_target(const PlanInput& input, int64_t count, const TensorView& to) {
  const int64_t expected = input.sample_axis < 0 ? 1 : count;
  if (to.dtype != input.dtype || !to.contiguous() || to.elements() != expected * sample_layout(input).elements())
    throw Error(
        fmt::format("input {}: {} samples do not fill a tensor of {} {} elements", input.name, count, to.elements(), type_name(to.dtype)));
}

void throw_out_of_range(const PlanInput& input, int64_t sample, int64_t value) {
  if (!input.label)
    throw Error(fmt::format("input {}, sample {}: index {} out of range [-{}, {})", input.name, sample, value, input.limit, input.limit));
  throw Error(fmt::format("input {}, sample {}: label out of range: {} is not in [0, {}){}", input.name, sample, value, input.limit,
                          input.has_ignored ? fmt::format(" and is not the ignored {}", input.ignored) : ""));
}

}  // namespace zeroplan
