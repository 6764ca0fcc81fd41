// The activation functions that ONNX names for recurrent operators.
#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include <fmt/format.h>

#include "base/decimal.h"
#include "base/error.h"
#include "graph/onnx/recurrent.h"

namespace zeroplan {
namespace {

struct Known {
  const char* name;
  int parameters;  // 1: alpha; 2: alpha and beta
  double alpha, beta;
};

constexpr std::array<Known, 11> kKnown = {{{"relu", 0, 0, 0},
                                           {"tanh", 0, 0, 0},
                                           {"sigmoid", 0, 0, 0},
                                           {"softsign", 0, 0, 0},
                                           {"softplus", 0, 0, 0},
                                           {"leakyrelu", 1, 0.01, 0},
                                           {"thresholdedrelu", 1, 1, 0},
                                           {"elu", 1, 1, 0},
                                           {"affine", 2, 1, 0},
                                           {"scaledtanh", 2, 1, 1},
                                           {"hardsigmoid", 2, 0.2, 0.5}}};

// Alphas and betas are listed for the functions that have them, in order.
class ParameterLists {
 public:
  explicit ParameterLists(const DecodeContext& c) : alphas_(list(c, "activation_alpha")), betas_(list(c, "activation_beta")) {}

  Activation next(std::string name) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char letter) { return std::tolower(letter); });
    const auto known = std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& k) { return name == k.name; });
    if (known == kKnown.end()) throw Error(fmt::format("its activation '{}' is not one that ONNX names", name));
    Activation activation{name, known->alpha, known->beta};
    if (known->parameters > 0 && alpha_ < alphas_.size()) activation.alpha = meant_decimal(alphas_[alpha_++]);
    if (known->parameters > 1 && beta_ < betas_.size()) activation.beta = meant_decimal(betas_[beta_++]);
    return activation;
  }

 private:
  static std::vector<double> list(const DecodeContext& c, const char* name) {
    const OnnxAttribute* a = c.node.find(name);
    return a ? a->floats : std::vector<double>{};
  }
  std::vector<double> alphas_, betas_;
  size_t alpha_ = 0, beta_ = 0;
};

struct Scalars {
  FoldingBuilder& build;
  DType dtype;
  ValueId of(double value) const { return build.scalar(value, dtype); }
  ValueId scaled(ValueId x, double factor) const { return factor == 1 ? x : build.add(OpKind::mul, {x, of(factor)}); }
  ValueId shifted(ValueId x, double term) const { return term == 0 ? x : build.add(OpKind::add, {x, of(term)}); }
  ValueId positive(ValueId x, ValueId yes, ValueId no, double border) const {
    return build.add(OpKind::where, {build.add(OpKind::greater, {x, of(border)}), yes, no});
  }
};

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)
ValueId softplus(const Scalars& s, ValueId x) {
  const ValueId decay = s.build.add(OpKind::exp, {s.build.add(OpKind::neg, {s.build.add(OpKind::abs, {x})})});
  return s.build.add(OpKind::add, {s.build.add(OpKind::relu, {x}), s.build.add(OpKind::log, {s.shifted(decay, 1)})});
}

// The exponent is held below 0, so that its gradient stays finite where it is not taken.
ValueId elu(const Scalars& s, ValueId x, double alpha) {
  const ValueId low = s.build.add(OpKind::exp, {s.build.add(OpKind::minimum, {x, s.of(0)})});
  return s.positive(x, x, s.scaled(s.shifted(low, -1), alpha), 0);
}

ValueId hard_sigmoid(const Scalars& s, ValueId x, double alpha, double beta) {
  const ValueId line = s.shifted(s.scaled(x, alpha), beta);
  return s.build.add(OpKind::maximum, {s.build.add(OpKind::minimum, {line, s.of(1)}), s.of(0)});
}

}  // namespace

std::vector<std::vector<Activation>> read_activations(const DecodeContext& c, int64_t directions,
                                                      const std::vector<const char*>& otherwise) {
  std::vector<std::string> names;
  if (const OnnxAttribute* listed = c.node.find("activations")) names = listed->strings;
  if (names.empty())
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), otherwise.begin(), otherwise.end());
  if (names.size() != directions * otherwise.size())
    throw Error(fmt::format("{} activations for {} directions; {} each are needed", names.size(), directions, otherwise.size()));
  ParameterLists parameters(c);
  std::vector<std::vector<Activation>> lists(directions);
  for (size_t i = 0; i < names.size(); ++i) lists[i / otherwise.size()].push_back(parameters.next(names[i]));
  return lists;
}

ValueId activate(FoldingBuilder& build, const Activation& a, ValueId x) {
  const Scalars s{build, build.dtype(x)};
  if (a.name == "relu") return build.add(OpKind::relu, {x});
  if (a.name == "tanh") return build.add(OpKind::tanh, {x});
  if (a.name == "sigmoid") return build.add(OpKind::sigmoid, {x});
  if (a.name == "softsign") return build.add(OpKind::div, {x, s.shifted(build.add(OpKind::abs, {x}), 1)});
  if (a.name == "softplus") return softplus(s, x);
  if (a.name == "leakyrelu") return s.positive(x, x, s.scaled(x, a.alpha), 0);
  if (a.name == "thresholdedrelu") return s.positive(x, x, s.of(0), a.alpha);
  if (a.name == "elu") return elu(s, x, a.alpha);
  if (a.name == "affine") return s.shifted(s.scaled(x, a.alpha), a.beta);
  if (a.name == "scaledtanh") return s.scaled(build.add(OpKind::tanh, {s.scaled(x, a.beta)}), a.alpha);
  return hard_sigmoid(s, x, a.alpha, a.beta);
}

}  // namespace zeroplan
