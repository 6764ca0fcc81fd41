#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "api/zeroplan.h"
#include "base/error.h"

namespace zeroplan {
namespace {

// Outputs of the batches joined along their sample axis.
class Collector {
 public:
  explicit Collector(int64_t samples) : samples_(samples) {}

  void take(const PlanOutput& output, const HostTensor& part, int64_t first, int64_t count) {
    auto [found, added] = outputs_.try_emplace(output.name);
    if (output.sample_axis < 0) {
      if (added) found->second = part;
      return;
    }
    if (added) found->second = HostTensor(part.dtype(), whole_shape(part.shape(), output.sample_axis));
    copy(part, output.sample_axis, first, count, found->second);
  }

  std::map<std::string, HostTensor> finish() { return std::move(outputs_); }

 private:
  Shape whole_shape(Shape shape, int axis) const {
    shape[axis] = samples_;
    return shape;
  }

  // The first `count` samples of the part.
  void copy(const HostTensor& part, int axis, int64_t first, int64_t count, HostTensor& whole) const {
    int64_t outer = 1, inner = dtype_bytes(part.dtype());
    for (int i = 0; i < axis; ++i) outer *= part.shape()[i];
    for (size_t i = axis + 1; i < part.shape().size(); ++i) inner *= part.shape()[i];
    for (int64_t o = 0; o < outer; ++o)
      std::memcpy(whole.mutable_data() + (o * samples_ + first) * inner, part.data() + o * part.shape()[axis] * inner,
                  static_cast<size_t>(count * inner));
  }

  const int64_t samples_;
  std::map<std::string, HostTensor> outputs_;
};

// Inputs that are all given whole are one batch.
int64_t count_samples(const Plan& plan, const DataSource& data, int64_t each) {
  if (std::none_of(plan.inputs.begin(), plan.inputs.end(), [](const PlanInput& input) { return input.sample_axis >= 0; })) return each;
  if (data.samples() == INT64_MAX) throw Error("prediction over endless data; give a data set of finite size");
  return data.samples();
}

// What fills up a batch that is not full would enter an output that is made of all its samples.
void check_pieces(const Plan& plan, int64_t samples, int64_t each) {
  for (const PlanOutput& output : plan.outputs)
    if (output.sample_axis < 0 && samples != each)
      throw Error(
          fmt::format("output '{}' has no sample axis, so that {} samples in pieces of {} do not give it; give the batch of all "
                      "samples (--batch {} --micro-batches 1), or leave the output out",
                      output.name, samples, each, samples));
}

}  // namespace

std::map<std::string, HostTensor> predict(Executor& executor, const DataSource& data) {
  const Plan& plan = executor.plan();
  const int64_t batch = plan.header.batch, each = batch / plan.header.micro_batches, samples = count_samples(plan, data, each);
  check_pieces(plan, samples, each);
  std::vector<int64_t> order(
      static_cast<size_t>((samples + batch - 1) / batch * batch));  // the last batch is filled up with the last sample
  std::iota(order.begin(), order.end(), 0);
  std::transform(order.begin(), order.end(), order.begin(), [&](int64_t i) { return std::min(i, samples - 1); });
  Collector collector(samples);
  for (int64_t first = 0; first < samples; first += batch)
    executor.predict(data, first, order.data(), [&](int64_t micro_batch, const PlanOutput& output, const HostTensor& values) {
      const int64_t at = first + micro_batch * each;
      if (at < samples) collector.take(output, values, at, std::min(each, samples - at));
    });
  return collector.finish();
}

}  // namespace zeroplan
