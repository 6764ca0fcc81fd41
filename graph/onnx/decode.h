#pragma once
// One ONNX node to internal ops. A decoder per operator; decoders.cc lists them.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/onnx/folding_builder.h"
#include "graph/onnx/model.h"
#include "graph/onnx/weights.h"

namespace zeroplan {

// Operands are ids of values with static shapes; a decoder sets the outputs. Decoders throw Error with the bare reason.
class DecodeContext {
 public:
  DecodeContext(FoldingBuilder& build, const OnnxNode& node, WeightFiles& files, DType precision, std::vector<ValueId> inputs)
      : build(build), node(node), files(files), precision(precision), inputs_(std::move(inputs)), outputs_(node.outputs.size(), kNone) {}

  FoldingBuilder& build;
  const OnnxNode& node;
  WeightFiles& files;
  const DType precision;
  const std::map<std::string, HostTensor>* masks = nullptr;  // see ImportOptions; may be absent
  bool inference = false;                                    // Dropout passes everything on

  bool has(int i) const { return i < static_cast<int>(inputs_.size()) && inputs_[i] != kNone; }
  int count() const { return static_cast<int>(inputs_.size()); }
  ValueId in(int i) const;  // throws where it was left out
  bool wants(int i) const { return i < static_cast<int>(node.outputs.size()) && !node.outputs[i].empty(); }
  void out(int i, ValueId id) {
    if (i < static_cast<int>(outputs_.size())) outputs_[i] = id;
  }
  const std::vector<ValueId>& outputs() const { return outputs_; }

  const Shape& shape(int i) const { return build.shape(in(i)); }
  int64_t rank(int i) const { return static_cast<int64_t>(shape(i).size()); }
  // Contents of an operand that must be known at import; `what` names it.
  const HostTensor& constant(int i, std::string_view what) const;
  std::vector<int64_t> ints(int i, std::string_view what) const { return constant(i, what).cast(DType::i64).to_ints(); }
  // The same, of one element.
  double number(int i, std::string_view what) const;
  int64_t integer(int i, std::string_view what) const;

  int64_t attr_int(const char* name, int64_t otherwise) const { return node.integer(name, otherwise); }
  double attr_float(const char* name, double otherwise) const;
  std::string attr_string(const char* name, const std::string& otherwise) const;
  std::vector<int64_t> attr_ints(const char* name) const;                 // empty where absent
  int64_t axis(const char* name, int64_t otherwise, int64_t rank) const;  // normalised
  int attr_type(const char* name, int otherwise) const;                   // TensorProto.DataType
  // The type in the graph of what has that type in ONNX; where there is none, an Error that begins with `what`.
  DType dtype_of(int type, std::string_view what) const;

 private:
  std::vector<ValueId> inputs_, outputs_;
};

// Inputs that a gradient of the outputs goes to; the others (indices, sizes, statistics) are read as they are.
struct GradientPath {
  uint32_t inputs = ~0U;     // bit i: input i; the last bit: all from there on
  uint32_t settings = 0;     // of them: a tensor of the file here is a number of the model, unless it is stated to be trained
  const char* setting = "";  // what that is
  bool moves = false;        // input 0 goes through as it is, a setting too

  constexpr GradientPath with_setting(std::initializer_list<int> places, const char* what) const {
    return {inputs, bits(places), what, moves};
  }
  bool leads_to(int input) const { return (inputs >> std::min(input, 31) & 1U) != 0; }
  bool is_setting(int input) const { return (settings >> std::min(input, 31) & 1U) != 0; }
  static constexpr uint32_t bits(std::initializer_list<int> places) {
    uint32_t all = 0;
    for (const int place : places) all |= 1U << place;
    return all;
  }
};
constexpr GradientPath gradient_to_all() { return {}; }
constexpr GradientPath gradient_to(std::initializer_list<int> inputs) { return {GradientPath::bits(inputs)}; }
constexpr GradientPath no_gradient() { return gradient_to({}); }
constexpr GradientPath moves_input() { return {1, 0, "", true}; }

struct Decoder {
  Decoder() = default;
  Decoder(void (*decode)(DecodeContext&), GradientPath path = {}) : decode(decode), path(path) {}
  void operator()(DecodeContext& c) const { decode(c); }
  explicit operator bool() const { return decode != nullptr; }

  void (*decode)(DecodeContext&) = nullptr;  // nullptr: the operator is not supported
  GradientPath path;
};

// If, Loop, Scan and Gradient are the importer's own.
Decoder find_decoder(const OnnxNode& node);

// Outputs of an operator of the default domain with these inputs and attributes, in place of the node.
std::vector<ValueId> decode_as(DecodeContext& c, const std::string& op, std::vector<ValueId> inputs, std::vector<OnnxAttribute> attributes);

// The families; each adds its operators.
using DecoderTable = std::map<std::string, Decoder, std::less<>>;  // key: operator, or domain::operator outside the default domain
void add_elementwise_decoders(DecoderTable& table);
void add_shape_decoders(DecoderTable& table);
void add_slice_decoders(DecoderTable& table);
void add_reduce_decoders(DecoderTable& table);
void add_matrix_decoders(DecoderTable& table);
void add_norm_decoders(DecoderTable& table);
void add_attention_decoders(DecoderTable& table);
void add_rotary_decoders(DecoderTable& table);
void add_legacy_decoders(DecoderTable& table);
void add_loss_decoders(DecoderTable& table);
void add_constant_decoders(DecoderTable& table);
void add_activation_decoders(DecoderTable& table);
void add_arithmetic_decoders(DecoderTable& table);
void add_arg_decoders(DecoderTable& table);
void add_bit_decoders(DecoderTable& table);
void add_conv_decoders(DecoderTable& table);
void add_einsum_decoders(DecoderTable& table);
void add_gather_nd_decoders(DecoderTable& table);
void add_grid_decoders(DecoderTable& table);
void add_tfidf_decoders(DecoderTable& table);
void add_microsoft_decoders(DecoderTable& table);
void add_normalize_decoders(DecoderTable& table);
void add_optimizer_decoders(DecoderTable& table);
void add_pad_decoders(DecoderTable& table);
void add_pool_decoders(DecoderTable& table);
void add_quantize_decoders(DecoderTable& table);
void add_quantized_product_decoders(DecoderTable& table);
void add_random_decoders(DecoderTable& table);
void add_recurrent_decoders(DecoderTable& table);
void add_resize_decoders(DecoderTable& table);
void add_scatter_decoders(DecoderTable& table);
void add_signal_decoders(DecoderTable& table);
void add_sort_decoders(DecoderTable& table);

}  // namespace zeroplan
