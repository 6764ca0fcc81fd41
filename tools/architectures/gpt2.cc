// GPT-2 (Radford et al. 2019): pre-norm blocks, learned positions, tanh GELU, head tied to the token table.
#include <cmath>
#include <map>

#include "tools/architectures/transformer.h"

namespace zeroplan {
namespace {

struct Size {
  int64_t layers, width, heads, context, vocabulary;
};

const std::map<std::string, Size>& sizes() {
  static const std::map<std::string, Size> table = {
      {"gpt2-nano", {2, 64, 4, 64, 256}},
      {"gpt2-mini", {6, 384, 6, 256, 8192}},
      {"gpt2-124m", {12, 768, 12, 1024, 50257}},
      {"gpt2-1558m", {48, 1600, 25, 1024, 50257}},
  };
  return table;
}

std::string norm(ModelWriter& m, const std::string& name, const std::string& x, int64_t width) {
  const std::string scale = m.weight(name + ".weight", {width}, {.value = 1});
  const std::string shift = m.weight(name + ".bias", {width}, {});
  const std::string y = m.node("LayerNormalization", {x, scale, shift});
  m.attribute("axis", int64_t{-1});
  m.attribute("epsilon", 1e-5f);
  return y;
}

std::string linear(ModelWriter& m, const std::string& name, const std::string& x, int64_t in, int64_t out, double deviation) {
  const std::string weight = m.weight(name + ".weight", {in, out}, {.deviation = deviation});
  const std::string product = m.node("MatMul", {x, weight});
  const std::string bias = m.weight(name + ".bias", {out}, {});
  return m.node("Add", {product, bias});
}

std::string attention(ModelWriter& m, const std::string& name, const std::string& x, const std::string& mask, const Size& s) {
  const int64_t head_width = s.width / s.heads;
  const std::string qkv = linear(m, name + ".c_attn", x, s.width, 3 * s.width, 0.02);
  std::vector<std::string> parts = m.split(qkv, {s.width, s.width, s.width}, -1);
  for (std::string& part : parts) part = split_heads(m, part, s.context, s.heads, head_width);
  const std::string y = merge_heads(m, attend(m, parts[0], parts[1], parts[2], mask, head_width), s.context, s.width);
  return linear(m, name + ".c_proj", y, s.width, s.width, 0.02 / std::sqrt(2.0 * static_cast<double>(s.layers)));
}

std::string feed_forward(ModelWriter& m, const std::string& name, const std::string& x, const Size& s) {
  const std::string wide = linear(m, name + ".c_fc", x, s.width, 4 * s.width, 0.02);
  const std::string active = m.node("Gelu", {wide});
  m.attribute("approximate", std::string("tanh"));
  return linear(m, name + ".c_proj", active, 4 * s.width, s.width, 0.02 / std::sqrt(2.0 * static_cast<double>(s.layers)));
}

}  // namespace

std::vector<std::string> gpt2_sizes() {
  std::vector<std::string> names;
  for (const auto& [name, size] : sizes()) names.push_back(name);
  return names;
}

void build_gpt2(ModelWriter& m, const NewOptions& options) {
  Size s = sizes().at(options.size);
  if (options.layers > 0) s.layers = options.layers;
  if (options.context > 0) s.context = options.context;
  m.input("idx", true, options.batch, {s.context});
  m.input("target", true, options.batch, {s.context});
  const std::string tokens = m.weight("wte.weight", {s.vocabulary, s.width}, {.deviation = 0.02});
  const std::string positions = m.weight("wpe.weight", {s.context, s.width}, {.deviation = 0.01});
  const std::string mask = causal_mask(m, s.context);
  std::string x = m.node("Add", {m.node("Gather", {tokens, "idx"}), positions});
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    const std::string name = "h." + std::to_string(layer);
    x = m.node("Add", {x, attention(m, name + ".attn", norm(m, name + ".ln_1", x, s.width), mask, s)});
    x = m.node("Add", {x, feed_forward(m, name + ".mlp", norm(m, name + ".ln_2", x, s.width), s)});
  }
  const std::string last = norm(m, "ln_f", x, s.width);
  const std::string head = m.node("Transpose", {tokens});
  m.attribute("perm", std::vector<int64_t>{1, 0});
  token_loss(m, m.node("MatMul", {last, head}, "logits"), s.vocabulary);
}

}  // namespace zeroplan
