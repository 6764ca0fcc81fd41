#include "api/training_run.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/error.h"
#include "base/patterns.h"
#include "base/random.h"

namespace zeroplan {
namespace {

// Positions in an epoch to samples; a function of (seed, epoch) alone.
void shuffle_epoch(std::vector<int64_t>& order, uint64_t seed, int64_t epoch) {
  std::iota(order.begin(), order.end(), int64_t{0});
  SplitMix64 random(seed * SplitMix64::kStep + static_cast<uint64_t>(epoch));
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.next() % i]);
}

std::vector<double> decay_multipliers(const Plan& plan, const std::vector<std::string>& patterns) {
  std::vector<double> multipliers(plan.parameters.size(), 1.0);
  Patterns no_decay("--no-decay", patterns);
  for (size_t i = 0; i < plan.parameters.size(); ++i)
    if (no_decay.matches(plan.parameters[i].parameter.name)) multipliers[i] = 0;
  if (const std::vector<std::string> problems = no_decay.unused(); !problems.empty())
    throw ErrorList("options that cannot be used:", problems);
  return multipliers;
}

struct Length {
  int64_t per_epoch;  // steps
  int64_t total;
};

Length run_length(const RunOptions& options, const DataSource& data, const Plan& plan) {
  const int64_t batch = plan.header.batch;
  const bool part = takes_part_batches(plan) && data.samples() % batch != 0;
  const int64_t per_epoch = data.samples() / batch + part;
  if (per_epoch == 0)
    throw Error(fmt::format("the data has {}, fewer than one batch of {}; lower --batch or give more data",
                            counted(data.samples(), "sample"), batch));
  if (options.steps > 0) return {per_epoch, options.steps};
  const int64_t epochs = std::max<int64_t>(options.epochs, 1);
  if (data.samples() == INT64_MAX) throw Error("synthetic data has no end; give --steps");
  return {per_epoch, per_epoch * epochs};
}

// Hugging Face's form as PyTorch's with other numbers: lr·m / (√v/c + ε/c) for the step, where c corrects v; and
// (p - s)·(1 - d) = p·(1 - d) - (1 - d)·s for the decay d behind the step s.
void use_hugging_face_form(RunScalars& s, bool decoupled) {
  s.epsilon /= std::sqrt(1 - std::pow(s.beta2, static_cast<double>(s.step)));
  if (!decoupled) return;
  const double rest = 1 - s.lr * s.weight_decay;
  s.lr *= rest;
  s.weight_decay /= rest;
}

}  // namespace

std::string adam_form_name(AdamForm form) { return form == AdamForm::torch ? "torch" : "hugging-face"; }

std::optional<AdamForm> parse_adam_form(std::string_view name) {
  for (const AdamForm form : {AdamForm::torch, AdamForm::hugging_face})
    if (name == adam_form_name(form)) return form;
  return std::nullopt;
}

RunScalars step_scalars(const RunOptions& options, const std::string& optimizer, int64_t step, int64_t steps) {
  RunScalars scalars;
  scalars.lr = learning_rate(options, step, steps);
  scalars.beta1 = options.beta1;
  scalars.beta2 = options.beta2;
  scalars.epsilon = options.eps;
  scalars.weight_decay = options.weight_decay;
  scalars.clip = options.clip;
  scalars.step = step;
  scalars.seed = options.seed;
  if (options.adam_form == AdamForm::hugging_face && optimizer != "sgd") use_hugging_face_form(scalars, optimizer == "adamw");
  return scalars;
}

