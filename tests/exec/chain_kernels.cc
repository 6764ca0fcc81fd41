#include <cmath>
#include <cstring>

#include "runtime/plan/report.h"
#include "tests/exec/chain_plan.h"

namespace zeroplan::test {
namespace {

void forward(const float* x, const float* scale, const float* shift, int64_t samples, int64_t width, float* y) {
  for (int64_t s = 0; s < samples; ++s)
    for (int64_t i = 0; i < width; ++i) y[s * width + i] = x[s * width + i] * scale[i] + shift[i];
}

void backward(const float* dy, const float* x, const float* scale, int64_t samples, int64_t width, float* dx, float* dscale,
              float* dshift) {
  std::memset(dscale, 0, width * sizeof(float));
  std::memset(dshift, 0, width * sizeof(float));
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t i = 0; i < width; ++i) {
      dscale[i] += dy[s * width + i] * x[s * width + i];
      dshift[i] += dy[s * width + i];
      dx[s * width + i] = dy[s * width + i] * scale[i];
    }
  }
}

double loss_of(const float* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += 0.5 * static_cast<double>(y[i]) * y[i];
  return sum;
}

void descend(float* w, const float* g, int64_t n, double lr, double weight) {
  for (int64_t i = 0; i < n; ++i) w[i] -= static_cast<float>(lr * (g[i] / weight));
}

// x, scale, shift -> y
void mul_kernel(const KernelArgs& a) {
  const auto& x = a.inputs[0];
  forward(x.as<float>(), a.inputs[1].as<float>(), a.inputs[2].as<float>(), x.dims[0], x.dims[1], a.outputs[0].as<float>());
}

// dy, x, scale -> dx, dscale, dshift
void silu_grad_kernel(const KernelArgs& a) {
  const auto& x = a.inputs[1];
  backward(a.inputs[0].as<float>(), x.as<float>(), a.inputs[2].as<float>(), x.dims[0], x.dims[1], a.outputs[0].as<float>(),
           a.outputs[1].as<float>(), a.outputs[2].as<float>());
}

int64_t metrics_count(const TensorView& metrics) { return (metrics.dims[0] - 2) / 2; }

// y, metrics -> metrics'
void record_loss_kernel(const KernelArgs& a) {
  auto* metrics = a.outputs[0].as<double>();
  metrics[a.scalars->micro_batch] = loss_of(a.inputs[0].as<float>(), a.inputs[0].elements());
  metrics[metrics_count(a.outputs[0]) + a.scalars->micro_batch] = static_cast<double>(a.inputs[0].dims[0]);
}

// dscale, dshift -> whole reduce buffer
void fill_padding_kernel(const KernelArgs& a) {
  auto* out = a.outputs[0].as<float>();
  int64_t at = 0;
  for (int i = 0; i <= a.unit->count; ++i) {
    const int64_t end = i < a.unit->count ? a.unit->parameters[i].offset : a.unit->padded_elements;
    for (; at < end; ++at) out[at] = 0;
    if (i < a.unit->count) at = end + a.unit->parameters[i].elements;
  }
}

// metrics, report -> report', metrics'
void fold_metrics_kernel(const KernelArgs& a) {
  auto* metrics = a.inputs[0].as<double>();
  auto* report = a.outputs[0].as<double>();
  const int64_t v = metrics_count(a.outputs[1]);
  double sum = 0, weight = 0;
  for (int64_t i = 0; i < v; ++i) {
    sum += metrics[i];
    weight += metrics[v + i];
  }
  report[kReportLoss] = sum / weight;
  report[kReportWeight] = weight;
  report[kReportStop] = metrics[metrics_stop(v)];
  report[kReportSkip] = report[kReportStop] > 0 || !std::isfinite(sum);
  report[kReportFinite] = std::isfinite(sum);
  report[kReportFactor] = 1;
  report[kReportSum] = sum;
  report[kReportSumWeight] = weight;
  std::memset(metrics, 0, metrics_elements(v) * sizeof(double));
}

