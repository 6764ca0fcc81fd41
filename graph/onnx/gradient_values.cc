#include <array>
#include <optional>

#include "graph/onnx/normalize_domains.h"
#include "graph/onnx/roles.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

struct Rule {
  const char* op;
  std::array<int, 3> inputs;  // that a gradient flows to; -1 fills up
};

// Operators whose gradient flows to some inputs alone; all others pass it to every input.
constexpr Rule kRules[] = {
    {"Gather", {0, -1, -1}},
    {"GatherND", {0, -1, -1}},
    {"GatherElements", {0, -1, -1}},
    {"ScatterElements", {0, 2, -1}},
    {"Scatter", {0, 2, -1}},
    {"ScatterND", {0, 2, -1}},
    {"Reshape", {0, -1, -1}},
    {"Expand", {0, -1, -1}},
    {"Slice", {0, -1, -1}},
    {"Split", {0, -1, -1}},
    {"Squeeze", {0, -1, -1}},
    {"Unsqueeze", {0, -1, -1}},
    {"Tile", {0, -1, -1}},
    {"ReduceSum", {0, -1, -1}},
    {"ReduceMean", {0, -1, -1}},
    {"ReduceMax", {0, -1, -1}},
    {"ReduceProd", {0, -1, -1}},
    {"ReduceMin", {0, -1, -1}},
    {"ReduceL1", {0, -1, -1}},
    {"ReduceL2", {0, -1, -1}},
    {"Where", {1, 2, -1}},
    {"Pow", {0, -1, -1}},
    {"Clip", {0, -1, -1}},
    {"Pad", {0, 2, -1}},
    {"CenterCropPad", {0, -1, -1}},
    {"Resize", {0, -1, -1}},
    {"Upsample", {0, -1, -1}},
    {"Compress", {0, -1, -1}},
    {"ReverseSequence", {0, -1, -1}},
    {"Col2Im", {0, -1, -1}},
    {"AffineGrid", {0, -1, -1}},
    {"RoiAlign", {0, 1, -1}},
    {"CumSum", {0, -1, -1}},
    {"Dropout", {0, -1, -1}},
    {"Trilu", {0, -1, -1}},
    {"CastLike", {0, -1, -1}},
    {"QuantizeLinear", {0, -1, -1}},
    {"DequantizeLinear", {0, -1, -1}},
    {"QLinearMatMul", {0, 3, -1}},
    {"QLinearConv", {0, 3, -1}},
    {"MatMulInteger", {0, 1, -1}},
    {"ConvInteger", {0, 1, -1}},
    {"TopK", {0, -1, -1}},
    {"BatchNormalization", {0, 1, 2}},
    {"MaxUnpool", {0, -1, -1}},
    {"SoftmaxCrossEntropyLoss", {0, -1, -1}},
    {"NegativeLogLikelihoodLoss", {0, -1, -1}},
    {"DFT", {0, -1, -1}},
    {"STFT", {0, -1, -1}},
    {"RotaryEmbedding", {0, -1, -1}},
    {"Range", {-1, -1, -1}},
    {"MelWeightMatrix", {-1, -1, -1}},
    {"Shape", {-1, -1, -1}},
    {"Size", {-1, -1, -1}},
    {"ConstantOfShape", {-1, -1, -1}},
    {"Equal", {-1, -1, -1}},
    {"Less", {-1, -1, -1}},
    {"Greater", {-1, -1, -1}},
    {"LessOrEqual", {-1, -1, -1}},
    {"GreaterOrEqual", {-1, -1, -1}},
    {"Not", {-1, -1, -1}},
    {"And", {-1, -1, -1}},
    {"Or", {-1, -1, -1}},
    {"Xor", {-1, -1, -1}},
    {"Hardmax", {-1, -1, -1}},
    {"IsNaN", {-1, -1, -1}},
    {"IsInf", {-1, -1, -1}},
    {"ArgMax", {-1, -1, -1}},
    {"ArgMin", {-1, -1, -1}},
    {"NonZero", {-1, -1, -1}},
    {"NonMaxSuppression", {-1, -1, -1}},
    {"OneHot", {2, -1, -1}},
    {"EyeLike", {-1, -1, -1}},
    {"Bernoulli", {-1, -1, -1}},
    {"Multinomial", {-1, -1, -1}},
    {"RandomNormalLike", {-1, -1, -1}},
    {"RandomUniformLike", {-1, -1, -1}},
    {"Floor", {-1, -1, -1}},
    {"Ceil", {-1, -1, -1}},
    {"Round", {-1, -1, -1}},
    {"Sign", {-1, -1, -1}},
};

bool carries(const OnnxNode& node, int input) {
  if (!node.domain.empty() && node.domain != kLegacyDomain) return true;
  if (node.op == "Cast") {
    const OnnxAttribute* to = node.find("to");
    const std::optional<DType> dtype = graph_dtype(to ? static_cast<int>(to->i) : 0, DType::f32);
    return dtype && is_floating(*dtype);
  }
  if (node.op == "If") return false;
  if (node.op == "Loop") return input >= 2;
  if (node.op == "LSTM" || node.op == "GRU" || node.op == "RNN") return input != 4;  // the lengths of the sequences
  for (const Rule& rule : kRules) {
    if (node.op != rule.op) continue;
    return input == rule.inputs[0] || input == rule.inputs[1] || input == rule.inputs[2];
  }
  return true;
}

void reach(const OnnxGraph& graph, std::set<std::string>& reached);

// A branch gives the outputs of its If; what a loop gives once it may read again the next time, so all of its outputs count.
void reach_inside(const OnnxNode& node, std::set<std::string>& reached) {
  for (const OnnxAttribute& attribute : node.attributes) {
    if (!attribute.graph) continue;
    const std::vector<OnnxValueInfo>& outputs = attribute.graph->outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const bool unused = node.op == "If" && (i >= node.outputs.size() || !reached.count(node.outputs[i]));
      const bool condition = node.op == "Loop" && i == 0;
      if (!unused && !condition) reached.insert(outputs[i].name);
    }
    reach(*attribute.graph, reached);
  }
}

// Depth is bounded by the nesting limit of the file.
void reach(const OnnxGraph& graph, std::set<std::string>& reached) {
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    bool leads = false;
    for (const std::string& output : node->outputs) leads |= !output.empty() && reached.count(output);
    if (!leads) continue;
    for (size_t i = 0; i < node->inputs.size(); ++i)
      if (carries(*node, static_cast<int>(i))) reached.insert(node->inputs[i]);
    reach_inside(*node, reached);
  }
}

}  // namespace

UseMap find_uses(const OnnxGraph& graph, bool inside_nodes) {
  UseMap uses;
  for (const OnnxGraph* inner : inside_nodes ? all_graphs(graph) : std::vector{&graph})
    for (const OnnxNode& node : inner->nodes)
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (!node.inputs[i].empty()) uses[node.inputs[i]].push_back({&node, static_cast<int>(i)});
  return uses;
}

std::set<std::string> gradient_values(const OnnxGraph& graph, const std::set<std::string>& wanted) {
  std::set<std::string> reached = wanted;
  reach(graph, reached);
  return reached;
}

}  // namespace zeroplan
