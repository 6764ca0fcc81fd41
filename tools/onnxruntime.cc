#include "tools/onnxruntime.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/npy.h"
#include "base/output_file.h"
#include "base/temporary_folder.h"

namespace zeroplan {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVersion = "import numpy, onnxruntime\nprint(onnxruntime.__version__)\n";

// argv: model, folder of inputs, folder for outputs, kernels, names of outputs.
constexpr const char* kRun = R"(
import os, sys
import numpy
import onnxruntime
model, data, out, kernels, names = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]
options = onnxruntime.SessionOptions()
options.log_severity_level = 3
off = []
if kernels == "plain":
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
elif kernels == "exact_integers":
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.add_session_config_entry("session.x64quantprecision", "1")
    off = ["QDQSelectorActionTransformer"]
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"], disabled_optimizers=off)
types = {"float": "float32", "double": "float64"}
feed = {}
for entry in session.get_inputs():
    path = os.path.join(data, entry.name.replace("/", "_") + ".npy")
    if os.path.exists(path):
        name = entry.type[len("tensor("):-1]
        feed[entry.name] = numpy.load(path).astype(types.get(name, name))
def keep(place, values):
    if isinstance(values, (numpy.ndarray, numpy.generic)):
        numpy.save(os.path.join(out, place + ".npy"), numpy.asarray(values, dtype=numpy.float64, order="C"))
for index, values in enumerate(session.run(names, feed)):
    keep(str(index), values)
    if isinstance(values, list):
        for item, part in enumerate(values):
            keep("%d[%d]" % (index, item), part)
)";

struct Finished {
  int code = -1;
  std::string output;  // both streams
};

Finished run_python(const std::string& python, const std::string& script, std::vector<std::string> arguments, const fs::path& folder) {
  const std::string log = (folder / "log").string(), file = (folder / "script.py").string();
  write_file(file, script);
  arguments.insert(arguments.begin(), {python, file});
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int sink = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const pid_t child = sink < 0 ? -1 : fork();
  if (child < 0) throw Error(fmt::format("cannot start {}: {}", python, std::strerror(errno)));
  if (child == 0) {
    if (dup2(sink, STDOUT_FILENO) >= 0 && dup2(sink, STDERR_FILENO) >= 0) execvp(argv[0], argv.data());
    _exit(127);
  }
  close(sink);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text.str()};
}

const char* kernels_name(OnnxRuntimeKernels kernels) {
  switch (kernels) {
    case OnnxRuntimeKernels::usual: return "usual";
    case OnnxRuntimeKernels::plain: return "plain";
    case OnnxRuntimeKernels::exact_integers: return "exact_integers";
  }
  throw std::logic_error("kernels of ONNX Runtime without a name");
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

std::optional<std::string> onnxruntime_version(const std::string& python) {
  const TemporaryFolder folder;
  const Finished finished = run_python(python, kVersion, {}, folder.path());
  return finished.code == 0 ? std::optional(last_line(finished.output)) : std::nullopt;
}

std::map<std::string, HostTensor> run_onnxruntime(const std::string& python, const std::string& model, const std::string& folder,
                                                  const std::vector<std::string>& outputs, OnnxRuntimeKernels kernels) {
  const TemporaryFolder own;
  std::vector<std::string> arguments = {model, folder, own.path(), kernels_name(kernels)};
  arguments.insert(arguments.end(), outputs.begin(), outputs.end());
  const Finished finished = run_python(python, kRun, arguments, own.path());
  if (finished.code != 0) throw Error(fmt::format("ONNX Runtime cannot run {}: {}", model, last_line(finished.output)));
  std::map<std::string, HostTensor> results;
  const auto take = [&](const std::string& name, const std::string& file) {
    if (!fs::exists(file)) return false;
    results[name] = NpyFile(file).tensor().cast(DType::f64);
    return true;
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (take(outputs[i], own.file(fmt::format("{}.npy", i)))) continue;
    for (int item = 0; take(fmt::format("{}[{}]", outputs[i], item), own.file(fmt::format("{}[{}].npy", i, item))); ++item) {
    }
  }
  return results;
}

}  // namespace zeroplan
