#pragma once
// Convolutions by cuDNN: one or two spatial axes, padded alike on both sides. The algorithm of each problem is asked for once.
#include <compare>
#include <map>
#include <memory>

#include "base/dtype.h"
#include "graph/ir/node.h"
#include "kernels/cuda/errors.h"

namespace zeroplan {

// x [batch, groups · in_channels, in], w [groups · out_channels, in_channels, kernel], y [batch, groups · out_channels, out]; `pass` says
// which of them is the result. Sums are made in float32 of halves, else in dtype.
struct ConvProblem {
  OpKind pass{};
  DType dtype{};
  int batch = 1, groups = 1, in_channels = 1, out_channels = 1;
  struct Axis {
    int in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;
    auto operator<=>(const Axis&) const = default;
  };
  Axis axis[2];
  int64_t workspace_bytes = 0;  // the most that the algorithm may use
  auto operator<=>(const ConvProblem&) const = default;
};

class Convolutions {
 public:
  explicit Convolutions(cudnnHandle_t handle);
  ~Convolutions();
  Convolutions(const Convolutions&) = delete;

  // Has the library an algorithm that always gives the same bits within the workspace?
  bool takes(const ConvProblem& problem);
  // Enqueues the convolution on the handle's stream. false, and nothing is enqueued, where the library does not take it.
  bool run(const ConvProblem& problem, const void* x, const void* w, const void* y, void* workspace);

 private:
  struct Prepared;
  Prepared& prepared(const ConvProblem& problem);
  cudnnHandle_t handle_;
  std::map<ConvProblem, std::unique_ptr<Prepared>> prepared_;
};

}  // namespace zeroplan
