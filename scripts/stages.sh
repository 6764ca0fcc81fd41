# Sourced by check.sh and check_full.sh: stages and their minutes, and how a preset is built and tested.
log=$(mktemp)
table=()

# stage NAME COMMAND…: its output as it comes; its result and minutes go to the table.
stage() {
  local name=$1 begin=$SECONDS result=passed status=0
  shift
  echo "=== $name"
  "$@" || { status=$?; result=FAILED; }
  table+=("$(printf '%-28s %-7s %6.1f min' "$name" "$result" "$(awk -v s=$((SECONDS - begin)) 'BEGIN {print s / 60}')")")
  return "$status"
}

wants() { [[ " $stages " == *" $1 "* ]]; }
preset_folder() { if [ "$1" = release ]; then echo build; else echo "build-$1"; fi; }
has_cuda_toolkit() { command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; }

# The test programs of preset cuda-host.
cuda_host_targets() { cmake --preset cuda-host >"$log" 2>&1 && ninja -C build-cuda-host -t targets all | grep -oE '^cuda_[a-z0-9_]*_test:' | tr -d :; }
# build PRESET [TARGET…]: quiet where it succeeds.
build() {
  local preset=$1
  shift
  cmake --preset "$preset" >"$log" 2>&1 && cmake --build --preset "$preset" ${1:+--target "$@"} >"$log" 2>&1 && return
  grep -E -A5 'error|FAILED' "$log" | tail -80
  return 1
}

# run_tests PRESET OPTION-OF-CTEST…: of a failure all is shown.
run_tests() {
  local folder
  folder=$(preset_folder "$1")
  shift
  if (cd "$folder" && ctest --progress --output-on-failure -j 2 "$@" >"$log" 2>&1); then
    grep -A40 -E 'tests passed' "$log"
  else
    grep -vE 'Passed|Start ' "$log" | tail -150
    return 1
  fi
}

print_table() {
  echo "=== minutes per stage"
  printf '%s\n' "${table[@]}"
}
