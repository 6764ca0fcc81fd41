#!/usr/bin/env bash
# Writes docs/coverage.md from the tables of the program and ONNX's node suite; --check compares instead. Needs the release build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
data=/usr/share/libonnx-testdata/data
[ -d "$data" ] || bash scripts/setup.sh
page=$(mktemp)
trap 'rm -f "$page"' EXIT
build/coverage "$data" >"$page"
if [ "${1:-}" = --check ]; then
  diff -u docs/coverage.md "$page" || { echo "coverage: docs/coverage.md is not what the program does; run scripts/coverage.sh" >&2; exit 1; }
else
  cp "$page" docs/coverage.md
fi
