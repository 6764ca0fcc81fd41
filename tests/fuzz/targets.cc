#include "tests/fuzz/targets.h"

#include <filesystem>

#include "base/error.h"
#include "graph/onnx/importer.h"
#include "passes/pass.h"
#include "runtime/plan/verifier.h"

namespace zeroplan {
namespace {

constexpr int64_t kDim = 2;  // of every symbol

// Options take turns by the size of the file, so that an input alone says what was done with it.
bool chosen(const std::string& path, int bit) { return (std::filesystem::file_size(path) >> bit & 1) != 0; }

struct Batch {
  int64_t samples = 0, micro_batches = 1;
};

Batch batch_of(const std::string& path, const ModelPeek& peek) {
  const int64_t samples = chosen(path, 0) ? 1 : kDim;
  return {peek.baked_batch > 0 ? peek.baked_batch : samples, chosen(path, 1) ? 2 : 1};
}

std::map<std::string, int64_t> dims_of(const ModelPeek& peek) {
  std::map<std::string, int64_t> dims;
  for (const auto& [symbol, inputs] : peek.symbols) dims[symbol] = kDim;
  return dims;
}

DType precision_of(const std::string& path) { return chosen(path, 2) ? DType::f64 : DType::f32; }

// A loss over the first output where the file has none of its own.
std::string loss_over(const std::string& output) {
  return output.find_first_of(",()=' ") == std::string::npos ? "mse(" + output + ", target)" : "";
}

void inspect(const std::string& path) {
  const ModelFile file(path);
  const ModelPeek peek = file.peek();
  const Batch batch = batch_of(path, peek);
  ImportOptions options;
  options.dims = dims_of(peek);
  options.samples = batch.samples;
  options.micro_batches = batch.micro_batches;
  options.precision = precision_of(path);
  std::vector<std::string> problems;
  const ImportedModel model = file.inspect(options, problems);
  const std::vector<std::string> outputs = file.output_names();
  if (problems.empty() || outputs.empty()) return;
  options.loss = loss_over(outputs.front());
  if (!options.loss.empty()) file.inspect(options, problems);
}

void compile(const std::string& path) {
  const ModelFile file(path);
  const ModelPeek peek = file.peek();
  const Batch batch = batch_of(path, peek);
  ImportOptions options;
  options.dims = dims_of(peek);
  options.samples = batch.samples;
  options.precision = precision_of(path);
  options.outputs = file.output_names();
  if (options.outputs.empty()) return;
  CompileOptions compile_options;
  compile_options.outputs = options.outputs;
  compile_options.precision = options.precision;
  compile_options.micro_batches = batch.micro_batches;
  compile_options.batch = batch.micro_batches * batch.samples;
  compile_options.dims = options.dims;
  Graph graph = file.decode(options).graph;
  run_pipeline(graph, compile_options);
  require_verified(emit_plan(graph, compile_options));
}

template <typename Fn>
void refused_at_most(Fn&& fn) {
  try {
    fn();
  } catch (const Error&) {
  }
}

}  // namespace

void inspect_file(const std::string& path) {
  refused_at_most([&] { inspect(path); });
}

void compile_file(const std::string& path) {
  refused_at_most([&] { compile(path); });
}

}  // namespace zeroplan
