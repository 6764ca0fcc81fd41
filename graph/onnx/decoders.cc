#include <climits>
#include <optional>

#include <fmt/format.h>

#include "base/decimal.h"
#include "base/error.h"
#include "graph/onnx/decode.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {

ValueId DecodeContext::in(int i) const {
  if (!has(i)) throw Error(fmt::format("input {} is missing", i));
  return inputs_[i];
}

const HostTensor& DecodeContext::constant(int i, std::string_view what) const {
  const ValueId id = in(i);
  if (!build.is_constant(id))
    throw Error(fmt::format("its {} (input {}) depends on the data of the model; it must be known when the model is compiled", what, i));
  return build.graph().values[id].constant;
}

double DecodeContext::number(int i, std::string_view what) const {
  const HostTensor& tensor = constant(i, what);
  if (tensor.count() != 1) throw Error(fmt::format("its {} (input {}) has {} elements; it must be one number", what, i, tensor.count()));
  return tensor.get(0);
}

int64_t DecodeContext::integer(int i, std::string_view what) const {
  number(i, what);
  return ints(i, what)[0];
}

double DecodeContext::attr_float(const char* name, double otherwise) const {
  const OnnxAttribute* a = node.find(name);
  return a ? meant_decimal(a->f) : otherwise;
}

std::string DecodeContext::attr_string(const char* name, const std::string& otherwise) const {
  const OnnxAttribute* a = node.find(name);
  return a ? a->s : otherwise;
}

std::vector<int64_t> DecodeContext::attr_ints(const char* name) const {
  const OnnxAttribute* a = node.find(name);
  return a ? a->ints : std::vector<int64_t>{};
}

int64_t DecodeContext::axis(const char* name, int64_t otherwise, int64_t rank) const {
  return normalize_axis(attr_int(name, otherwise), rank);
}

int DecodeContext::attr_type(const char* name, int otherwise) const {
  const int64_t type = attr_int(name, otherwise);
  if (type < 0 || type > INT_MAX) throw Error(fmt::format("its {} {} is no element type", name, type));
  return static_cast<int>(type);
}

DType DecodeContext::dtype_of(int type, std::string_view what) const {
  const std::optional<DType> dtype = graph_dtype(type, precision);
  if (!dtype) throw Error(fmt::format("{} {}, which is not supported", what, onnx_type_name(type)));
  return *dtype;
}

Decoder find_decoder(const OnnxNode& node) {
  static const DecoderTable table = [] {
    DecoderTable t;
    add_elementwise_decoders(t);
    add_shape_decoders(t);
    add_slice_decoders(t);
    add_reduce_decoders(t);
    add_matrix_decoders(t);
    add_norm_decoders(t);
    add_attention_decoders(t);
    add_rotary_decoders(t);
    add_legacy_decoders(t);
    add_loss_decoders(t);
    add_constant_decoders(t);
    add_activation_decoders(t);
    add_arithmetic_decoders(t);
    add_arg_decoders(t);
    add_bit_decoders(t);
    add_conv_decoders(t);
    add_einsum_decoders(t);
    add_gather_nd_decoders(t);
    add_grid_decoders(t);
    add_tfidf_decoders(t);
    add_microsoft_decoders(t);
    add_normalize_decoders(t);
    add_optimizer_decoders(t);
    add_pad_decoders(t);
    add_pool_decoders(t);
    add_quantize_decoders(t);
    add_quantized_product_decoders(t);
    add_random_decoders(t);
    add_recurrent_decoders(t);
    add_resize_decoders(t);
    add_scatter_decoders(t);
    add_signal_decoders(t);
    add_sort_decoders(t);
    return t;
  }();
  const auto found = table.find(node.domain.empty() ? node.op : node.domain + "::" + node.op);
  return found == table.end() ? Decoder{} : found->second;
}

std::vector<ValueId> decode_as(DecodeContext& c, const std::string& op, std::vector<ValueId> inputs,
                               std::vector<OnnxAttribute> attributes) {
  OnnxNode node = c.node;
  node.op = op;
  node.domain.clear();
  node.attributes = std::move(attributes);
  const Decoder decoder = find_decoder(node);
  if (!decoder) throw Error(fmt::format("it stands for {}, which this version has no decoder for; export the model without it", op));
  DecodeContext inner(c.build, node, c.files, c.precision, std::move(inputs));
  inner.masks = c.masks;
  decoder(inner);
  return inner.outputs();
}

}  // namespace zeroplan
