#!/usr/bin/env bash
# Installs the build in $1, builds the program of docs/library.md against the package alone, and runs it on a new model.
set -euo pipefail
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >/dev/null
mkdir "$work/mine"
# The project file and the program are taken from the page, so that the page is what is tested.
awk '/^```cmake$/ {on = 1; next} /^```$/ {on = 0} on' "$source/docs/library.md" >"$work/mine/CMakeLists.txt"
awk '/^```cpp$/ {on = 1; next} /^```$/ {on = 0} on' "$source/docs/library.md" >"$work/mine/main.cc"
env -u ZEROPLAN_ONNX_DIR cmake -S "$work/mine" -B "$work/mine/build" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/mine/build" >/dev/null
"$work/prefix/bin/zeroplan" new mlp -o "$work/mlp.onnx"
"$work/mine/build/mine" "$work/mlp.onnx" "$work/trained.onnx" | tee "$work/out"
[ "$(grep -c loss "$work/out")" = 10 ]
[ -s "$work/trained.onnx" ]
