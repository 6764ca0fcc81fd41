#pragma once
// A tensor [batch, channels, plane] seen channel by channel, and sums over channels in fixed chunks.
#include "graph/ops/cuda_channel_chunks.h"
#include "kernels/cuda/divider.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/storage.cuh"

namespace zeroplan::kernels_cuda {

static_assert(kChannelThreads == kBlock);
inline constexpr int kChannelShare = static_cast<int>(kChannelItems);

struct Channels {
  int64_t batch, channels, plane, chunks;
  int lanes;
  bool small;        // all counts below 2^31
  Divider by_plane;  // where small

  explicit Channels(const TensorView& x) : batch(x.dims[0]), channels(x.dims[1]), plane(x.elements() / (batch * channels)) {
    const ChannelChunks c = channel_chunks(batch, channels, plane);
    chunks = c.chunks;
    lanes = static_cast<int>(c.lanes);
    small = x.elements() < INT64_C(1) << 31;
    if (small) by_plane = Divider(static_cast<uint32_t>(plane));
  }
  int64_t count() const { return batch * plane; }
  int64_t blocks() const { return (channels + kBlock / lanes - 1) / (kBlock / lanes) * chunks; }

  __device__ int64_t planes_before(int64_t i) const { return small ? by_plane.quotient(static_cast<uint32_t>(i)) : i / plane; }
  // Of element i of the tensor.
  __device__ int64_t channel_of(int64_t i) const { return planes_before(i) % channels; }
  // Of element i of the channel's own.
  __device__ int64_t offset(int64_t channel, int64_t i) const {
    const int64_t n = planes_before(i);
    return (n * channels + channel) * plane + (i - n * plane);
  }
};

// What a thread has to do: elements first, first + lanes, … before end, of a channel (none where `channel` is past the last).
struct ChannelShare {
  int64_t channel, chunk, first, end;
  int lane, apart;  // apart: threads between neighbouring lanes

  __device__ explicit ChannelShare(const Channels& s) {
    const int thread = static_cast<int>(threadIdx.x), results = kBlock / s.lanes;
    const bool across = s.plane == 1;  // neighbouring threads on neighbouring channels
    lane = across ? thread / results : thread % s.lanes;
    apart = across ? results : 1;
    channel = blockIdx.x / s.chunks * results + (across ? thread % results : thread / s.lanes);
    chunk = blockIdx.x % s.chunks;
    const int64_t all = s.batch * s.plane, begin = chunk * s.lanes * kChannelShare;
    first = begin + lane;
    end = begin + int64_t{s.lanes} * kChannelShare < all ? begin + int64_t{s.lanes} * kChannelShare : all;
    if (channel >= s.channels) end = first;
  }
};

// The sum over the lanes of a channel, for all of them. All threads of the block take part.
__device__ inline double sum_lanes(double own, int lane, int lanes, int apart) {
  __shared__ double sums[kBlock];
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();
  sums[thread] = own;
  for (int half = lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) sums[thread] += sums[thread + half * apart];
  }
  __syncthreads();
  return sums[thread - lane * apart];
}

}  // namespace zeroplan::kernels_cuda
