// Fourier transforms as products with constant matrices, windows and mel weights as constants.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/tensor_data.h"
#include "graph/onnx/terms.h"

namespace zeroplan {
namespace {

// factor(k) · cos or sin of 2π n k / length, rows n, columns k.
template <typename Wave, typename Factor>
Term wave_matrix(FoldingBuilder& build, DType dtype, Shape size, int64_t length, Wave wave, Factor factor) {
  HostTensor matrix = build.table(dtype, size);
  for (int64_t n = 0; n < size[0]; ++n)
    for (int64_t k = 0; k < size[1]; ++k) {
      const double turn = static_cast<double>(n * k % length) / static_cast<double>(length);
      matrix.set(n * size[1] + k, factor(n) * wave(2 * std::numbers::pi * turn));
    }
  return {build, build.constant(std::move(matrix))};
}

struct Transform {
  int64_t length = 0;  // of the signal, zeros added or its end cut off
  bool inverse = false, onesided = false;
};

double cosine(double x) { return std::cos(x); }
double sine(double x) { return std::sin(x); }

// x [..., n], real and imaginary part (none: a real signal), to the two parts of the result. e^(±2πi nk/L) of the definition.
struct Complex {
  Term real;
  std::optional<Term> imaginary;
};
Complex transformed(const Complex& x, const Transform& t) {
  const int64_t used = std::min(x.real.shape().back(), t.length), bins = t.onesided ? t.length / 2 + 1 : t.length;
  const auto factor = [&](int64_t) { return t.inverse ? 1 / static_cast<double>(t.length) : 1.0; };
  FoldingBuilder& build = x.real.build();
  const Term cosines = wave_matrix(build, x.real.dtype(), {used, bins}, t.length, cosine, factor);
  const Term sines = wave_matrix(build, x.real.dtype(), {used, bins}, t.length, sine, factor) * (t.inverse ? 1.0 : -1.0);
  const Term real = part(x.real, x.real.rank() - 1, 0, used);
  if (!x.imaginary) return {matmul(real, cosines), matmul(real, sines)};
  const Term imaginary = part(*x.imaginary, real.rank() - 1, 0, used);
  return {matmul(real, cosines) - matmul(imaginary, sines), matmul(real, sines) + matmul(imaginary, cosines)};
}

// Half a spectrum to the real signal: what was left out are the conjugates, so all bins but the first and the middle one count twice.
Term real_signal(const Complex& x, int64_t length) {
  const int64_t used = std::min(x.real.shape().back(), length / 2 + 1);
  const auto factor = [&](int64_t bin) { return (bin == 0 || 2 * bin == length ? 1.0 : 2.0) / static_cast<double>(length); };
  FoldingBuilder& build = x.real.build();
  const auto turned = [&](const Term& values, auto wave) {
    return matmul(part(values, values.rank() - 1, 0, used), wave_matrix(build, values.dtype(), {used, length}, length, wave, factor));
  };
  const Term even = turned(x.real, cosine);
  return x.imaginary ? even - turned(*x.imaginary, sine) : even;
}

// x [..., 1 or 2], transformed along `axis`, which is not the last; the last one of the result has 2 elements, 1 for a real signal.
Term transform_axis(Term x, int64_t axis, const Transform& t) {
  const int64_t last = x.rank() - 1, parts = x.shape()[last];
  if (parts != 1 && parts != 2) throw Error(fmt::format("its signal of shape {} has no last axis of 1 or 2", to_string(x.shape())));
  if (axis == last) throw Error("its axis is the one of real and imaginary part");
  if (t.length < 1) throw Error(fmt::format("a length of {} is not possible", t.length));
  if (t.onesided && !t.inverse && parts == 2) throw Error("onesided needs a real signal");
  std::vector<int64_t> to_end(x.rank());  // its own inverse
  for (int64_t i = 0; i < x.rank(); ++i) to_end[i] = i == axis ? last - 1 : i == last - 1 ? axis : i;
  const Term lines = x.transpose(to_end);
  const auto one = [&](int64_t which) {
    return part(lines, last, which, 1).reshape(Shape(lines.shape().begin(), lines.shape().end() - 1));
  };
  Complex signal{one(0), std::nullopt};
  if (parts == 2) signal.imaginary = one(1);
  const auto with_parts = [](const Term& y) {
    Shape shape = y.shape();
    shape.push_back(1);
    return y.reshape(shape);
  };
  if (t.inverse && t.onesided) return with_parts(real_signal(signal, t.length)).transpose(to_end);
  const Complex y = transformed(signal, t);
  return concat({with_parts(y.real), with_parts(*y.imaginary)}, last).transpose(to_end);
}

void dft(DecodeContext& c) {
  const int64_t rank = c.rank(0);
  if (rank < 2) throw Error("its signal needs rank 2 or more");
  const int64_t axis = normalize_axis(c.has(2) ? c.integer(2, "axis") : c.attr_int("axis", -2), rank);
  Transform t{c.shape(0)[axis], c.attr_int("inverse", 0) != 0, c.attr_int("onesided", 0) != 0};
  if (t.inverse && t.onesided) t.length = 2 * (t.length - 1);
  if (c.has(1)) t.length = c.integer(1, "dft_length");
  result(c, transform_axis(term(c, 0), axis, t));
}

// Frames of the signal, which overlap where the step is shorter, times the window.
void stft(DecodeContext& c) {
  if (c.rank(0) != 3) throw Error("its signal needs rank 3");
  const Term signal = term(c, 0);
  const int64_t samples = signal.shape()[1], step = c.integer(1, "frame_step");
  const int64_t length = c.has(3) ? c.integer(3, "frame_length") : c.has(2) ? elements(c.shape(2)) : samples;
  if (step < 1 || length < 1 || length > samples)
    throw Error(fmt::format("frames of {} at a step of {} do not fit a signal of {}", length, step, samples));
  if (c.has(2) && c.shape(2) != Shape{length})
    throw Error(fmt::format("its window of shape {} does not fit frames of {}", to_string(c.shape(2)), length));
  HostTensor index = c.build.table(DType::i64, {1 + (samples - length) / step, length});
  for (int64_t i = 0; i < index.count(); ++i) index.set_int(i, i / length * step + i % length);
  const ValueId at = c.build.constant(std::move(index));
  Term frames(c.build, c.build.add(OpKind::gather, {signal.id(), at}, {{Attr::axis, int64_t{1}}}));
  if (c.has(2)) frames = frames * term(c, 2).reshape({length, 1});
  const bool onesided = c.attr_int("onesided", 1) != 0;
  if (onesided && signal.shape()[2] == 2) throw Error("onesided needs a real signal");
  result(c, transform_axis(frames, 2, {length, false, onesided}));
}

DType output_type(DecodeContext& c) { return c.dtype_of(c.attr_type("output_datatype", kOnnxFloat), "its output_datatype is"); }

// a0 - a1 cos x + a2 cos 2x over one period.
void cosine_window(DecodeContext& c, double a0, double a1, double a2) {
  const int64_t size = c.integer(0, "size");
  if (size < 0) throw Error(fmt::format("a window of {} elements is not possible", size));
  const int64_t period = c.attr_int("periodic", 1) != 0 ? size : size - 1;
  HostTensor window = c.build.table(output_type(c), {size});
  for (int64_t n = 0; n < size; ++n) {
    const double x = period == 0 ? std::numbers::pi : 2 * std::numbers::pi * static_cast<double>(n) / static_cast<double>(period);
    window.set(n, a0 - a1 * std::cos(x) + a2 * std::cos(2 * x));
  }
  c.out(0, c.build.constant(std::move(window)));
}

void hann_window(DecodeContext& c) { cosine_window(c, 0.5, 0.5, 0); }
void hamming_window(DecodeContext& c) { cosine_window(c, 25.0 / 46, 21.0 / 46, 0); }
void blackman_window(DecodeContext& c) { cosine_window(c, 0.42, 0.5, 0.08); }

// The bin of the spectrum at each of the mel steps, as the operator's definition rounds them.
std::vector<int64_t> mel_edges(DecodeContext& c, int64_t bands, int64_t length) {
  const auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double rate = c.number(2, "sample_rate"), low = to_mel(c.number(3, "lower_edge_hertz")),
               high = to_mel(c.number(4, "upper_edge_hertz"));
  const double step = (high - low) / static_cast<double>(bands + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (low + static_cast<double>(i) * step) / 2595) - 1);
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / rate);
    if (!(bin >= 0 && bin <= static_cast<double>(length / 2))) throw Error("its band edges lie outside the spectrum");
    edges.push_back(static_cast<int64_t>(bin));
  }
  return edges;
}

