#!/usr/bin/env bash
# What scripts/check.sh has no time for, on the CPU's stand-in for CUDA: every exported model in fp32 and bf16 with 1, 2 and 4 ranks at
# each stage, its gradients, 200 runs with random delays of streams, every op case and mlp under ASan and UBSan, the streams and the
# device's suites under TSan. Prints a table of what ran and ends with an error where anything failed. Some hours on two cores.
#   ZEROPLAN_FULL_PARTS  some of: suites delays matrix golden asan tsan (default: all)
#   ZEROPLAN_MODELS      models of the matrix (default: all)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
source scripts/cache.sh
bash scripts/setup.sh || exit 1
parts=${ZEROPLAN_FULL_PARTS:-suites delays matrix golden asan tsan}
table=()
failed=0

# run NAME COMMAND…: its output as it comes, its result and minutes in the table.
run() {
  local name=$1 begin=$SECONDS result=passed
  shift
  echo "=== $name"
  "$@" || { result=FAILED; failed=1; }
  table+=("$(printf '%-28s %-7s %6.1f min' "$name" "$result" "$(awk -v s=$((SECONDS - begin)) 'BEGIN {print s / 60}')")")
}
wants() { [[ " $parts " == *" $1 "* ]]; }
# build PRESET TARGET…: quiet where it succeeds.
build() {
  local preset=$1 log
  shift
  log=$(mktemp)
  cmake --preset "$preset" >"$log" 2>&1 && cmake --build --preset "$preset" --target "$@" >>"$log" 2>&1 && rm "$log" && return
  grep -E -A5 'error|FAILED' "$log" | tail -60
  rm "$log"
  return 1
}
# tests PROGRAM…: the last lines say how many passed; of a failure all is shown.
tests() {
  local log status=0
  log=$(mktemp)
  "$@" --gtest_brief=1 >"$log" 2>&1 || status=1
  if [ "$status" = 0 ]; then tail -2 "$log"; else tail -200 "$log"; fi
  rm "$log"
  return "$status"
}

run "build cuda-host" build cuda-host zeroplan cuda_kernels_test cuda_e2e_test cuda_device_test cuda_golden_test
if wants suites; then run "suites on the stand-in" bash -c 'set -o pipefail; cd build-cuda-host && ctest -L cuda_host -j 2 --output-on-failure | tail -60'; fi
if wants delays; then run "200 delayed runs" env ZEROPLAN_DELAYED_RUNS=200 python3 tests/cuda_runs/run.py build-cuda-host/zeroplan tests/models delays; fi
if wants matrix; then run "matrix of exported models" python3 tests/cuda_runs/run.py build-cuda-host/zeroplan tests/models matrix; fi
if wants golden; then run "golden losses and gradients" tests build-cuda-host/cuda_golden_test; fi
if wants asan; then
  run "build cuda-host-asan" build cuda-host-asan zeroplan cuda_kernels_test cuda_device_test
  run "op cases, ASan and UBSan" tests build-cuda-host-asan/cuda_kernels_test
  run "device, ASan and UBSan" tests build-cuda-host-asan/cuda_device_test
  run "mlp, ASan and UBSan" python3 tests/cuda_runs/run.py build-cuda-host-asan/zeroplan tests/models mlp
  run "bf16, ASan and UBSan" python3 tests/cuda_runs/run.py build-cuda-host-asan/zeroplan tests/models bf16
fi
if wants tsan; then
  export TSAN_OPTIONS=halt_on_error=1
  run "build cuda-host-tsan" build cuda-host-tsan zeroplan cuda_device_test cuda_e2e_test
  run "streams, TSan" tests build-cuda-host-tsan/cuda_device_test
  run "runs, TSan" tests build-cuda-host-tsan/cuda_e2e_test
  run "mlp, TSan" python3 tests/cuda_runs/run.py build-cuda-host-tsan/zeroplan tests/models short
fi

echo "=== what ran"
printf '%s\n' "${table[@]}"
exit "$failed"
