// A folder with one .npy file per input.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/type_name.h"
#include "runtime/data/convert.h"
#include "runtime/data/data_source.h"
#include "runtime/data/sample_layout.h"

namespace zeroplan {
namespace {

class NpySource : public DataSource {
 public:
  NpySource(std::vector<std::unique_ptr<NpyFile>> files, const Plan& plan, int64_t samples)
      : files_(std::move(files)), inputs_(plan.inputs), samples_(samples) {
    for (const PlanInput& input : inputs_) layouts_.push_back(sample_layout(input));
  }
  int64_t samples() const override { return samples_; }

  void read(int index, int64_t first, int64_t count, const int64_t* order, const TensorView& to) const override {
    const PlanInput& input = inputs_[index];
    check_target(input, count, to);
    naming_file(files_[index]->path, [&] {
      if (input.sample_axis < 0) return read_sample(index, 0, 0, 1, to);
      for (int64_t i = 0; i < count; ++i) read_sample(index, order != nullptr ? order[first + i] : first + i, i, count, to);
    });
  }

 private:
  void read_sample(int index, int64_t sample, int64_t position, int64_t count, const TensorView& to) const {
    const PlanInput& input = inputs_[index];
    const SampleLayout& layout = layouts_[index];
    const NpyFile& file = *files_[index];
    const int64_t runs = input.sample_axis < 0 ? 1 : layout.outer, run = layout.elements() / std::max<int64_t>(runs, 1);
    if (sample < 0 || (input.sample_axis >= 0 && sample >= file.shape[0]))
      throw Error(fmt::format("input {}: sample {} of {} was asked for", input.name, sample, file.shape[0]));
    const int64_t width = npy_type_bytes(file.type), target_width = dtype_bytes(input.dtype);
    const char* from = file.data + sample * layout.elements() * width;
    for (int64_t o = 0; o < runs; ++o)
      convert_run(file.type, from + o * run * width, input, sample, run, to.as<char>() + (o * count + position) * run * target_width);
  }

  std::vector<std::unique_ptr<NpyFile>> files_;
  std::vector<PlanInput> inputs_;
  std::vector<SampleLayout> layouts_;
  int64_t samples_;
};

// The .npy files that are there, for a message about one that is not.
std::string present(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".npy") names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names.empty() ? "the folder has no .npy file" : fmt::format("the folder has {}", fmt::join(names, ", "));
}

Shape expected_shape(const PlanInput& input, int64_t samples) {
  Shape shape = sample_shape(input);
  if (input.sample_axis >= 0) shape.insert(shape.begin(), samples);
  return shape;
}

// For labels of one column, as tables hold them.
std::string way_out(const NpyFile& file, const PlanInput& input) {
  if (input.sample_axis < 0 || file.shape.empty() || file.shape.back() != 1) return "";
  Shape wanted = expected_shape(input, file.shape[0]);
  wanted.push_back(1);
  return file.shape == wanted ? fmt::format("; drop its last axis: numpy.save('{0}.npy', {0}[..., 0])", input.name) : "";
}

void check_file(const NpyFile& file, const PlanInput& input, std::vector<std::string>& problems) {
  const std::string name = npy_file_name(input.name);
  if (!convertible(file.type, input.dtype))
    problems.push_back(fmt::format("{} holds {}, the model's input {} is {}; convert the file", name, npy_type_name(file.type), input.name,
                                   type_name(input.dtype)));
  const bool enough_axes = input.sample_axis < 0 || !file.shape.empty();
  if (!enough_axes || file.shape != expected_shape(input, input.sample_axis < 0 ? 0 : file.shape[0])) {
    std::string wanted = to_string(sample_shape(input));
    if (input.sample_axis >= 0) wanted = fmt::format("[samples{}{}", wanted.size() > 2 ? "," : "", wanted.substr(1));
    problems.push_back(fmt::format("{} has shape {}, expected {}{}", name, to_string(file.shape), wanted, way_out(file, input)));
  }
}

// Sample counts must be equal; the first file with a sample axis sets the number.
int64_t common_samples(const std::vector<std::unique_ptr<NpyFile>>& files, const Plan& plan, std::vector<std::string>& problems) {
  int64_t samples = std::numeric_limits<int64_t>::max();
  std::string first;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!files[i] || plan.inputs[i].sample_axis < 0 || files[i]->shape.empty()) continue;
    const std::string name = npy_file_name(plan.inputs[i].name);
    if (first.empty()) {
      first = name;
      samples = files[i]->shape[0];
    } else if (files[i]->shape[0] != samples) {
      problems.push_back(
          fmt::format("{} has {}, {} has {}; they must be equal", name, counted(files[i]->shape[0], "sample"), first, samples));
    }
  }
  return samples;
}

}  // namespace

void check_data_folder(const std::string& folder) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(folder, error);
  if (std::filesystem::is_directory(status)) return;
  if (status.type() == std::filesystem::file_type::not_found)
    throw Error(fmt::format("data folder {} does not exist; it must hold one NAME.npy per input", folder));
  if (error) throw Error(fmt::format("data folder {} cannot be read: {}", folder, error.message()));
  throw Error(fmt::format("data folder {} is a file; give the folder that holds one NAME.npy per input", folder));
}

std::unique_ptr<DataSource> open_npy_folder(const std::string& folder, const Plan& plan) {
  check_data_folder(folder);
  std::vector<std::string> problems;
  std::vector<std::unique_ptr<NpyFile>> files(plan.inputs.size());
  for (size_t i = 0; i < files.size(); ++i) {
    const PlanInput& input = plan.inputs[i];
    if (input.mask) continue;
    for (size_t j = 0; j < i; ++j)
      if (npy_file_name(plan.inputs[j].name) == npy_file_name(input.name))
        problems.push_back(fmt::format("inputs {} and {} would both be read from {}; rename one of them in the model", plan.inputs[j].name,
                                       input.name, npy_file_name(input.name)));
    const std::string path = (std::filesystem::path(folder) / npy_file_name(input.name)).string();
    std::error_code error;
    if (std::filesystem::status(path, error).type() == std::filesystem::file_type::not_found) {
      problems.push_back(fmt::format("{} is missing (input {} {}); {}", npy_file_name(input.name), type_name(input.dtype),
                                     to_string(input.shape), present(folder)));
      continue;
    }
    try {
      files[i] = std::make_unique<NpyFile>(path);
      check_file(*files[i], input, problems);
    } catch (const Error& e) {
      problems.push_back(fmt::format("input {}: {}", input.name, e.message()));
    }
  }
  const int64_t samples = common_samples(files, plan, problems);
  if (samples == 0) problems.push_back("the files hold no samples");
  if (!problems.empty()) throw ErrorList(fmt::format("data folder {} does not fit the plan", folder), problems);
  return std::make_unique<NpySource>(std::move(files), plan, samples);
}

}  // namespace zeroplan
