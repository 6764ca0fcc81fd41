// The activation functions that ONNX names for recurrent operators.
#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "base/decimal.h"
#include "base/error.h"
#include "graph/onnx/activations.h"
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

Term activate(const Activation& a, Term x) {
  if (a.name == "relu") return apply(OpKind::relu, x);
  if (a.name == "tanh") return tanh(x);
  if (a.name == "sigmoid") return sigmoid(x);
  if (a.name == "softsign") return softsign(x);
  if (a.name == "softplus") return softplus(x);
  if (a.name == "leakyrelu") return leaky_relu(x, a.alpha);
  if (a.name == "thresholdedrelu") return thresholded_relu(x, a.alpha);
  if (a.name == "elu") return exponential_unit(x, a.alpha);
  if (a.name == "affine") return x * a.alpha + a.beta;
  if (a.name == "scaledtanh") return tanh(x * a.beta) * a.alpha;
  return hard_sigmoid(x, a.alpha, a.beta);
}

}  // namespace zeroplan
