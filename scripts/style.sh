#!/usr/bin/env bash
# File and function lengths, includes that point the wrong way, words that the project does not use. Exceptions stand in scripts/style-exceptions.txt,
# a list that may only shrink.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec python3 scripts/style.py
