#!/usr/bin/env bash
# Runs ONNX's own backend suites (Debian's libonnx-testdata, ONNX 1.12) through compiled plans and the kernels. A line per case that does not
# pass, one per suite, and the public scoreboard beside it. Fails below the stated figures. Needs the release build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
data=/usr/share/libonnx-testdata/data
[ -d "$data" ] || bash scripts/setup.sh
[ -x build/conformance ] || { echo "conformance: build the release preset first (cmake --preset release && cmake --build --preset release)" >&2; exit 1; }
build/conformance "$data" --require node=909 --require training=123 --require pytorch-converted=82 --require pytorch-operator=35 --require simple=17 --most-constant 72
cat <<'END'

For scale, another, newer and larger suite: the public ONNX backend scoreboard (onnx 1.22, 1,914 tests, July 2026) states, passed / training of 123:
  onnx reference (NumPy)  1,882 / 121     emx-onnx-cgen 1.3.5  1,873 / 123     onnxruntime 1.27  1,571 / 108
  OpenVINO (ORT)          1,387 / 104     onnx-tf              1,296 /   -     jaxonnxruntime      648 /   2     opencv 4.13  267 / 4
END
