#!/usr/bin/env bash
# fuzz.sh MINUTES: looks for model files that the importer breaks on, with libFuzzer under ASan and UBSan, half of the time for each target:
# the import as `inspect` does it, and the plan of a forward pass. Needs clang 14 with its runtime library (libclang-rt-14-dev).
# What is found lies in build-fuzz/findings; exit 1 where there is any. What was learnt is kept in the cache folder for the next time.
set -euo pipefail
minutes=${1:?usage: fuzz.sh MINUTES}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$here"
source scripts/cache.sh
bash scripts/setup.sh
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz

build=$here/build-fuzz
learnt=$ZEROPLAN_CACHE/fuzz
mkdir -p "$build/seeds" "$build/findings"
"$build/fuzz_seeds" "$build/seeds" tests/models tests/fuzz/corpus /usr/share/libonnx-testdata/data
[ -d /dev/shm ] && export TMPDIR=/dev/shm
failed=0
for target in inspect compile; do
  mkdir -p "$learnt/$target"
  "$build/fuzz_$target" -max_total_time=$((minutes * 30)) -rss_limit_mb=2048 -timeout=10 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$build/findings/$target-" "$learnt/$target" "$build/seeds" tests/fuzz/corpus || failed=1
done
exit $failed
