// A file of tokens cut into windows, for language models.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/type_name.h"
#include "runtime/data/convert.h"
#include "runtime/data/data_source.h"
#include "runtime/data/sample_layout.h"

namespace zeroplan {
namespace {

class TokenSource : public DataSource {
 public:
  TokenSource(const std::string& file, NpyType type, const Plan& plan, std::vector<int> shifts, int64_t window, double from, double to)
      : file_(file), mapping_(file), type_(type), inputs_(plan.inputs), shifts_(std::move(shifts)), window_(window) {
    const int64_t width = npy_type_bytes(type), all = mapping_.size() / width;
    if (mapping_.size() % width != 0)
      throw Error(fmt::format("{}: its {} cannot be cut into tokens of {}; check --token-bytes", file, counted(mapping_.size(), "byte"),
                              counted(width, "byte")));
    begin_ = static_cast<int64_t>(std::floor(from * static_cast<double>(all)));
    const int64_t end = static_cast<int64_t>(std::floor(to * static_cast<double>(all)));
    samples_ = std::max<int64_t>(0, (end - begin_ - 1) / window_);
    if (samples_ == 0)
      throw Error(fmt::format("{}: tokens {} to {} hold no window of {} and one more; use a longer file or a shorter context", file, begin_,
                              end, counted(window_, "token")));
  }
  int64_t samples() const override { return samples_; }

  void read(int index, int64_t first, int64_t count, const int64_t* order, const TensorView& to) const override {
    const PlanInput& input = inputs_[index];
    check_target(input, count, to);
    naming_file(file_, [&] {
      for (int64_t i = 0; i < count; ++i) read_sample(index, order != nullptr ? order[first + i] : first + i, i, to);
    });
  }

 private:
  void read_sample(int index, int64_t sample, int64_t position, const TensorView& to) const {
    const PlanInput& input = inputs_[index];
    if (sample < 0 || sample >= samples_) throw Error(fmt::format("input {}: sample {} of {} was asked for", input.name, sample, samples_));
    const char* from = mapping_.data() + (begin_ + sample * window_ + shifts_[index]) * npy_type_bytes(type_);
    convert_run(type_, from, input, sample, window_, to.as<char>() + position * window_ * dtype_bytes(input.dtype));
  }

  std::string file_;
  MappedFile mapping_;
  NpyType type_;
  std::vector<PlanInput> inputs_;
  std::vector<int> shifts_;  // by input: 0 tokens, 1 next tokens
  int64_t window_, begin_ = 0, samples_ = 0;
};

// Tokens: the first integer input that is no label. Next tokens: the label, else the second integer input.
std::vector<int> find_shifts(const std::string& file, const Plan& plan) {
  std::vector<int> shifts;
  std::vector<std::string> problems;
  bool tokens = false, next = false;
  const bool labelled = std::any_of(plan.inputs.begin(), plan.inputs.end(), [](const PlanInput& i) { return i.label; });
  for (const PlanInput& input : plan.inputs) {
    if (input.mask) {
      shifts.push_back(0);
      continue;
    }
    const bool integer = input.dtype == DType::i64 || input.dtype == DType::i32;
    const bool usable = integer && input.sample_axis == 0 && input.shape.size() >= 2;
    if (usable && !input.label && !tokens) {
      tokens = true;
      shifts.push_back(0);
    } else if (usable && !next && (input.label || !labelled)) {
      next = true;
      shifts.push_back(1);
    } else {
      problems.push_back(fmt::format("input {} {} {} is neither tokens nor next tokens; put the data into a folder of .npy files instead",
                                     input.name, type_name(input.dtype), to_string(input.shape)));
    }
  }
  if (!tokens) problems.push_back("the model has no integer input of shape [batch, tokens]");
  if (!problems.empty()) throw ErrorList(fmt::format("token file {} does not fit the plan", file), problems);
  return shifts;
}

}  // namespace

void check_token_file(const std::string& file) { MappedFile{file}; }

std::unique_ptr<DataSource> open_tokens(const std::string& file, int bytes_per_token, const Plan& plan, double from, double to) {
  if (bytes_per_token != 1 && bytes_per_token != 2)
    throw Error(fmt::format("{}: {} bytes per token; 1 (bytes) and 2 (little-endian uint16) are read", file, bytes_per_token));
  if (!(from >= 0 && from < to && to <= 1))
    throw Error(fmt::format("{}: part ({}, {}) of the file; it must lie in [0, 1]", file, from, to));
  std::vector<int> shifts = find_shifts(file, plan);
  int64_t window = -1;
  for (const PlanInput& input : plan.inputs) {
    if (input.mask) continue;
    const int64_t length = sample_layout(input).elements();
    if (window >= 0 && length != window)
      throw Error(fmt::format("{}: input {} takes {} per sample, {} takes {}; they must be equal for a token file", file, input.name,
                              counted(length, "token"), plan.inputs[0].name, window));
    window = length;
  }
  return std::make_unique<TokenSource>(file, bytes_per_token == 1 ? NpyType::u1 : NpyType::u2, plan, std::move(shifts), window, from, to);
}

}  // namespace zeroplan
