# Sourced by the other scripts: the pinned downloads and where their builds are kept.
ONNX_VERSION=1.23.2
ONNX_HASH=008cb0467b2bbee41448acc7da8b6f4e704624cb0d327a2d5adafc7ce19bc5b8
CMAKE_VERSION=4.4.5
CMAKE_HASH=85625a9b6d5e88ff99c7eb79123d85570844e77ac076366cf75c609cc0b1b579
ZEROPLAN_CACHE=${ZEROPLAN_CACHE:-$HOME/.cache/zeroplan}
ZEROPLAN_CMAKE_DIR=$ZEROPLAN_CACHE/cmake-$CMAKE_VERSION
ZEROPLAN_CMAKE=$ZEROPLAN_CMAKE_DIR/bin/cmake
ZEROPLAN_ONNX_DIR=$ZEROPLAN_CACHE/onnx-$ONNX_VERSION
# A clone in another folder shares the compiler's cache.
CCACHE_BASEDIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CCACHE_NOHASHDIR=true
# What precompiled headers need.
CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
CCACHE_PCH_EXTSUM=true
export ZEROPLAN_CACHE ZEROPLAN_ONNX_DIR CCACHE_BASEDIR CCACHE_NOHASHDIR CCACHE_SLOPPINESS CCACHE_PCH_EXTSUM
