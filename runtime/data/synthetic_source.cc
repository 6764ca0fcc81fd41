// Random data for benchmarks and smoke tests: a pure function of (seed, input, sample, element).
#include <limits>
#include <vector>

#include "base/random.h"
#include "runtime/data/data_source.h"
#include "runtime/data/sample_layout.h"

namespace zeroplan {
namespace {

uint64_t mix(uint64_t x) { return SplitMix64(x).next(); }

// Uniform in [-sqrt(3), sqrt(3)): mean 0, variance 1.
double uniform(uint64_t bits) { return (static_cast<double>(bits >> 11) * 0x1p-53 * 2 - 1) * 1.7320508075688772; }

class SyntheticSource : public DataSource {
 public:
  SyntheticSource(const Plan& plan, uint64_t seed) : inputs_(plan.inputs), seed_(seed) {}
  int64_t samples() const override { return std::numeric_limits<int64_t>::max(); }

  void read(int index, int64_t first, int64_t count, const int64_t* order, const TensorView& to) const override {
    const PlanInput& input = inputs_[index];
    check_target(input, count, to);
    const SampleLayout layout = sample_layout(input);
    const int64_t runs = input.sample_axis < 0 ? 1 : layout.outer, run = layout.elements() / runs;
    const int64_t samples = input.sample_axis < 0 ? 1 : count;
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t sample = input.sample_axis < 0 ? 0 : order != nullptr ? order[first + i] : first + i;
      uint64_t key = mix(mix(mix(seed_) ^ static_cast<uint64_t>(index)) ^ static_cast<uint64_t>(sample));
      for (int64_t o = 0; o < runs; ++o)
        for (int64_t e = 0; e < run; ++e) put(input, to, (o * samples + i) * run + e, mix(key++));
    }
  }

 private:
  static void put(const PlanInput& input, const TensorView& to, int64_t at, uint64_t bits) {
    visit_dtype(input.dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_floating_point_v<T>)
        to.as<T>()[at] = static_cast<T>(uniform(bits));
      else
        to.as<T>()[at] = static_cast<T>((bits >> 16) % static_cast<uint64_t>(input.limit > 0 ? input.limit : 2));
    });
  }

  std::vector<PlanInput> inputs_;
  uint64_t seed_;
};

}  // namespace

std::unique_ptr<DataSource> make_synthetic(const Plan& plan, uint64_t seed) { return std::make_unique<SyntheticSource>(plan, seed); }

}  // namespace zeroplan
