#!/usr/bin/env bash
# The checks that take a GPU, in under 8 minutes on one card: start, op cases, exported models, memcheck, step time and memory of GPT-2
# models beside PyTorch, a trace. Writes one JSON file (tests/bench/gpu_check.py says what is in it).
#   scripts/gpu_check.sh pack ARCHIVE.tar.xz          where nvcc is: builds for sm_90 without MPI, and packs what the run needs
#   scripts/gpu_check.sh run ARCHIVE.tar.xz RESULT    where a GPU is: python3, and PyTorch for the comparison
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
most=$((64 * 1024 * 1024)) # bytes of an archive

usage() { echo "gpu_check: usage: gpu_check.sh pack ARCHIVE.tar.xz | gpu_check.sh run ARCHIVE.tar.xz RESULT.json" >&2; exit 2; }

# The libraries of a program that neither the system's C and C++ nor NVIDIA's installation has.
libraries() { ldd "$1" | awk '$3 ~ /^\// {print $3}' | grep -vE '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libcuda|libcudart|libcudnn|libcublas|libcublasLt|libnccl|libnvrtc)[-._a-z0-9]*\.so'; }

pack() {
  local archive=$1 build=$here/build-gpu-check folder bytes
  command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ] || { echo "gpu_check: there is no nvcc; put it on the PATH or set CUDA_HOME" >&2; exit 1; }
  # shellcheck source=scripts/cache.sh
  source "$here/scripts/cache.sh"
  cmake -S "$here" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DZEROPLAN_CUDA=ON -DZEROPLAN_CUDA_ARCHITECTURES=90 -DZEROPLAN_MPI=OFF -DZEROPLAN_GPU_TESTS=ON
  cmake --build "$build" -j "${ZEROPLAN_JOBS:-2}" --target zeroplan cuda_kernels_test
  folder=$(mktemp -d)
  mkdir -p "$folder"/{bin,lib,scripts,tests/bench,tests/cuda_runs}
  cp "$build/zeroplan" "$build/cuda_kernels_test" "$folder/bin"
  strip "$folder"/bin/*
  { libraries "$build/zeroplan"; libraries "$build/cuda_kernels_test"; } | sort -u | xargs -I{} cp -L {} "$folder/lib"
  cp "$here/scripts/gpu_check.sh" "$folder/scripts"
  cp "$here"/tests/bench/{gpu_check,peer_gpt2}.py "$folder/tests/bench"
  cp "$here/tests/cuda_runs/run.py" "$folder/tests/cuda_runs"
  cp -r "$here/tests/models" "$folder/tests"
  tar -C "$folder" -cJf "$archive" .
  rm -rf "$folder"
  bytes=$(stat -c %s "$archive")
  [ "$bytes" -le "$most" ] || { echo "gpu_check: $archive has $bytes bytes, more than $most" >&2; exit 1; }
  echo "gpu_check: $archive, $bytes bytes, for sm_90: $("$build/zeroplan" --version)"
}

run() {
  local archive=$1 result=$2 folder
  nvidia-smi -L >/dev/null 2>&1 || { echo "gpu_check: no GPU is at hand (nvidia-smi lists none); nothing was measured" >&2; exit 1; }
  [ -f "$archive" ] || { echo "gpu_check: there is no $archive; make it by: gpu_check.sh pack $archive" >&2; exit 1; }
  folder=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$folder'" EXIT
  tar -C "$folder" -xJf "$archive"
  python3 "$folder/tests/bench/gpu_check.py" "$folder" "$result"
}

case "${1:-}" in
  pack) [ $# = 2 ] || usage; pack "$2" ;;
  run) [ $# = 3 ] || usage; run "$2" "$3" ;;
  *) usage ;;
esac
