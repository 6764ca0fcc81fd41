#pragma once
// Tiny models compiled and run in a test.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/training_run.h"
#include "api/zeroplan.h"
#include "base/error.h"
#include "tests/e2e_support/golden.h"
#include "tests/e2e_support/tiny_model.h"
#include "tests/error_of.h"

namespace zeroplan {

// A model and its data in a temporary folder.
class TinyCase {
 public:
  explicit TinyCase(const TinyModel& model, const std::map<std::string, HostTensor>& data = {});
  void write(const std::string& input, const HostTensor& values) const;
  std::string model() const { return folder_.file("model.onnx"); }
  std::string data_folder() const { return folder_.file("data"); }
  std::string file(const std::string& name) const { return folder_.file(name); }
  Plan compile(const CompileOptions& options) const;
  std::unique_ptr<DataSource> data(const Plan& plan) const { return open_npy_folder(data_folder(), plan); }

 private:
  TemporaryFolder folder_;
};

using Weights = std::map<std::string, HostTensor>;  // by parameter name

struct TinyRun {
  std::vector<StepReport> steps;
  std::vector<double> losses() const;
  Weights weights;
};

TinyRun train(const TinyCase& tiny, const CompileOptions& options, const RunOptions& run, ExecutorOptions executor_options = {});
// Gradients of the first batch, divided by its weight.
Weights gradients(const TinyCase& tiny, const CompileOptions& options, ExecutorOptions executor_options = {});
Weights all_weights(Executor& executor);

RunOptions sgd_run(double lr, int64_t steps);  // no weight decay
CompileOptions sgd_compile(int64_t batch, int ranks = 1, int stage = 3, int64_t micro_batches = 0);
// The options at 1, 2 and 4 ranks and stages 0 to 3.
std::vector<CompileOptions> everywhere(CompileOptions options, const std::vector<int>& ranks = {1, 2, 4});
std::string describe(const CompileOptions& options);

HostTensor floats(const Shape& shape, const std::vector<double>& values);
std::vector<double> values_of(const HostTensor& tensor);
int parameter_index(const Plan& plan, const std::string& name);  // throws where there is none
RunScalars scalars_of_step(int64_t step, double lr);

}  // namespace zeroplan
