#!/usr/bin/env bash
# Installs the build in $1, builds the programs of docs/library.md against the package alone, and runs them on a new model.
set -euo pipefail
build=$1 source=$2 mpi=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >/dev/null
"$work/prefix/bin/zeroplan" new mlp -o "$work/mlp.onnx"

# program NAME KIND: the project file and the program are taken from the page, so that the page is what is tested; KIND is the second word
# of their blocks.
program() {
  mkdir "$work/$1"
  awk -v kind="$2" '$0 == "```cmake" kind {on = 1; next} /^```$/ {on = 0} on' "$source/docs/library.md" >"$work/$1/CMakeLists.txt"
  awk -v kind="$2" '$0 == "```cpp" kind {on = 1; next} /^```$/ {on = 0} on' "$source/docs/library.md" >"$work/$1/main.cc"
  env -u ZEROPLAN_ONNX_DIR cmake -S "$work/$1" -B "$work/$1/build" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
  cmake --build "$work/$1/build" >/dev/null
}

program threads ""
"$work/threads/build/mine" "$work/mlp.onnx" "$work/threads.onnx" | tee "$work/threads.out"
[ "$(grep -c loss "$work/threads.out")" = 10 ]
[ -s "$work/threads.onnx" ]
[ "$mpi" = 1 ] || exit 0
program processes " processes"
mpirun -n 2 "$work/processes/build/mine" "$work/mlp.onnx" "$work/processes.onnx" | tee "$work/processes.out"
cmp "$work/threads.out" "$work/processes.out"
cmp "$work/threads.onnx" "$work/processes.onnx"
if mpirun -n 2 "$work/processes/build/mine" "$work/nothing.onnx" "$work/processes.onnx" 2>"$work/refused"; then exit 1; fi
[ "$(grep -c 'nothing.onnx' "$work/refused")" = 1 ]
