#!/usr/bin/env bash
# Runs every command block of README.md that starts with zeroplan's own commands, as printed, in an empty home folder.
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Indented lines are commands; the two scripts of the first block are tests of their own.
grep -E '^    ' "$source/README.md" | sed 's/^    //' | grep -vE '^scripts/(demo|check)\.sh' >"$work/commands.sh"
[ "$(grep -c '^zeroplan ' "$work/commands.sh")" -ge 8 ]
# The clone's build folder may be elsewhere (sanitizer presets): the README's PATH line is kept and this one goes in front.
mkdir "$work/bin" "$work/home"
ln -s "$build/zeroplan" "$work/bin/zeroplan"
cd "$source"
HOME=$work/home PATH=$work/bin:$PATH bash -euo pipefail -x "$work/commands.sh"
cd "$work/home/first-steps"
for file in gpt2.onnx gpt2.zplan metrics.jsonl trace.json trained.onnx processes.jsonl processes.json processes.onnx; do [ -s "$file" ]; done
