// batch_norm and batch_norm_grad: sums over chunks of each channel, one block per channel that joins them, then the elements.
#include "kernels/cuda/channels.cuh"
#include "kernels/cuda/pack.cuh"

namespace zeroplan::kernels_cuda {

namespace {

// Parts of the workspace: partial [2, chunks, channels]; factors [3, channels] of the type that elements are computed in.
template <typename T>
struct Scratch {
  double* partial;
  WideOf<T>* factors;
  Scratch(const KernelArgs& args, const Channels& s)
      : partial(static_cast<double*>(args.workspace)),
        factors(
            reinterpret_cast<WideOf<T>*>(static_cast<std::byte*>(args.workspace) + cuda_batch_norm_partial_bytes(s.channels, s.chunks))) {}
};

// x [batch, channels, plane] → the mean of each chunk, and the sum of squared distances from it.
template <typename T>
__global__ void measure_chunks(const Channels s, const T* x, double* partial) {
  const ChannelShare share(s);
  WideOf<T> items[kChannelShare];
  double sum = 0;
#pragma unroll
  for (int k = 0; k < kChannelShare; ++k) {
    const int64_t i = share.first + int64_t{k} * s.lanes;
    items[k] = i < share.end ? static_cast<WideOf<T>>(widen(x[s.offset(share.channel, i)])) : WideOf<T>(0);
    sum += static_cast<double>(items[k]);
  }
  const int64_t count = share.end - (share.first - share.lane);
  const double mean = sum_lanes(sum, share.lane, s.lanes, share.apart) / static_cast<double>(count > 0 ? count : 1);
  double squares = 0;
#pragma unroll
  for (int k = 0; k < kChannelShare; ++k) {
    const double distance = static_cast<double>(items[k]) - mean;
    if (share.first + int64_t{k} * s.lanes < share.end) squares += distance * distance;
  }
  squares = sum_lanes(squares, share.lane, s.lanes, share.apart);
  if (share.lane > 0 || share.channel >= s.channels) return;
  partial[share.chunk * s.channels + share.channel] = mean;
  partial[(s.chunks + share.chunk) * s.channels + share.channel] = squares;
}

// T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979: the squares
// of all are those of the parts and of the parts' means, by their counts. A block per channel; factors get gamma / √(variance + ε).
template <typename T>
__global__ void join_measures(const Channels s, double epsilon, const double* partial, const T* gamma, WideOf<T>* means,
                              WideOf<T>* variances, WideOf<T>* factors) {
  const int64_t channel = blockIdx.x, chunk = int64_t{s.lanes} * kChannelShare, all = s.batch * s.plane;
  const int thread = static_cast<int>(threadIdx.x);
  const auto size = [&](int64_t c) { return static_cast<double>(c + 1 < s.chunks ? chunk : all - c * chunk); };
  double sum = 0, squares = 0;
  for (int64_t c = thread; c < s.chunks; c += kBlock) sum += partial[c * s.channels + channel] * size(c);
  const double mean = sum_lanes(sum, thread, kBlock, 1) / static_cast<double>(all);
  for (int64_t c = thread; c < s.chunks; c += kBlock) {
    const double distance = partial[c * s.channels + channel] - mean;
    squares += partial[(s.chunks + c) * s.channels + channel] + distance * distance * size(c);
  }
  const double variance = sum_lanes(squares, thread, kBlock, 1) / static_cast<double>(all);
  if (thread > 0) return;
  means[channel] = static_cast<WideOf<T>>(mean);
  variances[channel] = static_cast<WideOf<T>>(variance);
  factors[channel] = static_cast<WideOf<T>>(static_cast<double>(widen(gamma[channel])) / sqrt(variance + epsilon));
}

// n: groups of kItems elements of x, none across channels. y = (x - mean) · factor + beta; y may be x.
template <typename T, int kItems>
__global__ void normalise(int64_t n, const Channels s, const WideOf<T>* means, const WideOf<T>* factors, const T* beta, const T* x, T* y) {
  for_items(n, [&](int64_t group) {
    const int64_t channel = s.channel_of(group * kItems);
    const WideOf<T> mean = means[channel], factor = factors[channel], shift = widen(beta[channel]);
    Neighbours<T, kItems> items = reinterpret_cast<const Neighbours<T, kItems>*>(x)[group];
    for (T& item : items.item) item = narrow<T>((widen(item) - mean) * factor + shift);
    reinterpret_cast<Neighbours<T, kItems>*>(y)[group] = items;
  });
}

// dy, x [batch, channels, plane] → sums of dy and of dy · (x - mean) in each chunk.
template <typename T>
__global__ void sum_chunks(const Channels s, const T* dy, const T* x, const WideOf<T>* means, double* partial) {
  const ChannelShare share(s);
  const WideOf<T> mean = share.channel < s.channels ? means[share.channel] : WideOf<T>(0);
  double sum = 0, dot = 0;
#pragma unroll
  for (int k = 0; k < kChannelShare; ++k) {
    const int64_t i = share.first + int64_t{k} * s.lanes;
    if (i >= share.end) continue;
    const int64_t at = s.offset(share.channel, i);
    const WideOf<T> g = widen(dy[at]);
    sum += static_cast<double>(g);
    dot += static_cast<double>(g * (widen(x[at]) - mean));
  }
  sum = sum_lanes(sum, share.lane, s.lanes, share.apart);
  dot = sum_lanes(dot, share.lane, s.lanes, share.apart);
  if (share.lane > 0 || share.channel >= s.channels) return;
  partial[share.chunk * s.channels + share.channel] = sum;
  partial[(s.chunks + share.chunk) * s.channels + share.channel] = dot;
}

// A block per channel. factors [3, channels]: gamma · rstd, mean(dy), rstd² · mean(dy · (x - mean)).
template <typename T>
__global__ void join_sums(const Channels s, double epsilon, const double* partial, const T* gamma, const WideOf<T>* variances,
                          WideOf<T>* factors, T* dgamma, T* dbeta) {
  const int64_t channel = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x);
  double sum = 0, dot = 0;
  for (int64_t c = thread; c < s.chunks; c += kBlock) {
    sum += partial[c * s.channels + channel];
    dot += partial[(s.chunks + c) * s.channels + channel];
  }
  sum = sum_lanes(sum, thread, kBlock, 1);
  dot = sum_lanes(dot, thread, kBlock, 1);
  if (thread > 0) return;
  const double rstd = 1 / sqrt(static_cast<double>(variances[channel]) + epsilon), count = static_cast<double>(s.batch * s.plane);
  factors[channel] = static_cast<WideOf<T>>(static_cast<double>(widen(gamma[channel])) * rstd);
  factors[s.channels + channel] = static_cast<WideOf<T>>(sum / count);
  factors[2 * s.channels + channel] = static_cast<WideOf<T>>(rstd * rstd * dot / count);
  dgamma[channel] = narrow<T>(dot * rstd);
  dbeta[channel] = narrow<T>(sum);
}

// With x̂ = (x - mean)·rstd: dx = gamma·rstd·(dy - mean(dy) - x̂·mean(dy·x̂)). dx may be dy.
template <typename T, int kItems>
__global__ void normalise_back(int64_t n, const Channels s, const WideOf<T>* means, const WideOf<T>* factors, const T* dy, const T* x,
                               T* dx) {
  for_items(n, [&](int64_t group) {
    const int64_t channel = s.channel_of(group * kItems);
    const WideOf<T> mean = means[channel], factor = factors[channel], even = factors[s.channels + channel],
                    slope = factors[2 * s.channels + channel];
    Neighbours<T, kItems> gradients = reinterpret_cast<const Neighbours<T, kItems>*>(dy)[group];
    const Neighbours<T, kItems> items = reinterpret_cast<const Neighbours<T, kItems>*>(x)[group];
    for (int k = 0; k < kItems; ++k)
      gradients.item[k] = narrow<T>(factor * (widen(gradients.item[k]) - even - (widen(items.item[k]) - mean) * slope));
    reinterpret_cast<Neighbours<T, kItems>*>(dx)[group] = gradients;
  });
}

unsigned grid(int64_t blocks) { return static_cast<unsigned>(blocks); }

template <typename T>
void run_forward(const KernelArgs& args) {
  using W = WideOf<T>;
  const Channels s(args.inputs[0]);
  const Scratch<T> scratch(args, s);
  const T *x = args.inputs[0].as<T>(), *gamma = args.inputs[1].as<T>(), *beta = args.inputs[2].as<T>();
  T* y = args.outputs[0].as<T>();
  launch(args, grid(s.blocks()), kBlock, 0, measure_chunks<T>, s, x, scratch.partial);
  launch(args, grid(s.channels), kBlock, 0, join_measures<T>, s, args.attributes->get_double(Attr::epsilon),
         static_cast<const double*>(scratch.partial), gamma, args.outputs[1].as<W>(), args.outputs[2].as<W>(), scratch.factors);
  const W *means = args.outputs[1].as<W>(), *factors = scratch.factors;
  const int64_t n = args.inputs[0].elements();
  if (s.plane % Pack<T>::kItems == 0 && aligned(x) && aligned(y))
    launch_over(args, n / Pack<T>::kItems, normalise<T, Pack<T>::kItems>, s, means, factors, beta, x, y);
  else
    launch_over(args, n, normalise<T, 1>, s, means, factors, beta, x, y);
}

template <typename T>
void run_backward(const KernelArgs& args) {
  using W = WideOf<T>;
  const Channels s(args.inputs[0]);
  const Scratch<T> scratch(args, s);
  const T *dy = args.inputs[0].as<T>(), *x = args.inputs[1].as<T>(), *gamma = args.inputs[2].as<T>();
  const W *means = args.inputs[3].as<W>(), *variances = args.inputs[4].as<W>(), *factors = scratch.factors;
  T* dx = args.outputs[0].as<T>();
  launch(args, grid(s.blocks()), kBlock, 0, sum_chunks<T>, s, dy, x, means, scratch.partial);
  launch(args, grid(s.channels), kBlock, 0, join_sums<T>, s, args.attributes->get_double(Attr::epsilon),
         static_cast<const double*>(scratch.partial), gamma, variances, scratch.factors, args.outputs[1].as<T>(), args.outputs[2].as<T>());
  const int64_t n = args.inputs[0].elements();
  if (s.plane % Pack<T>::kItems == 0 && aligned(dy) && aligned(x) && aligned(dx))
    launch_over(args, n / Pack<T>::kItems, normalise_back<T, Pack<T>::kItems>, s, means, factors, dy, x, dx);
  else
    launch_over(args, n, normalise_back<T, 1>, s, means, factors, dy, x, dx);
}

}  // namespace

// x, gamma, beta → y, mean, variance
void batch_norm_kernel(const KernelArgs& args) {
  visit_floating(args.inputs[0].dtype, [&](auto zero) { run_forward<decltype(zero)>(args); });
}

// dy, x, gamma, mean, variance → dx, dgamma, dbeta
void batch_norm_grad_kernel(const KernelArgs& args) {
  visit_floating(args.inputs[0].dtype, [&](auto zero) { run_backward<decltype(zero)>(args); });
}

}  // namespace zeroplan::kernels_cuda
