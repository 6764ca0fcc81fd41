#pragma once
// How the samples of one input lie in the tensor that a micro-batch is read into.
#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/tensor_view.h"
#include "runtime/plan/plan.h"

namespace zeroplan {

// A sample is `outer` runs of `inner` elements; run o of sample s starts at element (o · count + s) · inner of the contiguous tensor,
// with `count` the length of its sample axis.
struct SampleLayout {
  int64_t outer = 1, inner = 1;
  int64_t elements() const { return outer * inner; }
};

SampleLayout sample_layout(const PlanInput& input);
// Shape of one sample: the input's shape without its sample axis, or all of it where it has none.
Shape sample_shape(const PlanInput& input);
// Throws unless `to` is a contiguous tensor of the input's dtype with room for `count` samples.
void check_target(const PlanInput& input, int64_t count, const TensorView& to);

// Does `work`; an Error that it throws gets the file in front.
template <typename Work>
void naming_file(const std::string& file, Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    throw Error(file + ": " + error.message(), error.context());
  }
}

// May the value stand in the input? Labels in [0, limit) or ignored, indices in [-limit, limit).
inline bool value_allowed(const PlanInput& input, int64_t value) {
  if (input.limit < 0) return true;
  if (input.has_ignored && value == input.ignored) return true;
  return value < input.limit && value >= (input.label ? 0 : -input.limit);
}
[[noreturn]] void throw_out_of_range(const PlanInput& input, int64_t sample, int64_t value);

}  // namespace zeroplan
