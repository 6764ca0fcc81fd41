#pragma once
// Every pass, by the order in which it first runs in the pipeline. Each has its own file, named like it.
#include "graph/ir/graph.h"
#include "passes/compile_options.h"

namespace zeroplan {

// simplify
bool canonicalize_views(Graph&, const CompileOptions&);  // merges reshape / transpose chains, drops the ones that change nothing
bool fuse_norm(Graph&, const CompileOptions&);           // decomposed LayerNorm and RMSNorm
bool fuse_gelu(Graph&, const CompileOptions&);           // GELU (erf, tanh) and SiLU
bool fuse_attention(Graph&, const CompileOptions&);      // softmax(q kᵀ·scale + mask) v
bool cse(Graph&, const CompileOptions&);
bool dce(Graph&, const CompileOptions&);
// train
bool record_outputs(Graph&, const CompileOptions&);   // forward plans: the forward is eval_step, its outputs are state
bool clone_eval(Graph&, const CompileOptions&);       // eval_step: the forward again, with its own values
bool sync_batch_norm(Graph&, const CompileOptions&);  // with --sync-bn: batch statistics over all ranks
bool precision(Graph&, const CompileOptions&);        // --precision bf16, fp16: what is computed in 16 bits, and what in float32
bool autodiff(Graph&, const CompileOptions&);
bool fold_casts(Graph&, const CompileOptions&);       // casts that undo each other, sums that are cast
bool mark_gradients(Graph&, const CompileOptions&);   // a gradient carries its parameter's index: later passes and messages name it
bool recompute_cheap(Graph&, const CompileOptions&);  // cheap activations again in the backward, where that frees memory
bool fuse_products(Graph&, const CompileOptions&);    // matmul with bias and residual
bool fuse_elementwise(Graph&, const CompileOptions&);
bool snapshot_source(Graph&, const CompileOptions&);  // keeps the training graph for the verifier
// zero
bool partition_units(Graph&, const CompileOptions&);
bool insert_all_gather(Graph&, const CompileOptions&);
bool insert_free(Graph&, const CompileOptions&);
bool insert_reduce_scatter(Graph&, const CompileOptions&);
bool optimizer_update(Graph&, const CompileOptions&);  // also load, save, eval_end and the metrics
bool prefetch_edges(Graph&, const CompileOptions&);
// lower
bool schedule(Graph&, const CompileOptions&);
bool materialize_views(Graph&, const CompileOptions&);

}  // namespace zeroplan
