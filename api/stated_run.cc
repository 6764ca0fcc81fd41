#include "api/stated_run.h"

#include <charconv>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {
namespace {

constexpr std::string_view kPrefix = "model-";

double parse(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(fmt::format("the plan states an optimizer setting '{}' that is no number; compile the model again", text));
  return value;
}

}  // namespace

void keep_stated(const StatedOptimizer& o, Plan& plan) {
  const auto keep = [&](const char* name, const std::optional<double>& value) {
    if (value) plan.header.options.emplace_back(fmt::format("{}{}", kPrefix, name), fmt::format("{}", *value));
  };
  keep("lr", o.lr);
  keep("beta1", o.beta1);
  keep("beta2", o.beta2);
  keep("eps", o.eps);
  keep("weight-decay", o.weight_decay);
  keep("clip", o.clip);
  if (o.hugging_face) plan.header.options.emplace_back("model-adam-form", adam_form_name(AdamForm::hugging_face));
}

void take_stated(const Plan& plan, const std::set<std::string>& given, RunOptions& options) {
  for (const auto& [name, value] : plan.header.options) {
    if (!name.starts_with(kPrefix)) continue;
    const std::string setting = name.substr(kPrefix.size());
    if (given.count(setting == "beta1" || setting == "beta2" ? "betas" : setting)) continue;
    if (setting == "lr") options.lr = parse(value);
    if (setting == "beta1") options.beta1 = parse(value);
    if (setting == "beta2") options.beta2 = parse(value);
    if (setting == "eps") options.eps = parse(value);
    if (setting == "weight-decay") options.weight_decay = parse(value);
    if (setting == "clip") options.clip = parse(value);
    if (setting == "adam-form") options.adam_form = parse_adam_form(value).value_or(AdamForm::torch);
  }
}

}  // namespace zeroplan
