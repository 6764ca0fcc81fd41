#!/usr/bin/env bash
# Installs what the build needs, once: Debian packages, and the ONNX library built from its source release.
# Idempotent; a second run takes under a second. Writes only to apt and to the cache folder.
#   ZEROPLAN_CACHE   where the ONNX library and cmake are kept (default: ~/.cache/zeroplan)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/cache.sh"

packages=(build-essential cmake ninja-build ccache python3 python3-pip python3-venv pkg-config
  protobuf-compiler libprotobuf-dev libdnnl-dev libopenblas-dev libcli11-dev libfmt-dev
  nlohmann-json3-dev libre2-dev libxxhash-dev libgtest-dev libgmock-dev libbenchmark-dev libonnx-testdata
  libopenmpi-dev openmpi-bin)

mkdir -p "$ZEROPLAN_CACHE"
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "setup: these packages are missing and need root to install: ${missing[*]}" >&2
    exit 1
  fi
  echo "setup: installing ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# Downloads one pinned file from PyPI into $2; pip checks the hash in the requirement line.
fetch() {
  local requirement=$1 folder=$2
  mkdir -p "$folder"
  echo "$requirement" >"$folder/requirement.txt"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes "${@:3}" -d "$folder" -r "$folder/requirement.txt"
}

# The ONNX build asks for a newer cmake than Debian 12 has; the wheel holds a plain binary.
if [ ! -x "$ZEROPLAN_CMAKE" ]; then
  echo "setup: fetching cmake $CMAKE_VERSION"
  work=$(mktemp -d)
  fetch "cmake==$CMAKE_VERSION --hash=sha256:$CMAKE_HASH" "$work" --only-binary=:all:
  mkdir -p "$work/tree"
  python3 -m zipfile -e "$work"/cmake-*.whl "$work/tree"
  chmod +x "$work/tree/cmake/data/bin/"*
  rm -rf "$ZEROPLAN_CMAKE_DIR"
  mv "$work/tree/cmake/data" "$ZEROPLAN_CMAKE_DIR"
  rm -rf "$work"
fi

if [ ! -f "$ZEROPLAN_ONNX_DIR/.complete" ]; then
  echo "setup: building the ONNX library $ONNX_VERSION (about five minutes)"
  work=$(mktemp -d)
  fetch "onnx==$ONNX_VERSION --hash=sha256:$ONNX_HASH" "$work" --no-binary=onnx
  tar -xzf "$work/onnx-$ONNX_VERSION.tar.gz" -C "$work"
  "$ZEROPLAN_CMAKE" -S "$work/onnx-$ONNX_VERSION" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$work/install" -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DONNX_USE_PROTOBUF_SHARED_LIBS=ON -DONNX_BUILD_TESTS=OFF \
    -DPython3_EXECUTABLE="$(command -v python3)" >"$work/configure.log" 2>&1 || { cat "$work/configure.log" >&2; exit 1; }
  "$ZEROPLAN_CMAKE" --build "$work/build" --parallel 2 >"$work/build.log" 2>&1 || { tail -50 "$work/build.log" >&2; exit 1; }
  "$ZEROPLAN_CMAKE" --install "$work/build" >/dev/null
  touch "$work/install/.complete"
  rm -rf "$ZEROPLAN_ONNX_DIR"
  mkdir -p "$(dirname "$ZEROPLAN_ONNX_DIR")"
  mv "$work/install" "$ZEROPLAN_ONNX_DIR"
  rm -rf "$work"
fi
