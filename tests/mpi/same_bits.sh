#!/usr/bin/env bash
# Each rank a process under mpirun: the same weights and losses as with ranks that are threads.
source "$(dirname "$0")/common.sh"
options=(--data synthetic --steps 4 --batch 8 --micro-batches 4)

for n in 2 4; do
  for stage in 0 1 2 3; do
    "$zeroplan" train "$models/mlp/model.onnx" "${options[@]}" --ranks $n --stage $stage --export threads.onnx --metrics threads.jsonl >/dev/null
    mpirun -n $n "$zeroplan" train "$models/mlp/model.onnx" "${options[@]}" --stage $stage --export "$work/processes.onnx" --metrics processes.jsonl \
      >processes.log 2>&1 || fail "mpirun -n $n, stage $stage: $(tail -3 processes.log)"
    cmp threads.onnx processes.onnx || fail "-n $n, stage $stage: other weights than with threads"
    cmp <(grep -o '"loss":[^,]*' threads.jsonl) <(grep -o '"loss":[^,]*' processes.jsonl) || fail "-n $n, stage $stage: other losses"
    [ "$(grep -c '^step 4/4' processes.log)" = 1 ] || fail "-n $n: progress of more than one rank"
    [ "$(wc -l <processes.jsonl)" = 4 ] || fail "-n $n: metrics of more than one rank"
    no_process_left
    rm threads.onnx processes.onnx
  done
done

# Initializers that were split are read twice for the export, by all ranks.
merged=("$zeroplan" train "$models/gpt2_nano_zero_bias/model.onnx" --data synthetic --batch 8 --steps 2)
"${merged[@]}" --ranks 2 --export threads.onnx | grep -q 'an initializer of its own' || fail "nothing was split"
mpirun -n 2 "${merged[@]}" --export "$work/processes.onnx" >processes.log 2>&1 || fail "$(tail -3 processes.log)"
cmp threads.onnx processes.onnx

# Evaluation, shuffling, a last batch that is not full, gradients in double: whatever ranks must agree on.
"$zeroplan" new gpt2-nano -o nano.onnx >/dev/null
head -c 4000 "$zeroplan" | od -An -v -tx1 | tr -d ' \n' >tokens
more=(--tokens tokens --eval-fraction 0.2 --eval-every 2 --batch 6 --micro-batches 3 --steps 5 --shuffle --clip 0.5 --precision fp64)
"$zeroplan" train nano.onnx "${more[@]}" --ranks 3 --export threads.onnx --metrics threads.jsonl >/dev/null
mpirun -n 3 "$zeroplan" train nano.onnx "${more[@]}" --export "$work/processes.onnx" --metrics processes.jsonl >processes.log 2>&1 || fail "$(tail -3 processes.log)"
cmp threads.onnx processes.onnx
numbers='"(loss|eval_loss|weight|eval_weight|grad_norm|clip_factor)": [^,]*'
cmp <(grep -oE "$numbers" threads.jsonl) <(grep -oE "$numbers" processes.jsonl)
[ "$(grep -c eval_loss processes.jsonl)" = 3 ] || fail "no evaluation"
echo "same bits: passed"
