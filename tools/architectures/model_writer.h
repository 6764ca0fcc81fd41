#pragma once
// Builds an ONNX model node by node and writes it with seeded weights, inside the file or beside it.
#include <string>
#include <vector>

#include <onnx/onnx_pb.h>

#include "base/output_file.h"

namespace zeroplan {

struct NewOptions {
  std::string size;  // name of the architecture and size
  std::string output;
  int64_t layers = 0;   // 0: the size's own
  int64_t context = 0;  // 0: the size's own
  int64_t batch = 0;    // 0: symbolic
  uint64_t seed = 0;
  bool weights = true;  // false: shapes alone
};

// How a weight starts: normal with this deviation, or one value.
struct Init {
  double deviation = 0;
  double value = 0;
};

class ModelWriter {
 public:
  ModelWriter(const std::string& graph_name, int opset);

  // Float or int64 graph input; the first axis is the batch: fixed where batch > 0, else named "batch".
  void input(const std::string& name, bool integer, int64_t batch, const std::vector<int64_t>& rest);
  void scalar_output(const std::string& name);
  std::string weight(const std::string& name, const std::vector<int64_t>& shape, Init init);
  std::string ints(const std::vector<int64_t>& values);  // Constant node, rank 1
  std::string int_scalar(int64_t value);
  std::string floats(const std::vector<float>& values);  // Constant node, rank 1
  std::string float_scalar(float value);
  // One node with one output; the output is named after the op where `output` is empty.
  std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output = {});
  std::vector<std::string> split(const std::string& x, const std::vector<int64_t>& sizes, int64_t axis);
  void attribute(const std::string& name, int64_t value);  // of the last node
  void attribute(const std::string& name, float value);
  void attribute(const std::string& name, const std::string& value);
  void attribute(const std::string& name, const std::vector<int64_t>& value);

  // Writes the file; weights above 1 GB go to <output>.data. Returns the number of parameters.
  int64_t save(const NewOptions& options);

 private:
  struct Weight {
    std::string name;
    std::vector<int64_t> shape;
    Init init;
    int64_t count;
  };
  std::string constant(const onnx::TensorProto& tensor);
  onnx::AttributeProto& last_attribute(const std::string& name);
  void place_inside(uint64_t seed);
  void place_beside(const NewOptions& options, OutputFile& data);

  onnx::ModelProto model_;
  std::vector<Weight> weights_;
  int counter_ = 0;
};

// Each builds the whole model of the named size into `writer`.
void build_mlp(ModelWriter& writer, const NewOptions& options);
void build_gpt2(ModelWriter& writer, const NewOptions& options);
void build_llama(ModelWriter& writer, const NewOptions& options);
std::vector<std::string> gpt2_sizes();
std::vector<std::string> llama_sizes();

}  // namespace zeroplan
