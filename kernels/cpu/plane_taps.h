#pragma once
// A plane copied between zeros, from which any tap of any result can be read: results are summed up in registers, all taps of some rows at
// a time, in the order of the taps.
#include <algorithm>
#include <cstring>

#include "graph/ops/conv_shape.h"
#include "kernels/cpu/rows.h"
#include "kernels/kernel.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// A kernel's view of its workspace, and the windows as offsets in a padded plane.
template <typename T>
class PlaneTaps {
 public:
  PlaneTaps(const KernelArgs& args, const Windows& w, int64_t sums)
      : w_(w),
        plane_(w),
        workspace_(plane_workspace(w, sums, args.threads, sizeof(T))),
        base_(static_cast<char*>(args.workspace)),
        offsets_(reinterpret_cast<int64_t*>(base_)) {
    int64_t tap = 0;
    for (int64_t t = 0; t < w.axis[0].kernel; ++t)
      for (int64_t u = 0; u < w.axis[1].kernel; ++u)
        for (int64_t v = 0; v < w.axis[2].kernel; ++v)
          offsets_[tap++] =
              (t * w.axis[0].dilation * plane_.rows[1] + u * w.axis[1].dilation) * plane_.row() + plane_.column(v * w.axis[2].dilation);
  }
  int64_t taps() const { return w_.taps(); }
  int64_t* offsets() const { return offsets_; }
  T* plane(int thread) const { return reinterpret_cast<T*>(base_ + workspace_.plane + thread * workspace_.thread); }
  T* sums(int thread) const { return reinterpret_cast<T*>(base_ + workspace_.plane + thread * workspace_.thread + workspace_.sums); }

  void fill(const T* from, T* to) const {
    const WindowAxis &a = w_.axis[0], &b = w_.axis[1];
    for (int64_t i = 0; i < plane_.rows[0]; ++i)
      for (int64_t j = 0; j < plane_.rows[1]; ++j, to += plane_.row()) {
        std::memset(to, 0, static_cast<size_t>(plane_.row()) * sizeof(T));
        const int64_t p = i - a.before, q = j - b.before;
        if (p >= 0 && p < a.in && q >= 0 && q < b.in) fill_row(from + (p * b.in + q) * w_.axis[2].in, to);
      }
  }

  // fn(element of the plane that tap 0 of a result reads, number of that result) for the first of each row of results.
  template <typename Fn>
  void for_rows(const T* plane, const Fn& fn) const {
    const WindowAxis &a = w_.axis[0], &b = w_.axis[1];
    for (int64_t i = 0; i < a.out; ++i)
      for (int64_t j = 0; j < b.out; ++j)
        fn(plane + (i * a.stride * plane_.rows[1] + j * b.stride) * plane_.row(), (i * b.out + j) * w_.axis[2].out);
  }

  // to = Σ over taps of weights[tap] · what the tap reads, or that more.
  void products(const T* plane, const T* weights, T* to, bool more) const {
    const WindowAxis &a = w_.axis[0], &b = w_.axis[1];
    const int64_t columns = w_.axis[2].out, step = b.stride * plane_.row();
    for (int64_t i = 0; i < a.out; ++i) {
      const T* from = plane + i * a.stride * plane_.rows[1] * plane_.row();
      for (int64_t k = 0; k < columns; k += kLanes) {
        int64_t j = 0;
        for (; j + kRows <= b.out; j += kRows) block<kRows>(from + j * step + k, step, weights, to + j * columns + k, columns - k, more);
        for (; j < b.out; ++j) block<1>(from + j * step + k, step, weights, to + j * columns + k, columns - k, more);
      }
      to += b.out * columns;
    }
  }

 private:
  static constexpr int kRows = sizeof(T) * kLanes <= 2 * kRegisterBytes ? 4 : 2;

  void fill_row(const T* from, T* to) const {
    const WindowAxis& c = w_.axis[2];
    for (int64_t phase = 0; phase < plane_.phases; ++phase, to += plane_.span) {
      const int64_t skipped = std::max<int64_t>(0, (c.before - phase + c.stride - 1) / c.stride),
                    first = skipped * c.stride + phase - c.before;
      const int64_t count = std::min(plane_.span - skipped, (c.in - first + c.stride - 1) / c.stride);
      if (count <= 0) continue;
      if (c.stride == 1)
        std::memcpy(to + skipped, from + first, static_cast<size_t>(count) * sizeof(T));
      else
        for (int64_t i = 0; i < count; ++i) to[skipped + i] = from[first + i * c.stride];
    }
  }

  template <int R>
  ZP_INLINE void block(const T* from, int64_t step, const T* weights, T* to, int64_t left, bool more) const {
    Vec<T> sum[R];
    const int64_t columns = w_.axis[2].out;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      sum[r] = Vec<T>(T(0));
      if (more) sum[r] = left >= kLanes ? Vec<T>::load(to + r * columns) : Vec<T>::load_part(to + r * columns, left);
    }
    for (int64_t tap = 0; tap < w_.taps(); ++tap) {
      const Vec<T> weight(weights[tap]);
      const T* at = from + offsets_[tap];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sum[r] += weight * Vec<T>::load(at + r * step);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      if (left >= kLanes)
        sum[r].store(to + r * columns);
      else
        sum[r].store_part(to + r * columns, left);
    }
  }

  const Windows& w_;
  const PaddedPlane plane_;
  const PlaneWorkspace workspace_;
  char* base_;
  int64_t* offsets_;
};

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
