#include "passes/pass.h"
#include "passes/passes.h"

namespace zeroplan {

const std::vector<Pass>& pipeline() {
  static const std::vector<Pass> passes = {
      {"canonicalize_views", canonicalize_views, "merge chains of reshape and transpose"},
      {"fuse_norm", fuse_norm, "recognise LayerNorm and RMSNorm"},
      {"fuse_gelu", fuse_gelu, "recognise GELU (erf, tanh) and SiLU"},
      {"fuse_attention", fuse_attention, "recognise attention with causal or additive mask"},
      {"canonicalize_attention", canonicalize_views, "canonicalize_views again: k arrives through a transpose that is undone"},
      {"cse", cse, "compute equal nodes once"},
      {"dce", dce, "drop nodes that nothing reads"},
      {"record_outputs", record_outputs, "keep the outputs of a forward plan"},
      {"clone_eval", clone_eval, "copy the forward into the eval program"},
      {"sync_batch_norm", sync_batch_norm, "take batch statistics over all ranks"},
      {"precision", precision, "choose what is computed in 16 bits"},
      {"autodiff", autodiff, "append the backward, one vjp per node"},
      // Vjps are built one by one: they transpose back what the forward transposed, and compute some products twice.
      {"canonicalize_backward", canonicalize_views, "canonicalize_views again, on what autodiff built"},
      {"cse_backward", cse, "cse again, on what autodiff built"},
      {"dce_backward", dce, "dce again, on what autodiff built"},
      {"fold_casts", fold_casts, "drop casts that undo each other"},
      {"mark_gradients", mark_gradients, "name the parameter of each gradient"},
      {"recompute_cheap", recompute_cheap, "compute cheap activations again in the backward"},
      {"fuse_products", fuse_products, "let matmul add bias and residual (CUDA)"},
      {"fuse_elementwise", fuse_elementwise, "join chains of elementwise nodes"},
      {"snapshot_source", snapshot_source, "keep the training graph for the verifier"},
      {"partition_units", partition_units, "cut the parameters into shard units"},
      {"insert_all_gather", insert_all_gather, "gather each unit before each use interval"},
      {"insert_free", insert_free, "free each gathered unit after its interval"},
      {"insert_reduce_scatter", insert_reduce_scatter, "reduce each unit's gradients after the last contribution"},
      {"optimizer_update", optimizer_update, "build the update, load and save programs"},
      {"prefetch_edges", prefetch_edges, "start gathers early within the slot limit"},
      {"schedule", schedule, "order the nodes of each program"},
      {"materialize_views", materialize_views, "copy where a kernel accepts no view"},
  };
  return passes;
}

}  // namespace zeroplan
