#pragma once
// Samples for the inputs of a plan.
#include <memory>
#include <string>

#include "base/tensor_view.h"
#include "runtime/plan/plan.h"

namespace zeroplan {

// Thread-safe for concurrent reads. Nothing is allocated by read().
class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual int64_t samples() const = 0;  // in an epoch; INT64_MAX for synthetic data
  // Fills `to` (shape and dtype of input `index`, which is no mask) with samples [first, first + count); the caller stays inside an epoch.
  // `order`, when not null, maps positions to samples (shuffling). Throws Error naming input, sample and value where a value does not fit.
  virtual void read(int index, int64_t first, int64_t count, const int64_t* order, const TensorView& to) const = 0;
};

// Throws Error where there is no such folder, as open_npy_folder does; where there is no such file, as open_tokens does.
void check_data_folder(const std::string& folder);
void check_token_file(const std::string& file);
// NAME.npy for every input of the plan. Checks presence, dtype, shape and equal sample counts at once, all problems in one error.
std::unique_ptr<DataSource> open_npy_folder(const std::string& folder, const Plan& plan);
// A file of bytes or little-endian uint16 tokens cut into windows of T: sample i = tokens [i·T, i·T + T], inputs and labels shifted by one.
// `from`, `to`: the part of the file that is used, as fractions: (0, 0.9) or (0.9, 1).
std::unique_ptr<DataSource> open_tokens(const std::string& file, int bytes_per_token, const Plan& plan, double from = 0, double to = 1);
// Seeded random data of the right types and ranges.
std::unique_ptr<DataSource> make_synthetic(const Plan& plan, uint64_t seed);

}  // namespace zeroplan
