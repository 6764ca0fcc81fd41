#!/usr/bin/env bash
# The test command: builds and tests the release, asan and tsan presets, tries the installed package and the README's commands, runs
# ONNX's suites forward and checks their gradients, trains files from PyPI, checks style.
# Prints minutes per stage. ZEROPLAN_CHECK_STAGES chooses some of: style asan tsan demo release (default), cuda.
# Stage cuda: the kernels on the CPU's stand-in for CUDA with their tests, some of them under sanitizers, and the real build by nvcc, which
# nothing here can run. scripts/check_full.sh has what takes longer.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$here"
stages=${ZEROPLAN_CHECK_STAGES:-style asan tsan demo release}
source scripts/cache.sh
summary=()
log=$(mktemp)
demo=$(mktemp -d)
trap 'rm -rf "$log" "$demo"' EXIT

stage() {
  local name=$1 begin=$SECONDS
  shift
  echo "=== $name"
  "$@"
  summary+=("$(printf '%-16s %5.1f min' "$name" "$(awk -v s=$((SECONDS - begin)) 'BEGIN {print s / 60}')")")
}

wants() { [[ " $stages " == *" $1 "* ]]; }
build() {
  cmake --preset "$1" >"$log" 2>&1 && cmake --build --preset "$1" ${2:+--target $2} >"$log" 2>&1 || { grep -E -A5 'error|FAILED' "$log" | tail -80; exit 1; }
}
test_preset() {
  local preset=$1
  shift
  (cd "$(preset_folder "$preset")" && ctest --progress --output-on-failure -j 2 "$@" >"$log" 2>&1 || { grep -vE 'Passed|Start ' "$log" | tail -150; exit 1; })
  grep -A40 -E 'tests passed' "$log"
}
preset_folder() { if [ "$1" = release ]; then echo build; else echo "build-$1"; fi; }

stage setup bash scripts/setup.sh
if wants style; then stage style bash scripts/style.sh; fi
if wants asan; then
  stage "build asan" build asan
  stage "test asan" test_preset asan -LE release_only
fi
if wants tsan; then
  export TSAN_OPTIONS=halt_on_error=1
  stage "build tsan" build tsan "device_test comm_test exec_test e2e_test precision_test mpi_comm_test mpi_fault"
  stage "test tsan" test_preset tsan -L tsan
fi
if wants release; then stage "build release" build release; fi
if wants demo; then stage demo bash scripts/demo.sh "$demo"; fi
cuda_host_targets() { ninja -C build-cuda-host -t targets all | grep -oE '^cuda_[a-z_]*_test:' | tr -d : | tr '\n' ' '; }
# One op case of each family of kernels; scripts/check_full.sh runs all.
case_of_each_family() {
  local name filter=
  for name in gelu_exact cast_to_i64 add_outer modulo_i64 pow where_broadcast elementwise_everything reduce_sum_middle reduce_prod_rows \
    concat_last slice_grad gather_grad_shared dropout_grad matmul_bias_and_added softmax_grad layer_norm_grad rms_norm_grad cross_entropy_grad \
    attention_mask attention_grad_causal arg_max_columns top_k_ties scatter_mul_batch cumsum_columns conv_channels conv_grad_weight_groups \
    conv_grad_input_depthwise max_pool average_pool_grad batch_norm_grad; do filter+="*CudaCase.*/$name:"; done
  echo "$filter*Optimizer*:*TrainingStep*:*LossScale*:*Master*"
}
# sanitized PRESET PROGRAM…: test programs with their options, and short runs of mlp.
sanitized() {
  local folder program
  folder=$(preset_folder "$1")
  shift
  for program in "$@"; do
    # shellcheck disable=SC2086
    (cd "$folder" && TSAN_OPTIONS=halt_on_error=1 ./$program --gtest_brief=1 >"$log" 2>&1) || { tail -150 "$log"; exit 1; }
    tail -1 "$log"
  done
  TSAN_OPTIONS=halt_on_error=1 python3 tests/cuda_runs/run.py "$folder/zeroplan" tests/models short
}
cuda_toolkit() { command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; }
if wants cuda && cuda_toolkit; then
  cmake --preset cuda-host >"$log" 2>&1
  stage "build cuda-host" build cuda-host "zeroplan $(cuda_host_targets)"
  stage "test cuda-host" test_preset cuda-host -L cuda_host
  stage "build cuda-host-asan" build cuda-host-asan "zeroplan cuda_device_test cuda_kernels_test"
  stage "test cuda-host-asan" sanitized cuda-host-asan cuda_device_test "cuda_kernels_test --gtest_filter=$(case_of_each_family)"
  stage "build cuda-host-tsan" build cuda-host-tsan "zeroplan cuda_device_test"
  stage "test cuda-host-tsan" sanitized cuda-host-tsan cuda_device_test
  stage "build cuda" build cuda zeroplan
  echo "cuda: built for sm ${ZEROPLAN_CUDA_ARCHITECTURES:-80, 90 and 100}: $(build-cuda/zeroplan --version)"
elif wants cuda; then
  echo "cuda: not built, no toolkit"
  [ -z "${ZEROPLAN_REQUIRE_CUDA:-}" ] || exit 1
fi
if wants release; then
  stage conformance bash scripts/conformance.sh
  stage gradcheck bash scripts/gradcheck.sh
  stage "real files" bash scripts/real_files.sh
  stage coverage bash scripts/coverage.sh --check
  stage "test release" test_preset release
fi

echo "=== minutes per stage"
printf '%s\n' "${summary[@]}"
# The closing line is ctest's own, of the last preset tested; none where no stage tests.
{ grep -E 'tests passed' "$log" || true; } | tail -1
