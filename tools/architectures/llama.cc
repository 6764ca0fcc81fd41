// LLaMA (Touvron et al. 2023): RMSNorm, rotary positions (Su et al. 2021), grouped key and value heads, SwiGLU feed-forward.
#include <cmath>
#include <map>

#include "tools/architectures/transformer.h"

namespace zeroplan {
namespace {

struct Size {
  int64_t layers, width, heads, kv_heads, hidden, context, vocabulary;
  float rotary_base;
};

const std::map<std::string, Size>& sizes() {
  static const std::map<std::string, Size> table = {
      {"llama-nano", {2, 64, 4, 2, 176, 64, 256, 10000}},
      {"llama-1b", {16, 2048, 32, 8, 8192, 2048, 128256, 500000}},
  };
  return table;
}

std::string norm(ModelWriter& m, const std::string& name, const std::string& x, int64_t width) {
  const std::string square = m.node("Mul", {x, x});
  const std::string axes = m.ints({-1});
  const std::string mean = m.node("ReduceMean", {square, axes});
  m.attribute("keepdims", int64_t{1});
  const std::string epsilon = m.float_scalar(1e-5f);
  const std::string root = m.node("Sqrt", {m.node("Add", {mean, epsilon})});
  const std::string scale = m.weight(name + ".weight", {width}, {.value = 1});
  return m.node("Mul", {m.node("Div", {x, root}), scale});
}

std::string linear(ModelWriter& m, const std::string& name, const std::string& x, int64_t in, int64_t out) {
  return m.node("MatMul", {x, m.weight(name + ".weight", {in, out}, {.deviation = 0.02})});
}

struct Rotary {
  std::string cosine, sine;  // [T, D]
};

// Angles position × base^(-2i/D) for i < D/2, twice along the last axis. Computed in the graph, so that the tables are no weights.
Rotary rotary_tables(ModelWriter& m, const Size& s) {
  const int64_t half = s.width / s.heads / 2;
  std::vector<float> frequencies(half);
  for (int64_t i = 0; i < half; ++i) frequencies[i] = std::pow(s.rotary_base, -static_cast<float>(i) / static_cast<float>(half));
  const std::string start = m.int_scalar(0), limit = m.int_scalar(s.context), delta = m.int_scalar(1);
  const std::string range = m.node("Range", {start, limit, delta});
  const std::string position = m.node("Cast", {range});
  m.attribute("to", static_cast<int64_t>(onnx::TensorProto::FLOAT));
  const std::string axis = m.ints({1});
  const std::string column = m.node("Unsqueeze", {position, axis});
  const std::string angles = m.node("Mul", {column, m.floats(frequencies)});
  const std::string both = m.node("Concat", {angles, angles});
  m.attribute("axis", int64_t{-1});
  return {m.node("Cos", {both}), m.node("Sin", {both})};
}

// x·cos + rotate_half(x)·sin on [batch, heads, T, D].
std::string rotate(ModelWriter& m, const std::string& x, const Rotary& tables, int64_t head_width) {
  const std::vector<std::string> halves = m.split(x, {head_width / 2, head_width / 2}, -1);
  const std::string negative = m.node("Neg", {halves[1]});
  const std::string turned = m.node("Concat", {negative, halves[0]});
  m.attribute("axis", int64_t{-1});
  return m.node("Add", {m.node("Mul", {x, tables.cosine}), m.node("Mul", {turned, tables.sine})});
}

// [batch, kv_heads, T, D] → [batch, heads, T, D], each head repeated.
std::string repeat_heads(ModelWriter& m, const std::string& x, const Size& s) {
  const int64_t head_width = s.width / s.heads, repeats = s.heads / s.kv_heads;
  if (repeats == 1) return x;
  const std::string grouped = m.node("Unsqueeze", {x, m.ints({2})});
  const std::string wide = m.node("Expand", {grouped, m.ints({1, 1, repeats, 1, 1})});
  return m.node("Reshape", {wide, m.ints({-1, s.heads, s.context, head_width})});
}

std::string attention(ModelWriter& m, const std::string& name, const std::string& x, const Rotary& tables, const std::string& mask,
                      const Size& s) {
  const int64_t head_width = s.width / s.heads, kv_width = s.kv_heads * head_width;
  std::string q = split_heads(m, linear(m, name + ".q_proj", x, s.width, s.width), s.context, s.heads, head_width);
  std::string k = split_heads(m, linear(m, name + ".k_proj", x, s.width, kv_width), s.context, s.kv_heads, head_width);
  std::string v = split_heads(m, linear(m, name + ".v_proj", x, s.width, kv_width), s.context, s.kv_heads, head_width);
  q = rotate(m, q, tables, head_width);
  k = repeat_heads(m, rotate(m, k, tables, head_width), s);
  v = repeat_heads(m, v, s);
  const std::string y = merge_heads(m, attend(m, q, k, v, mask, head_width), s.context, s.width);
  return linear(m, name + ".o_proj", y, s.width, s.width);
}

std::string feed_forward(ModelWriter& m, const std::string& name, const std::string& x, const Size& s) {
  const std::string gate = linear(m, name + ".gate_proj", x, s.width, s.hidden);
  const std::string active = m.node("Mul", {gate, m.node("Sigmoid", {gate})});
  const std::string up = linear(m, name + ".up_proj", x, s.width, s.hidden);
  return linear(m, name + ".down_proj", m.node("Mul", {active, up}), s.hidden, s.width);
}

}  // namespace

std::vector<std::string> llama_sizes() {
  std::vector<std::string> names;
  for (const auto& [name, size] : sizes()) names.push_back(name);
  return names;
}

void build_llama(ModelWriter& m, const NewOptions& options) {
  Size s = sizes().at(options.size);
  if (options.layers > 0) s.layers = options.layers;
  if (options.context > 0) s.context = options.context;
  m.input("idx", true, options.batch, {s.context});
  m.input("target", true, options.batch, {s.context});
  const std::string tokens = m.weight("embed_tokens.weight", {s.vocabulary, s.width}, {.deviation = 0.02});
  const std::string mask = causal_mask(m, s.context);
  const Rotary tables = rotary_tables(m, s);
  std::string x = m.node("Gather", {tokens, "idx"});
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    const std::string name = "layers." + std::to_string(layer);
    x = m.node("Add", {x, attention(m, name + ".self_attn", norm(m, name + ".input_layernorm", x, s.width), tables, mask, s)});
    x = m.node("Add", {x, feed_forward(m, name + ".mlp", norm(m, name + ".post_attention_layernorm", x, s.width), s)});
  }
  const std::string last = norm(m, "norm", x, s.width);
  const std::string head = m.node("Transpose", {tokens});
  m.attribute("perm", std::vector<int64_t>{1, 0});
  token_loss(m, m.node("MatMul", {last, head}, "logits"), s.vocabulary);
}

}  // namespace zeroplan
