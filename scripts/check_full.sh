#!/usr/bin/env bash
# What scripts/check.sh has no time for, on the CPU's stand-in for CUDA: every exported model in fp32 and bf16 with 1, 2 and 4 ranks at
# each stage, its gradients, 200 runs with random delays of streams, all tests of kernels and more runs under ASan and UBSan and under
# TSan. Prints a table of what ran and ends with an error where anything failed. Some hours on two cores.
#   ZEROPLAN_FULL_PARTS  some of: suites delays matrix golden asan tsan (default: all)
#   ZEROPLAN_MODELS      models of the matrix (default: all)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
stages=${ZEROPLAN_FULL_PARTS:-suites delays matrix golden asan tsan}
source scripts/cache.sh
source scripts/stages.sh
trap 'rm -f "$log"' EXIT
bash scripts/setup.sh || exit 1
failed=0
run() { stage "$@" || failed=1; }
cuda_runs() { python3 tests/cuda_runs/run.py "$1/zeroplan" tests/models "$2"; }

# shellcheck disable=SC2046
run "build cuda-host" build cuda-host zeroplan $(cuda_host_targets)
if wants suites; then run "suites on the stand-in" run_tests cuda-host -L cuda_host; fi
if wants delays; then ZEROPLAN_DELAYED_RUNS=200 run "200 delayed runs" cuda_runs build-cuda-host delays; fi
if wants matrix; then run "matrix of exported models" cuda_runs build-cuda-host matrix; fi
if wants golden; then run "golden losses and gradients" build-cuda-host/cuda_golden_test --gtest_brief=1; fi
if wants asan; then
  run "build cuda-host-asan" build cuda-host-asan zeroplan cuda_kernels_test cuda_device_test
  run "kernels, ASan and UBSan" build-cuda-host-asan/cuda_kernels_test --gtest_brief=1
  run "device, ASan and UBSan" build-cuda-host-asan/cuda_device_test --gtest_brief=1
  run "mlp, ASan and UBSan" cuda_runs build-cuda-host-asan mlp
  run "bf16, ASan and UBSan" cuda_runs build-cuda-host-asan bf16
fi
if wants tsan; then
  export TSAN_OPTIONS=halt_on_error=1
  run "build cuda-host-tsan" build cuda-host-tsan zeroplan cuda_device_test cuda_comm_test cuda_e2e_test
  run "streams, TSan" build-cuda-host-tsan/cuda_device_test --gtest_brief=1
  run "communicators, TSan" build-cuda-host-tsan/cuda_comm_test --gtest_brief=1
  run "runs, TSan" build-cuda-host-tsan/cuda_e2e_test --gtest_brief=1
  run "mlp, TSan" cuda_runs build-cuda-host-tsan mlp
fi

print_table
exit "$failed"
