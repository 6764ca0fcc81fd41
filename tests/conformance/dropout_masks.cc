#include "tests/conformance/dropout_masks.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <random>

namespace zeroplan {
namespace {

// numpy.random.RandomState(seed).uniform(0, 1): 53 bits of two words of MT19937.
class NumpyUniform {
 public:
  explicit NumpyUniform(uint32_t seed) : words_(seed) {}
  double next() {
    const uint64_t high = words_() >> 5, low = words_() >> 6;
    return static_cast<double>(high << 26 | low) * 0x1p-53;
  }

 private:
  std::mt19937 words_;
};

const HostTensor* input_of(const DataSet& set, const onnx::NodeProto& node, int input) {
  const auto found = std::find_if(set.inputs.begin(), set.inputs.end(),
                                  [&](const SuiteTensor& t) { return input < node.input_size() && t.name == node.input(input); });
  return found == set.inputs.end() ? nullptr : &found->values;
}

uint32_t seed_of(const onnx::NodeProto& node) {
  for (const auto& attribute : node.attribute())
    if (attribute.name() == "seed") return static_cast<uint32_t>(attribute.i());
  return 0;
}

}  // namespace

std::map<std::string, HostTensor> numpy_dropout_masks(const onnx::GraphProto& graph, const DataSet& set) {
  std::map<std::string, HostTensor> masks;
  for (const onnx::NodeProto& node : graph.node()) {
    const HostTensor* x = input_of(set, node, 0);
    if (node.op_type() != "Dropout" || x == nullptr) continue;
    const HostTensor* ratio = input_of(set, node, 1);
    NumpyUniform uniform(seed_of(node));
    HostTensor mask(DType::boolean, x->shape());
    for (int64_t i = 0; i < mask.count(); ++i) mask.set_int(i, uniform.next() >= (ratio == nullptr ? 0.5 : ratio->get(0)));
    masks.emplace(node.output(0), std::move(mask));
  }
  return masks;
}

}  // namespace zeroplan
