#!/usr/bin/env bash
# File and function lengths, includes that point the wrong way, words that the project does not use. Exceptions stand in scripts/style-exceptions.txt,
# a list that may only shrink. The layout of the code is clang-format's (version 14, checked where it is installed).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
  find . -path ./build\* -prune -o \( -name '*.cc' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -print0 | xargs -0 clang-format --dry-run -Werror
fi
exec python3 scripts/style.py
