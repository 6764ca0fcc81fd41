#include "api/batching.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.h"
#include "base/error.h"

namespace zeroplan {

void resolve_batch(CompileOptions& options, int64_t baked_batch) {
  int64_t& batch = options.batch;
  int64_t& micro_batches = options.micro_batches;
  if (micro_batches == 0) {
    const bool from_baked = baked_batch > 0 && batch > 0 && batch % baked_batch == 0;
    micro_batches = from_baked ? batch / baked_batch : options.ranks;
  }
  if (batch == 0) batch = micro_batches * (baked_batch > 0 ? baked_batch : 1);
  if (batch % micro_batches != 0)
    throw Error(fmt::format("--batch {} is not a multiple of the {}; choose a --batch or a --micro-batches that divides it", batch,
                            counted(micro_batches, "micro-batch")));
  if (options.sync_bn && micro_batches != options.ranks)
    throw Error(
        fmt::format("--sync-bn takes the statistics of one round, in which each of the {} runs one micro-batch, but there are {}; "
                    "use --micro-batches {}",
                    counted(options.ranks, "rank"), counted(micro_batches, "micro-batch"), options.ranks));
  const int64_t samples = batch / micro_batches;
  if (baked_batch > 0 && samples != baked_batch)
    throw Error(
        fmt::format("the model has a fixed batch of {}, but --batch {} in {} gives {} each; use --micro-batches {}", baked_batch, batch,
                    counted(micro_batches, "micro-batch"), counted(samples, "sample"),
                    batch % baked_batch == 0 ? fmt::to_string(batch / baked_batch) : fmt::format("V and --batch {}·V", baked_batch)));
}

std::vector<std::pair<std::string, std::string>> effective_options(const CompileOptions& o) {
  std::vector<std::string> dims, axes, pairs;
  for (const auto& [name, size] : o.dims) dims.push_back(fmt::format("{}={}", name, size));
  for (const auto& [name, axis] : o.sample_axes) axes.push_back(fmt::format("{}={}", name, axis < 0 ? "none" : fmt::to_string(axis)));
  std::vector<std::string> bound;
  for (const auto& [name, value] : o.bind) bound.push_back(name);
  for (const auto& [input, output] : o.loss_map) pairs.push_back(fmt::format("{}={}", input, output));
  auto joined = [](const std::vector<std::string>& list) { return fmt::format("{}", fmt::join(list, " ")); };
  return {{"ranks", fmt::to_string(o.ranks)},
          {"batch", fmt::to_string(o.batch)},
          {"micro-batches", fmt::to_string(o.micro_batches)},
          {"stage", fmt::to_string(o.stage)},
          {"dim", joined(dims)},
          {"sample-axis", joined(axes)},
          {"loss", o.loss},
          {"loss-model", o.loss_model},
          {"loss-map", joined(pairs)},
          {"sample-weight", o.sample_weight},
          {"optimizer", std::string(optimizer_name(o.optimizer))},
          {"momentum", fmt::to_string(o.momentum)},
          {"precision", std::string(precision_name(o.precision))},
          {"reduce-dtype", std::string(precision_name(o.wire_dtype()))},
          {"unit", joined(o.unit_patterns)},
          {"unit-bytes", o.unit_bytes == 0 ? "auto" : fmt::to_string(o.unit_bytes)},
          {"prefetch", fmt::to_string(o.prefetch)},
          {"reduce-bytes", o.reduce_bytes == 0 ? "none" : fmt::to_string(o.reduce_bytes)},
          {"train", joined(o.train)},
          {"freeze", joined(o.freeze)},
          {"tie", joined(o.tie)},
          {"untie", joined(o.untie)},
          {"train-bn", joined(o.train_bn)},
          {"eval-bn", joined(o.eval_bn)},
          {"sync-bn", o.sync_bn ? "yes" : "no"},
          {"device", std::string(device_kind_name(o.device))},
          {"reduce", std::string(reduce_mode_name(o.reduce))},
          {"threads", fmt::to_string(o.threads)},
          {"eval", o.eval ? "yes" : "no"},
          {"bind", joined(bound)},
          {"outputs", joined(o.outputs)}};
}

void check_options(const CompileOptions& o) {
  std::vector<std::string> problems;
  auto range = [&](const char* name, auto value, auto low, auto high) {
    if (value < low || value > high) problems.push_back(fmt::format("--{} {}: must be from {} to {}", name, value, low, high));
  };
  range("ranks", o.ranks, 1, 65536);
  if (o.batch != 0) range("batch", o.batch, int64_t{1}, int64_t{1} << 40);
  if (o.micro_batches != 0) range("micro-batches", o.micro_batches, int64_t{1}, int64_t{1} << 20);
  range("stage", o.stage, 0, 3);
  range("momentum", o.momentum, 0.0, 0.999999);
  range("unit-bytes", o.unit_bytes, int64_t{0}, int64_t{1} << 50);
  range("prefetch", o.prefetch, 0, 64);
  range("reduce-bytes", o.reduce_bytes, int64_t{0}, int64_t{1} << 50);
  range("threads", o.threads, 1, 1024);
  for (const auto& [name, size] : o.dims) range(fmt::format("dim {} =", name).c_str(), size, int64_t{1}, int64_t{1} << 40);
  if (!o.loss.empty() && !o.loss_model.empty()) problems.push_back("--loss and --loss-model state two losses; give one of them");
  if (!o.loss_map.empty() && o.loss_model.empty()) problems.push_back("--loss-map goes with --loss-model");
  if (o.momentum != 0 && o.optimizer != OptimizerKind::sgd)
    problems.push_back("--momentum goes with --optimizer sgd only; adamw and adam take --betas at run");
  if (o.reduce == ReduceMode::fast && o.device == DeviceKind::cpu)
    problems.push_back("--reduce fast leaves the order of sums to NCCL, which adds up on GPUs alone: it goes with --device cuda");
  if (o.precision == DType::f64 && o.wire_dtype() != DType::f64)
    problems.push_back(fmt::format("--reduce-dtype {} goes with gradients that are summed in float32, not with --precision fp64",
                                   precision_name(o.wire_dtype())));
  if (!problems.empty()) throw ErrorList("options that cannot be used:", problems);
}

}  // namespace zeroplan
