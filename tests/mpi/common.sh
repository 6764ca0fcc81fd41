# Sourced by the tests of this folder, which are given the folder of the programs and that of the models. They work in a folder of their own.
set -euo pipefail
programs=$1 models=$2
zeroplan=$programs/zeroplan
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMP_NUM_THREADS=1

fail() { echo "${0##*/}: $*" >&2; exit 1; }

# Fails where a process of this test is left: their command lines name its folder.
no_process_left() {
  for _ in $(seq 20); do pgrep -f "$work" >/dev/null || return 0; sleep 0.1; done
  fail "a process is left: $(pgrep -af "$work")"
}

# refused WORDS COMMAND…: fails within 15 seconds, leaves no process, and the last line of the program itself, behind which mpirun may write,
# holds the words. Output: refused.log.
refused() {
  local words=$1 begin=$SECONDS
  shift
  if "$@" >refused.log 2>&1 </dev/null; then fail "$* was not refused"; fi
  [ $((SECONDS - begin)) -le 15 ] || fail "$* took $((SECONDS - begin)) seconds to end"
  grep '^zeroplan: ' refused.log | tail -1 | grep -qF -- "$words" || fail "the last line has no '$words' after $*: $(cat refused.log)"
  no_process_left
}

# The number of lines of refused.log that the program wrote.
said() { grep -c '^zeroplan: ' refused.log || true; }
