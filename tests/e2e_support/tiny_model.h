#pragma once
// Small ONNX models, built node by node in a test.
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/host_tensor.h"

namespace onnx {
class GraphProto;
class ModelProto;
}  // namespace onnx

namespace zeroplan {

// One axis of an input or output: a number, or a symbol.
struct TinyDim {
  TinyDim(int size) : value(size) {}
  TinyDim(int64_t size) : value(size) {}
  TinyDim(const char* name) : symbol(name) {}
  int64_t value = 0;
  std::string symbol;
};

using TinyAttribute = std::pair<std::string, std::variant<int64_t, double, std::string, std::vector<int64_t>>>;

class TinyModel {
 public:
  TinyModel();  // opset 18
  TinyModel(TinyModel&&) noexcept;
  ~TinyModel();

  TinyModel& input(const std::string& name, DType dtype, const std::vector<TinyDim>& dims);
  TinyModel& output(const std::string& name, const std::vector<TinyDim>& dims);
  TinyModel& loss(const std::string& name = "loss") { return output(name, {}); }
  TinyModel& initializer(const std::string& name, const HostTensor& values);
  TinyModel& weight(const std::string& name, const Shape& shape, const std::vector<double>& values);
  TinyModel& ints(const std::string& name, const std::vector<int64_t>& values);
  // A Constant node: never a parameter as long as it is small.
  TinyModel& constant(const std::string& name, const HostTensor& value);
  // The node is called node_<first output>.
  TinyModel& node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                  const std::vector<TinyAttribute>& attributes = {});
  void save(const std::string& path) const;

 private:
  onnx::GraphProto& graph();
  std::unique_ptr<onnx::ModelProto> model_;
};

// Deterministic values in (-scale, scale).
HostTensor random_tensor(const Shape& shape, int seed, double scale = 1);
std::vector<double> random_values(int64_t count, int seed, double scale = 1);
// Deterministic integers in [-limit, limit].
std::vector<double> random_integers(int64_t count, int seed, int limit);

// x[N,width], t[N,width] → loss = mean((relu(…relu(x·w0 + b0)…) − t)²); parameters layers.I.weight [width,width] and layers.I.bias [width].
TinyModel tiny_mlp(int layers, int64_t width, bool integers = false);
// x[N,sizes[0]] · w0 · w1 … → loss = mean; parameters w0 [sizes[0],sizes[1]], …
TinyModel tiny_chain(const std::vector<int64_t>& sizes);
// x[N,width] * w → loss = mean square of each sample's distance to the mean of its batch; parameter w. The node that mixes is node_rest.
TinyModel tiny_mixer(int64_t width);
// x[N,…] * w → loss = mean over samples of the sum; one parameter w.
TinyModel tiny_linear(const Shape& shape, const std::vector<double>& start);

}  // namespace zeroplan
