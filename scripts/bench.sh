#!/usr/bin/env bash
# Speed and memory beside PyTorch on the same model, weights and batches, in one run, alternating. Prints a table; docs/benchmarks.md explains it.
#   scripts/bench.sh [REPEATS]          default 3
#   ZEROPLAN_PEERS    folder with gpt2.py, export.py and peer_torch.py (default: ../shared/bench)
# PyTorch goes into a throw-away environment of about 7 GB; with less than 12 GB free this refuses to start.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$here/scripts/cache.sh"
bash "$here/scripts/setup.sh"
cd "$here"
[ -f build/build.ninja ] || cmake --preset release >/dev/null
cmake --build --preset release --target zeroplan kernels_bench | tail -1

peers=${ZEROPLAN_PEERS:-$here/../shared/bench}
python=${ZEROPLAN_PEER_PYTHON:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -d "$peers" ] && [ -z "$python" ]; then
  free=$(df --output=avail -B1000000000 "$work" | tail -1)
  if [ "$free" -lt 12 ]; then
    echo "bench: PyTorch needs 12 GB free in $(dirname "$work"), there are $free; free some, or set TMPDIR" >&2
    exit 1
  fi
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet --disable-pip-version-check torch numpy onnx onnxscript
  python=$work/venv/bin/python
fi
[ -d "$peers" ] || echo "bench: no peer scripts in $peers; measuring zeroplan alone" >&2
exec python3 tests/bench/bench.py --zeroplan build/zeroplan --kernels build/kernels_bench --peers "$peers" --python "${python:-none}" --work "$work" --repeats "${1:-3}"
