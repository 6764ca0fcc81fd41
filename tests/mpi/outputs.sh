#!/usr/bin/env bash
# What ranks that are processes write and take: one trace with all ranks, one line of metrics a step, memory within what is printed.
source "$(dirname "$0")/common.sh"
model=$models/mlp/model.onnx

# A trace on one clock: a gather ends on no rank before it has begun on all.
mpirun -n 3 "$zeroplan" train "$model" --data synthetic --steps 5 --batch 12 --trace "$work/trace.json" --metrics metrics.jsonl >trace.log 2>&1 || fail "$(cat trace.log)"
grep -q '^trace .*: steps 1 to 5 of 5$' trace.log || fail "$(cat trace.log)"
python3 - <<'SCRIPT'
import collections, json
events = [e for e in json.load(open("trace.json"))["traceEvents"] if e["ph"] == "X"]
by_rank = collections.defaultdict(list)
for e in events:
    by_rank[e["pid"]].append(e)
assert sorted(by_rank) == [0, 1, 2], sorted(by_rank)
gathers = {r: [e for e in es if e["name"].startswith(("gather_weights", "reduce_scatter", "all_reduce"))] for r, es in by_rank.items()}
assert len(gathers[0]) > 20
for r in (1, 2):
    assert [(e["name"], e["args"]["step"]) for e in gathers[r]] == [(e["name"], e["args"]["step"]) for e in gathers[0]], r
for same in zip(*gathers.values()):
    last_begin = max(e["ts"] for e in same)
    assert all(e["ts"] + e["dur"] >= last_begin for e in same), same
SCRIPT

# The printed memory, arenas and reserve, against the peak of each process.
check_peak() {
  local n=$1
  shift
  mpirun -n "$n" "$programs/mpi_peak" "$zeroplan" train "$@" --steps 4 >memory.log 2>&1 || fail "$(cat memory.log)"
  local arenas reserve
  arenas=$(awk '$1 == "sum" {print $2}' memory.log)
  reserve=$(awk '/reserve outside the arenas/ {print $5}' memory.log)
  [ "$(grep -c '^peak ' memory.log)" = "$n" ] || fail "not all peaks: $(cat memory.log)"
  for peak in $(awk '$1 == "peak" && NF == 2 {print $2}' memory.log); do
    [ "$peak" -le $((arenas + reserve)) ] || fail "-n $n $*: a peak of $peak bytes, printed are $arenas and $reserve"
    [ $((peak - arenas)) -ge $((reserve / 5)) ] || fail "-n $n $*: a reserve of nothing but air: $((peak - arenas)) of $reserve"
  done
  echo "-n $n $*: $(awk -v a="$arenas" '$1 == "peak" && NF == 2 && $2 > m {m = $2} END {print m - a}' memory.log) of $reserve"
}
"$zeroplan" new gpt2-nano -o nano.onnx >/dev/null
"$zeroplan" new gpt2-mini -o mini.onnx >/dev/null
for n in 2 4; do
  for stage in 0 3; do
    check_peak $n "$model" --data synthetic --batch 12 --micro-batches 4 --stage $stage
    check_peak $n nano.onnx --data synthetic --batch 8 --stage $stage
  done
done
check_peak 2 mini.onnx --data synthetic --batch 4
check_peak 2 mini.onnx --data synthetic --batch 4 --stage 1 --precision fp64
echo "outputs: passed"
