#!/usr/bin/env bash
# The test command: builds and tests the asan, tsan, cuda-host and release presets, compiles and links for CUDA where the toolkit is, tries
# the installed package and the README's commands, runs ONNX's suites forward and checks their gradients, trains files from PyPI, checks style.
# Prints minutes per stage. scripts/check_full.sh has what takes longer.
#   ZEROPLAN_CHECK_STAGES  some of: style asan tsan cuda demo release (default), cuda-asan, cuda-tsan
#   ZEROPLAN_REQUIRE_CUDA  set: without the toolkit the check fails, instead of leaving CUDA out
# Stage cuda: kernels and runs on the CPU's stand-in for CUDA; then the real build by nvcc for sm_80, sm_90 and sm_100, which nothing here
# can run. Stages cuda-asan and cuda-tsan: what holds on the stand-in under the sanitizers, for which a bare machine's hour is too short.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
stages=${ZEROPLAN_CHECK_STAGES:-style asan tsan cuda demo release}
source scripts/cache.sh
source scripts/stages.sh
demo=$(mktemp -d)
trap 'rm -rf "$log" "$demo"' EXIT

if ! has_cuda_toolkit; then
  echo "cuda: not built, no toolkit"
  [ -z "${ZEROPLAN_REQUIRE_CUDA:-}" ] || exit 1
fi

stage setup bash scripts/setup.sh
if wants style; then stage style bash scripts/style.sh; fi
if wants asan; then
  stage "build asan" build asan
  stage "test asan" run_tests asan -LE release_only
fi
if wants tsan; then
  export TSAN_OPTIONS=halt_on_error=1
  stage "build tsan" build tsan device_test comm_test exec_test e2e_test precision_test mpi_comm_test mpi_fault
  stage "test tsan" run_tests tsan -L tsan
fi
if wants cuda-asan; then
  stage "build cuda-host-asan" build cuda-host-asan zeroplan cuda_kernels_test cuda_device_test
  stage "test cuda-host-asan" run_tests cuda-host-asan -R '^cuda_(kernels|device)_test|^cuda_runs'
fi
if wants cuda-tsan; then
  export TSAN_OPTIONS=halt_on_error=1
  stage "build cuda-host-tsan" build cuda-host-tsan zeroplan cuda_device_test cuda_comm_test
  stage "test cuda-host-tsan" run_tests cuda-host-tsan -L tsan -R cuda
fi
if wants cuda && has_cuda_toolkit; then
  # shellcheck disable=SC2046
  stage "build cuda-host" build cuda-host zeroplan $(cuda_host_targets)
  stage "test cuda-host" run_tests cuda-host -L cuda_host
  echo "cuda-host: kernels and runs passed on the CPU's stand-in for CUDA: $(build-cuda-host/zeroplan --version)"
  stage "build cuda" build cuda zeroplan
  echo "cuda: built for sm ${ZEROPLAN_CUDA_ARCHITECTURES:-80, 90 and 100}: $(build-cuda/zeroplan --version)"
fi
if wants release; then stage "build release" build release; fi
if wants demo; then stage demo bash scripts/demo.sh "$demo"; fi
if wants release; then
  stage conformance bash scripts/conformance.sh
  stage gradcheck bash scripts/gradcheck.sh
  stage "real files" bash scripts/real_files.sh
  stage coverage bash scripts/coverage.sh --check
  stage "test release" run_tests release
fi

print_table
# The closing line is ctest's own, of the last preset tested; none where no stage tests.
{ grep -E 'tests passed' "$log" || true; } | tail -1
