#include "passes/lower/plan_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "passes/lower/cost_model.h"

namespace zeroplan {
namespace {

std::string_view optimizer_name(OptimizerKind optimizer) {
  constexpr std::string_view kNames[] = {"adamw", "adam", "sgd"};
  return kNames[static_cast<size_t>(optimizer)];
}

template <typename Map>
std::string pairs_text(const Map& map) {
  std::string text;
  for (const auto& [name, value] : map) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

std::vector<std::pair<std::string, std::string>> option_values(const CompileOptions& o) {
  const auto list = [](const std::vector<std::string>& patterns) { return fmt::format("{}", fmt::join(patterns, " ")); };
  return {{"ranks", fmt::format("{}", o.ranks)},
          {"batch", fmt::format("{}", o.batch)},
          {"micro-batches", fmt::format("{}", o.micro_batches)},
          {"stage", fmt::format("{}", o.stage)},
          {"dim", pairs_text(o.dims)},
          {"sample-axis", pairs_text(o.sample_axes)},
          {"loss", o.loss},
          {"optimizer", std::string(optimizer_name(o.optimizer))},
          {"momentum", fmt::format("{}", o.momentum)},
          {"precision", std::string(dtype_name(o.precision))},
          {"unit", list(o.unit_patterns)},
          {"unit-bytes", o.unit_bytes > 0 ? fmt::format("{}", o.unit_bytes) : "auto"},
          {"prefetch", fmt::format("{}", o.prefetch)},
          {"reduce-bytes", o.reduce_bytes > 0 ? fmt::format("{}", o.reduce_bytes) : "no limit"},
          {"train", list(o.train)},
          {"freeze", list(o.freeze)},
          {"tie", list(o.tie)},
          {"untie", list(o.untie)},
          {"threads", fmt::format("{}", o.threads)},
          {"eval", o.eval ? "yes" : "no"}};
}

}  // namespace

PlanHeader plan_header(const CompileOptions& options, const Loss& loss, int max_live_units) {
  PlanHeader header;
  header.ranks = options.ranks;
  header.batch = options.batch;
  header.micro_batches = options.micro_batches;
  header.stage = options.stage;
  header.threads = options.threads;
  header.precision = options.precision;
  header.optimizer = std::string(optimizer_name(options.optimizer));
  header.momentum = options.momentum;
  header.prefetch = options.prefetch;
  header.max_live_units = max_live_units;
  header.loss = loss.description;
  header.cost_source = kCostSource;
  header.options = option_values(options);
  return header;
}

}  // namespace zeroplan
