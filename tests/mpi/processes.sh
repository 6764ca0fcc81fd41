#!/usr/bin/env bash
# processes.sh ZEROPLAN MODELS: each rank a process under mpirun. The same bytes as with ranks that are threads; one failure ends all.
set -euo pipefail
zeroplan=$1 models=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMP_NUM_THREADS=1

fail() { echo "processes: $*" >&2; exit 1; }
options=(--data synthetic --steps 4 --batch 8 --micro-batches 4)

# The same export and the same losses, whatever the stage.
for n in 2 4; do
  for stage in 0 1 2 3; do
    "$zeroplan" train "$models/mlp/model.onnx" "${options[@]}" --ranks $n --stage $stage --export threads.onnx --metrics threads.jsonl >/dev/null
    mpirun -n $n "$zeroplan" train "$models/mlp/model.onnx" "${options[@]}" --stage $stage --export processes.onnx --metrics processes.jsonl \
      >processes.log 2>&1 || fail "mpirun -n $n, stage $stage: $(tail -3 processes.log)"
    cmp threads.onnx processes.onnx || fail "-n $n, stage $stage: other weights than with threads"
    cmp <(grep -o '"loss":[^,]*' threads.jsonl) <(grep -o '"loss":[^,]*' processes.jsonl) || fail "-n $n, stage $stage: other losses"
    [ "$(grep -c '^step 4/4' processes.log)" = 1 ] || fail "-n $n: progress of more than one rank"
    rm threads.onnx processes.onnx
  done
done

# refused COMMAND…: it fails within 15 seconds, leaves no process, and its output holds $words.
refused() {
  local begin=$SECONDS
  if "$@" >refused.log 2>&1; then fail "$* was not refused"; fi
  grep -q -- "$words" refused.log || fail "no '$words' from $*: $(cat refused.log)"
  [ $((SECONDS - begin)) -le 15 ] || fail "$* took $((SECONDS - begin)) seconds to end"
  ! pgrep -f "$work" >/dev/null || fail "$* left a process"
}

"$zeroplan" compile "$models/mlp/model.onnx" -o two.zplan --ranks 2 --batch 8 >/dev/null
words='the plan is for 2 ranks, but 3 processes were started' refused mpirun -n 3 "$zeroplan" run "$work/two.zplan" --data synthetic --steps 1
words='--ranks 3: mpirun started 2 processes' refused mpirun -n 2 "$zeroplan" train "$models/mlp/model.onnx" --ranks 3 --data synthetic --steps 1
words="'inspect' works in one" refused mpirun -n 2 "$zeroplan" inspect "$models/mlp/model.onnx"

# T04: a rank has another plan.
"$zeroplan" compile "$models/mlp/model.onnx" -o other.zplan --ranks 2 --batch 16 >/dev/null
cat >other.sh <<SCRIPT
[ "\$OMPI_COMM_WORLD_RANK" = 1 ] && plan=$work/other.zplan || plan=$work/two.zplan
exec $zeroplan run \$plan --data synthetic --steps 3
SCRIPT
words='have different plans' refused mpirun -n 2 bash other.sh

# T03: a rank is killed while the others wait for it.
"$zeroplan" compile "$models/mlp/model.onnx" -o three.zplan --ranks 3 --batch 9 >/dev/null
killed() {
  mpirun -n 3 "$zeroplan" run "$work/three.zplan" --data synthetic --steps 1000000 >killed.log 2>&1 &
  local job=$!
  for _ in $(seq 300); do grep -q '^step 3/' killed.log && break || sleep 0.1; done
  pkill -9 -n -f "$work/three.zplan" || fail "no rank to kill: $(cat killed.log)"
  wait $job && local code=0 || local code=$?
  cat killed.log
  return $code
}
words='signal 9' refused killed
echo "processes: all passed"