// weights, gradient, report -> weights', gradient'
void optimizer_update_kernel(const KernelArgs& a) {
  auto* w = a.outputs[0].as<float>();
  auto* g = a.outputs[1].as<float>();
  const auto* report = a.inputs[2].as<double>();
  for (int i = 0; i < a.unit->count && report[kReportSkip] == 0; ++i) {
    const UnitExtent& p = a.unit->parameters[i];
    const int64_t low = std::max(a.unit->first, p.offset), high = std::min(a.unit->first + a.unit->covered, p.offset + p.elements);
    if (low < high) descend(w + low - a.unit->first, g + low - a.unit->first, high - low, a.scalars->lr * p.decay, report[kReportWeight]);
  }
  std::memset(g, 0, a.outputs[1].elements() * sizeof(float));
}

}  // namespace

Kernel chain_kernel(OpKind op) {
  switch (op) {
    case OpKind::mul: return mul_kernel;
    case OpKind::silu_grad: return silu_grad_kernel;
    case OpKind::record_loss: return record_loss_kernel;
    case OpKind::fill_padding: return fill_padding_kernel;
    case OpKind::fold_metrics: return fold_metrics_kernel;
    case OpKind::optimizer_update: return optimizer_update_kernel;
    default: return nullptr;
  }
}

Backend chain_backend(const Plan& plan, std::chrono::milliseconds deadline) {
  Backend backend = make_cpu_backend(plan, deadline);
  backend.kernel_of = chain_kernel;
  return backend;
}

float chain_weight(int parameter, int64_t element) {
  const float noise = static_cast<float>((element * 37 + parameter * 11) % 101) / 101.0f;
  return parameter % 2 == 0 ? 0.6f + 0.7f * noise : 0.3f * noise - 0.1f;
}

WeightReader chain_weights() {
  return [](int parameter, int64_t first, int64_t count, void* to) {
    for (int64_t i = 0; i < count; ++i) static_cast<float*>(to)[i] = chain_weight(parameter, first + i);
  };
}

float ChainData::value(int64_t sample, int64_t element) {
  return static_cast<float>((sample * 53 + element * 17) % 97) / 97.0f * std::pow(10.0f, static_cast<float>(sample % 5) - 4) - 0.02f;
}

void ChainData::read(int, int64_t first, int64_t count, const int64_t* order, const TensorView& to) const {
  for (int64_t s = 0; s < count; ++s)
    for (int64_t i = 0; i < width_; ++i) to.as<float>()[s * width_ + i] = value(order != nullptr ? order[first + s] : first + s, i);
}

DenseResult run_dense(const ChainOptions& o, int steps, double lr, bool update_last) {
  DenseResult r;
  const int64_t n = o.samples * o.width;
  for (int p = 0; p < 2 * o.units; ++p)
    for (int64_t i = 0; i < o.width; ++i) {
      if (i == 0) r.weights.emplace_back();
      r.weights[p].push_back(chain_weight(p, i));
    }
  for (int step = 0; step < steps; ++step) {
    r.gradients.assign(2 * o.units, std::vector<float>(o.width, 0.f));
    double sum = 0;
    for (int64_t v = 0; v < o.micro_batches; ++v) {
      std::vector<std::vector<float>> x(o.units + 1, std::vector<float>(n));
      for (int64_t i = 0; i < n; ++i) x[0][i] = ChainData::value((step * o.micro_batches + v) * o.samples + i / o.width, i % o.width);
      for (int u = 0; u < o.units; ++u)
        forward(x[u].data(), r.weights[2 * u].data(), r.weights[2 * u + 1].data(), o.samples, o.width, x[u + 1].data());
      sum += loss_of(x[o.units].data(), n);
      std::vector<float> dy = x[o.units], dx(n), dscale(o.width), dshift(o.width);
      for (int u = o.units - 1; u >= 0; --u) {
        backward(dy.data(), x[u].data(), r.weights[2 * u].data(), o.samples, o.width, dx.data(), dscale.data(), dshift.data());
        for (int64_t i = 0; i < o.width; ++i) r.gradients[2 * u][i] += dscale[i];
        for (int64_t i = 0; i < o.width; ++i) r.gradients[2 * u + 1][i] += dshift[i];
        dy.swap(dx);
      }
    }
    r.weight = static_cast<double>(o.micro_batches * o.samples);
    r.loss = sum / r.weight;
    if (step + 1 == steps && !update_last) break;
    for (int p = 0; p < 2 * o.units; ++p) descend(r.weights[p].data(), r.gradients[p].data(), o.width, lr, r.weight);
  }
  return r;
}

}  // namespace zeroplan::test
