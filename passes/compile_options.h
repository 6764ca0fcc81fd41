#pragma once
// Options of the compiler, one field per command-line option of `zeroplan compile` (same names).
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/device_kind.h"
#include "base/dtype.h"
#include "base/host_tensor.h"
#include "base/reduce_mode.h"

namespace zeroplan {

enum class OptimizerKind : uint8_t { adamw, adam, sgd };
// The option's and the attribute's word.
std::string_view optimizer_name(OptimizerKind kind);
std::optional<OptimizerKind> parse_optimizer(std::string_view name);

// The words of --precision and --reduce-dtype: fp32, fp64, fp16, bf16.
std::string_view precision_name(DType dtype);
std::optional<DType> parse_precision(std::string_view name);

struct CompileOptions {
  int ranks = 1;
  int64_t batch = 0;          // samples per optimizer step; 0: V × the batch that the graph bakes in, else 1 per micro-batch
  int64_t micro_batches = 0;  // 0: default (ranks, or batch / baked batch)
  int stage = 3;
  std::map<std::string, int64_t> dims;          // --dim NAME=N
  std::map<std::string, int> sample_axes;       // --sample-axis INPUT=AXIS, -1 for none
  std::string loss;                             // --loss SPEC; empty: output of the graph
  std::string loss_model;                       // --loss-model FILE
  std::map<std::string, std::string> loss_map;  // --loss-map INPUT=OUTPUT
  std::string sample_weight;                    // --sample-weight INPUT
  OptimizerKind optimizer = OptimizerKind::adamw;
  double momentum = 0;
  bool model_optimizer = false;       // the optimizer that the model states, where it does, goes before the two above
  DType precision = DType::f32;       // f16, bf16: values of the model; masters, moments and gradient sums are f32
  std::optional<DType> reduce_dtype;  // --reduce-dtype: gradients on the wire; default what they are summed in
  std::vector<std::string> unit_patterns;
  int64_t unit_bytes = 0;  // 0: auto
  int prefetch = 1;
  int64_t reduce_bytes = 0;                            // 0: no limit
  std::vector<std::string> train, freeze, tie, untie;  // patterns
  std::vector<std::string> train_bn, eval_bn;          // patterns of batch normalizations: statistics of the batch, or the running ones
  bool sync_bn = false;                                // statistics of all ranks' micro-batches together
  DeviceKind device = DeviceKind::cpu;                 // that the plan is made for
  ReduceMode reduce = ReduceMode::ordered;             // fast: on GPUs
  int threads = 1;                                     // per rank
  bool eval = false;                                   // also build the eval programs
  std::map<std::string, HostTensor> dropout_masks;     // as ImportOptions has them; no option of the tools
  std::map<std::string, HostTensor> bind;              // --bind INPUT=VALUES: inputs that are constants
  std::vector<std::string> outputs;                    // not empty: a forward plan for these outputs of the model; nothing is trained
  bool inference = false;                              // Dropout and BatchNormalization in inference mode, whatever the file states

  // What gradients are summed in, and what masters and moments are.
  DType wide_precision() const { return wide_dtype(precision); }
  DType wire_dtype(DType weights) const { return reduce_dtype.value_or(wide_dtype(weights)); }  // of gradients of such weights
  DType wire_dtype() const { return wire_dtype(precision); }

  bool forward_only() const { return !outputs.empty(); }

  int64_t samples_per_micro_batch() const { return batch / micro_batches; }
  bool one_round() const { return micro_batches <= ranks; }  // per optimizer step: no rank runs a second micro-batch
};

}  // namespace zeroplan
