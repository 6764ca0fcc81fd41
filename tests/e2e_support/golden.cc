#include "tests/e2e_support/golden.h"
#include "tests/e2e_support/tested_device.h"
#include "tests/paths/paths.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace zeroplan {

std::string model_folder(const std::string& model) { return std::string(kSourceFolder) + "/tests/models/" + model; }

Golden read_golden(const std::string& model, const std::string& file) {
  std::ifstream stream(model_folder(model) + "/" + file + ".json");
  const nlohmann::json json = nlohmann::json::parse(stream);
  const nlohmann::json& optimizer = json.at("optimizer");
  Golden golden;
  golden.losses = json.at("losses").get<std::vector<double>>();
  golden.compile.batch = 8;
  golden.compile.device = tested_device();
  golden.run.steps = static_cast<int64_t>(golden.losses.size());
  golden.run.lr = optimizer.at("lr");
  golden.run.weight_decay = optimizer.at("weight_decay");
  if (optimizer.at("kind") == "adamw") {
    golden.run.beta1 = optimizer.at("betas").at(0);
    golden.run.beta2 = optimizer.at("betas").at(1);
    golden.run.eps = optimizer.at("eps");
  } else {
    golden.compile.optimizer = OptimizerKind::sgd;
    golden.compile.momentum = optimizer.at("momentum");
  }
  for (const auto& [name, parameter] : json.at("params").items())
    golden.initializers[name] = parameter.at("onnx").empty() ? json.at("rnn_layout").at(name).at(0) : parameter.at("onnx").at(0).at(0);
  const nlohmann::json& loss = json.at("loss");
  if (loss.at("kind") == "softmax_cross_entropy")
    golden.compile.loss = "softmax_cross_entropy(logits, labels, axis=" + std::to_string(loss.value("class_axis", -1)) + ")";
  if (model == "gpt2_nano_logits") golden.compile.dims["seq"] = 16;
  return golden;
}

GoldenRun run_golden(const std::string& model, const Golden& golden, const CompileOptions& options, ExecutorOptions executor_options) {
  const Plan plan = compile(model_folder(model) + "/model.onnx", options);
  GoldenRun run;
  run.executor = make_executor(plan, std::move(executor_options));
  const std::unique_ptr<DataSource> data = open_npy_folder(model_folder(model) + "/data", plan);
  run_training(*run.executor, *data, nullptr, golden.run, [&](const RunEvent& event) { run.losses.push_back(event.step->loss); });
  return run;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (!file) throw Error("cannot read " + path);
  return bytes.str();
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  if (!file) throw Error("cannot write " + path);
}

}  // namespace zeroplan
