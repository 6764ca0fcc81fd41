#pragma once
#include <map>
#include <string>
#include <vector>

#include "api/training_run.h"
#include "api/zeroplan.h"
#include "base/temporary_folder.h"

namespace zeroplan {

struct Golden {
  std::vector<double> losses;                       // float64 reference
  RunOptions run;                                   // optimizer settings
  CompileOptions compile;                           // optimizer, loss, dims; batch 8
  std::map<std::string, std::string> initializers;  // original parameter name -> first initializer that holds it
};

std::string model_folder(const std::string& model);  // tests/models/<model>
// file: golden, golden2 or golden3.
Golden read_golden(const std::string& model, const std::string& file);

// Losses of the 10 golden steps under `options`, and the executor afterwards.
struct GoldenRun {
  std::vector<double> losses;
  std::unique_ptr<Executor> executor;
};
GoldenRun run_golden(const std::string& model, const Golden& golden, const CompileOptions& options, ExecutorOptions executor_options = {});

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& bytes);

}  // namespace zeroplan