void check_run_options(const RunOptions& o) {
  std::vector<std::string> problems;
  auto need = [&](bool good, const char* name, double value, const char* range) {
    if (!good) problems.push_back(fmt::format("--{} {}: must be {}", name, value, range));
  };
  need(o.steps >= 0, "steps", o.steps, "1 or more");
  need(o.epochs >= 0, "epochs", o.epochs, "1 or more");
  need(std::isfinite(o.lr) && o.lr > 0 && o.lr <= 1e6, "lr", o.lr, "above 0 and at most 1e6");
  need(o.beta1 >= 0 && o.beta1 < 1, "betas", o.beta1, "from 0 to below 1");
  need(o.beta2 >= 0 && o.beta2 < 1, "betas", o.beta2, "from 0 to below 1");
  need(std::isfinite(o.eps) && o.eps > 0 && o.eps <= 1, "eps", o.eps, "above 0 and at most 1");
  need(std::isfinite(o.weight_decay) && o.weight_decay >= 0 && o.weight_decay <= 1e3, "weight-decay", o.weight_decay, "from 0 to 1000");
  need(std::isfinite(o.clip) && o.clip >= 0 && o.clip <= 1e12, "clip", o.clip, "from 0 (off) to 1e12");
  const bool behind = o.adam_form == AdamForm::hugging_face;  // the decay is folded into the step
  need(!behind || o.lr * o.weight_decay < 1, "weight-decay", o.weight_decay, "below 1 / lr with --adam-form hugging-face");
  if (behind && o.weight_decay > 0 && !o.no_decay.empty())
    problems.push_back("--no-decay goes with --adam-form torch only, or with --weight-decay 0");
  need(o.warmup >= 0, "warmup", o.warmup, "0 or more steps");
  need(o.eval_every >= 0, "eval-every", o.eval_every, "1 or more steps");
  if (!problems.empty()) throw ErrorList("options that cannot be used:", problems);
}

double learning_rate(const RunOptions& options, int64_t step, int64_t steps) {
  if (step <= options.warmup) return options.lr * static_cast<double>(step) / static_cast<double>(options.warmup);
  if (options.schedule == Schedule::constant) return options.lr;
  const double span = static_cast<double>(std::max<int64_t>(steps - options.warmup, 1));
  const double done = static_cast<double>(step - 1 - options.warmup) / span;
  if (options.schedule == Schedule::linear) return options.lr * (1 - done);
  return options.lr * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

void check_run(const Plan& plan, const DataSource& data, const DataSource* eval_data, const RunOptions& options) {
  check_run_options(options);
  run_length(options, data, plan);
  decay_multipliers(plan, options.no_decay);
  if (!eval_data) return;
  if (!find_program(plan, Program::eval_step)) throw Error("the plan has no evaluation program; compile it with --eval");
  const int64_t least = takes_part_batches(plan) ? 1 : samples_per_micro_batch(plan);
  if (eval_data->samples() < least)
    throw Error(
        fmt::format("the evaluation data has {}, fewer than one micro-batch of {}; lower --batch, raise --micro-batches or give more data",
                    counted(eval_data->samples(), "sample"), least));
}

std::string left_out(const Plan& plan, const DataSource& data) {
  const int64_t rest = data.samples() == INT64_MAX || takes_part_batches(plan) ? 0 : data.samples() % plan.header.batch;
  if (rest == 0) return "";
  return fmt::format(
      "the last {} of each epoch are left out: they fill no batch of {}, and the loss needs full ones; the plan's report "
      "says why",
      counted(rest, "sample"), plan.header.batch);
}

RunResult run_training(Executor& executor, const DataSource& data, const DataSource* eval_data, const RunOptions& options,
                       const std::function<void(const RunEvent&)>& observe) {
  const Plan& plan = executor.plan();
  check_run(plan, data, eval_data, options);
  const int64_t batch = plan.header.batch;
  const Length length = run_length(options, data, plan);
  executor.set_decay(decay_multipliers(plan, options.no_decay));

  std::vector<int64_t> order;
  if (options.shuffle && data.samples() != INT64_MAX) order.resize(data.samples());
  RunResult result;
  for (int64_t step = 1; step <= length.total; ++step) {
    const int64_t epoch = (step - 1) / length.per_epoch, in_epoch = (step - 1) % length.per_epoch;
    if (in_epoch == 0 && !order.empty()) shuffle_epoch(order, options.seed, epoch);
    const RunScalars scalars = step_scalars(options, plan.header.optimizer, step, length.total);
    const StepReport report = executor.train_step(data, in_epoch * batch, order.empty() ? nullptr : order.data(), scalars);
    if (report.stopped) {
      result.stopped = true;
      break;
    }
    ++result.steps_done;
    result.last_loss = report.loss;
    const bool last = step == length.total;
    const bool evaluate = eval_data && (last || (options.eval_every > 0 && step % options.eval_every == 0));
    if (evaluate) result.last_eval = executor.evaluate(*eval_data);
    RunEvent event{.step = &report, .lr = learning_rate(options, step, length.total), .steps = length.total};
    if (evaluate) {
      event.eval = &*result.last_eval;
      event.eval_unused = eval_data->samples() - result.last_eval->samples;
    }
    observe(event);
  }
  return result;
}

}  // namespace zeroplan
