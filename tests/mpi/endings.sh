#!/usr/bin/env bash
# Signals, and failures of one rank outside the steps: all ranks end, and what can be exported is.
source "$(dirname "$0")/common.sh"
model=$models/mlp/model.onnx
"$zeroplan" compile "$model" -o three.zplan --ranks 3 --batch 12 >/dev/null
forever=("$zeroplan" run "$work/three.zplan" --data synthetic --steps 100000000 --metrics "$work/metrics.jsonl" --export "$work/out.onnx")

# signalled COMMAND…: starts mpirun in the background, does the command once there are metrics (mpirun is $job), and waits for the end.
signalled() {
  rm -f metrics.jsonl out.onnx
  mpirun -n 3 "${forever[@]}" >run.log 2>&1 &
  job=$!
  for _ in $(seq 300); do [ -s metrics.jsonl ] && break || sleep 0.1; done
  [ -s metrics.jsonl ] || fail "no step in 30 seconds: $(cat run.log)"
  "$@"
  wait $job && code=0 || code=$?
  cat run.log
  return $code
}
rank_of() { pgrep -f "^$zeroplan run $work/three.zplan" | sed -n "${1}p"; }

# Ctrl-C: mpirun passes it on as SIGTERM, and leaves a second to end in. SIGUSR1 leaves as long as it takes, as does a signal to any rank.
stops() {
  local begin=$SECONDS
  signalled "$@" >stopped.log || true
  [ $((SECONDS - begin)) -le 45 ] || fail "not stopped by $*"
  grep -q '^stopped after [0-9]* steps\?' stopped.log || fail "no stop after $*: $(cat stopped.log)"
  [ -s out.onnx ] || fail "no export after $*"
  "$zeroplan" inspect out.onnx >/dev/null || fail "a broken export after $*"
  no_process_left
}
interrupt() { kill -INT $job; }
terminate() { kill -TERM $job; }
user_signal() { kill -USR1 $job; }
one_rank() { kill -TERM "$(rank_of 2)"; }
export OMPI_MCA_odls_base_sigkill_timeout=10  # one second is short on a loaded machine
stops interrupt
stops terminate
unset OMPI_MCA_odls_base_sigkill_timeout
stops user_signal
[ "$code" = 0 ] || fail "exit code $code after a stop"
stops one_rank
[ "$code" = 0 ] || fail "exit code $code after a stop"

# T03 in the middle of a run: wherever the ranks are, the others say who is gone.
kill_rank() { kill -9 "$(rank_of 2)"; }
for _ in 1 2 3; do
  refused ' has ended (rank ' signalled kill_rank
  grep '^zeroplan: ' refused.log | tail -1 | grep -qE 'rank [0-9] is gone: its process [0-9]+ has ended \(rank [0-9], step [0-9]+, .*unit ' || fail "$(cat refused.log)"
done

# A process that is stopped is waited for, but not for long.
stop_rank() { kill -STOP "$(rank_of 2)"; }
refused ' is stopped (rank ' signalled stop_rank

# mpirun itself is killed.
kill_mpirun() { kill -9 $job; }
signalled kill_mpirun >/dev/null 2>&1 || true
for _ in $(seq 150); do pgrep -f "$work" >/dev/null || break; sleep 0.1; done
no_process_left

# Rank 0 alone fails, when the others have done their work.
few=("$zeroplan" run "$work/three.zplan" --data synthetic --steps 50)
refused '/dev/full' mpirun -n 3 "${few[@]}" --trace /dev/full
# The loss of all ranks: said once, as it is no matter of one.
refused 'is not finite' mpirun -n 3 "${few[@]}" --lr 1e6 --eps 1
[ "$(said)" = 1 ] || fail "said more than once: $(cat refused.log)"
echo "endings: passed"
