#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/type_name.h"
#include "graph/onnx/loss.h"
#include "graph/onnx/loss_form.h"

namespace zeroplan {
namespace {

using Divisor = LossForm::Divisor;

class Attachment {
 public:
  Attachment(FoldingBuilder& build, ValueId loss, const LossReading& reading) : build_(build), loss_(loss), reading_(reading) {
    const Value& value = build.graph().values[loss];
    origin_ = value.producer == kNone ? value.name : build.graph().nodes[value.producer].origin;
  }

  // One micro-batch is what it is, whether or not its samples can be told apart.
  AttachedLoss run() {
    if (reading_.mask && reading_.mask->needed()) {
      if (const std::optional<Loss> loss = attempt(reading_.mask)) return {*loss, reading_.mask->fills()};
      if (reading_.mask->weighted()) refuse_weights();
    }
    if (const std::optional<Loss> loss = attempt(nullptr)) return {*loss, false};
    if (reading_.micro_batches > 1) refuse();
    const ValueId one = build_.scalar(1, build_.dtype(loss_));
    return {{build_.reshape(loss_, {}), one, fmt::format("value of node '{}', one micro-batch", origin_)}, false};
  }

 private:
  std::optional<Loss> attempt(SampleMask* mask) {
    LossReader reader(build_, reading_.sample_axes, mask, reading_.micro_batches == 1);
    std::optional<LossForm> form = reader.read(loss_);
    conflict_ = reader.conflict();
    if (!form || (mask && !reader.masked())) return std::nullopt;
    const bool read_twice = reading_.twice.samples > 0 && (mask || reading_.micro_batches > 1);
    // One sample shows less than two.
    if (read_twice && reading_.twice.factors.size() != form->factors.size()) return std::nullopt;
    if (read_twice && !apply_sample_count(*form)) return std::nullopt;
    return finished(*form, mask);
  }

  Loss finished(const LossForm& form, SampleMask* mask) {
    const DType dtype = build_.dtype(form.sum);
    ValueId weight = form.divisor == Divisor::data ? build_.reshape(form.weight, {}) : kNone;
    if (form.divisor == Divisor::constant && form.by_samples && mask) {
      const ValueId count = mask->count(dtype);
      const double each = form.full / static_cast<double>(mask->samples());
      weight = each == 1 ? count : build_.add(OpKind::mul, {count, build_.scalar(each, dtype)});
    } else if (form.divisor == Divisor::constant) {
      weight = build_.scalar(form.full, dtype);
    }
    return {build_.reshape(form.sum, {}), weight, form.description};
  }

  // A sum that the model divides by its number of samples is a mean over them. False: some other use of that number, and one micro-batch.
  bool apply_sample_count(LossForm& form) {
    const std::vector<double>& factors = reading_.twice.factors;
    const auto all_grow_by = [&](double ratio) {
      return std::equal(form.factors.begin(), form.factors.end(), factors.begin(),
                        [&](double once, double two) { return std::abs(two - ratio * once) <= 1e-6 * std::abs(two); });
    };
    if (all_grow_by(1)) return true;
    if (form.divisor != Divisor::none || !all_grow_by(0.5)) {
      if (reading_.micro_batches == 1) return false;
      throw Error(
          fmt::format("the loss that ends in node '{}' has a factor that depends on the number of samples, so that micro-batches cannot be "
                      "combined; use a mean, or one micro-batch",
                      origin_));
    }
    form.full = static_cast<double>(reading_.twice.samples);
    form.sum = build_.add(OpKind::mul, {form.sum, build_.scalar(form.full, build_.dtype(form.sum))});
    form.divisor = Divisor::constant;
    form.by_samples = true;
    form.description += fmt::format(" over {} samples", reading_.twice.samples);
    return true;
  }

  [[noreturn]] void refuse_weights() const {
    throw Error(fmt::format(
        "--sample-weight: the loss ends in node '{}', which is neither a mean nor a sum of terms that each belong to one sample{}; "
        "leave the option out, or let the model read the weights itself",
        origin_, conflict_.empty() ? "" : ": " + conflict_));
  }

  [[noreturn]] void refuse() const {
    if (!conflict_.empty())
      throw Error(
          fmt::format("the terms of the loss have different denominators: {}, so that {} micro-batches cannot be combined; use one "
                      "micro-batch, or one denominator",
                      conflict_, reading_.micro_batches));
    throw Error(
        fmt::format("the loss ends in node '{}', which is neither a mean nor a sum over samples, so that {} micro-batches cannot be "
                    "combined; use one micro-batch",
                    origin_, reading_.micro_batches));
  }

  FoldingBuilder& build_;
  const ValueId loss_;
  const LossReading& reading_;
  std::string origin_, conflict_;
};

}  // namespace

std::vector<double> loss_factors(FoldingBuilder& build, ValueId loss, const std::map<ValueId, int>& sample_axes, bool whole) {
  const std::optional<LossForm> form = LossReader(build, sample_axes, nullptr, whole).read(loss);
  return form ? form->factors : std::vector<double>{};
}

AttachedLoss attach_loss(FoldingBuilder& build, ValueId loss, const LossReading& reading) {
  const Value& value = build.graph().values[loss];
  if (!is_floating(value.dtype) || elements(value.shape) != 1)
    throw Error(fmt::format("the loss '{}' is {} of shape {}; it must be one floating-point number", value.name, type_name(value.dtype),
                            to_string(value.shape)));
  return Attachment(build, loss, reading).run();
}

}  // namespace zeroplan
