#!/usr/bin/env bash
# From nothing to a trained ONNX file: build, write a small GPT-2, compile it for two ranks, look at the plan, train it on a book, export it.
# Everything it writes goes to the folder given as first argument (default: ./zeroplan-demo).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:-$PWD/zeroplan-demo}
bash "$here/scripts/setup.sh"
source "$here/scripts/cache.sh"

cd "$here"
[ -f build/build.ninja ] || cmake --preset release >/dev/null
build_log=$(mktemp)
echo "building zeroplan (a few minutes the first time)"
cmake --build --preset release --target zeroplan >"$build_log" 2>&1 || { grep -E -A5 "error|FAILED" "$build_log" >&2; exit 1; }
rm -f "$build_log"
zeroplan=$here/build/zeroplan
text=$here/examples/data/opticks.txt
mkdir -p "$out"
cd "$out"

run() { echo; echo "\$ zeroplan $*" | sed "s|$here/||g"; "$zeroplan" "$@"; }
run new gpt2-nano -o gpt2.onnx
run compile gpt2.onnx -o gpt2.zplan --ranks 2 --batch 32 --eval
echo
echo '$ zeroplan dump gpt2.zplan | head -60'
"$zeroplan" dump gpt2.zplan >plan.txt
sed -n 1,60p plan.txt
run run gpt2.zplan --tokens "$text" --eval-fraction 0.1 --steps 300 --lr 3e-3 --schedule cosine --warmup 20 --clip 1 --metrics metrics.jsonl --export trained.onnx
run inspect trained.onnx >checked.txt
tail -3 checked.txt

# Entropy of single bytes in the held-out tenth: what a model without context can reach.
entropy=$(tail -c "$(($(stat -c %s "$text") / 10))" "$text" | od -An -v -tu1 -w1 |
  awk '{count[$1]++; n++} END {for (byte in count) h -= count[byte] / n * log(count[byte] / n); printf "%.4f", h}')
loss=$(grep -o '"eval_loss": [0-9.]*' metrics.jsonl | tail -1 | cut -d' ' -f2)
echo
echo "held-out loss $loss, entropy of single bytes there $entropy (nats per byte)"
awk -v loss="$loss" -v entropy="$entropy" 'BEGIN {exit !(loss < entropy)}' || { echo "demo: the model has not learned" >&2; exit 1; }
echo "trained model: $out/trained.onnx"