// A triangle for each band: from one edge up to the next and down to the one behind it.
void mel_weight_matrix(DecodeContext& c) {
  const int64_t bands = c.integer(0, "num_mel_bins"), length = c.integer(1, "dft_length");
  if (bands < 1 || length < 1) throw Error(fmt::format("{} bands of a spectrum of {} are not possible", bands, length));
  HostTensor weights = c.build.table(output_type(c), {length / 2 + 1, bands});
  const std::vector<int64_t> edges = mel_edges(c, bands, length);
  for (int64_t band = 0; band < bands; ++band) {
    const int64_t low = edges[band], middle = edges[band + 1], high = edges[band + 2];
    const auto set = [&](int64_t bin, int64_t part, int64_t whole) {
      weights.set(bin * bands + band, whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole));
    };
    for (int64_t bin = low; bin <= middle; ++bin) set(bin, bin - low, middle - low);
    for (int64_t bin = middle; bin < high; ++bin) set(bin, high - bin, high - middle);
  }
  c.out(0, c.build.constant(std::move(weights)));
}

}  // namespace

void add_signal_decoders(DecoderTable& t) {
  t["DFT"] = {dft, gradient_to({0})};
  t["STFT"] = {stft, gradient_to({0})};
  t["HannWindow"] = {hann_window, no_gradient()};
  t["HammingWindow"] = {hamming_window, no_gradient()};
  t["BlackmanWindow"] = {blackman_window, no_gradient()};
  t["MelWeightMatrix"] = {mel_weight_matrix, no_gradient()};
}

}  // namespace zeroplan
