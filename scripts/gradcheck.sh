#!/usr/bin/env bash
# Checks the gradients that the compiler builds, run through whole plans in double, against differences, on every model of ONNX's node suite
# with a floating-point input; then that a vjp with the wrong sign is found, one per family. Needs the release build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
data=/usr/share/libonnx-testdata/data
[ -d "$data" ] || bash scripts/setup.sh
[ -x build/gradcheck ] || { echo "gradcheck: build the release preset first (cmake --preset release && cmake --build --preset release)" >&2; exit 1; }
build/gradcheck "$data/node" --failures --require-tried 95

# What the suite has no case of (attention, rms_norm, dropout) is flipped in decoders_test.
# An operator and a part of the case names that reach it. Not mul and reduce_sum, which the weighted sum of the outputs uses too: the sign turns twice.
while read -r op part; do
  if ! build/gradcheck "$data/node" --name "$part" --flip "$op" >/dev/null; then
    echo "gradcheck: the sign of $op was flipped and no gradient of a case of '$part' was found wrong" >&2
    exit 1
  fi
  echo "flipped sign found: $op"
done <<'END'
exp test_exp
div test_div
where test_where
reduce_mean test_reduce_mean
matmul test_matmul
softmax test_softmax
layer_norm test_layer_normalization
batch_norm test_batchnorm
concat test_concat
gather test_gather
conv conv
max_pool test_maxpool
average_pool test_averagepool
scatter test_scatter
cumsum test_cumsum
top_k test_top_k
reduce_prod test_reduce_prod
cross_entropy test_sce
END
