#!/usr/bin/env bash
# One rank fails, is killed or stalls, in each kind of step of each program: all end, and the last line says where.
source "$(dirname "$0")/common.sh"
model=$models/mlp/model.onnx
ln -s "$programs/mpi_fault" "$work/mpi_fault"  # a process that is left is known by this folder
kinds=()

# fault FAULT RANKS RANK STAGE PROGRAM INDEX
fault() { mpirun -n "$2" "$work/mpi_fault" "$model" "$1" "$3" "$5" "$6" "$4"; }

step_of() { case $1 in load) echo "step 0," ;; micro_step | update) echo "step 1," ;; *) echo "step 2," ;; esac; }

for stage in 0 3; do
  while read -r program index kind unit; do
    kinds+=("$kind")
    refused "injected fault (rank 1, $(step_of "$program")" fault throw 3 1 $stage "$program" "$index"
    line=$(grep '^zeroplan: ' refused.log)
    for words in "$program[$index] " "unit $([ "$unit" = none ] || echo "$unit")" "parameter"; do
      [[ $line == *"$words"* ]] || fail "no '$words' in: $line"
    done
    [ "$(said)" = 1 ] || fail "more than one line: $(cat refused.log)"
  done < <("$work/mpi_fault" "$model" list 3 $stage)
done
for kind in kernel all_gather reduce_scatter all_reduce free host; do
  [[ " ${kinds[*]} " == *" $kind "* ]] || fail "no step of the kind $kind was tried"
done

# where WORDS: the last line has the words, and the place of a rank that waited.
where() {
  line=$(grep '^zeroplan: ' refused.log | tail -1)
  [[ $line =~ $1\ \(rank\ [0-9],\ step\ 1,.*$program\[$index\]\ $kind,\ unit\ [a-z].*parameters?\ [a-z] ]] || fail "no place in: $line"
}

# Where another rank waits for it: the first gather, reduction and sum of training.
while read -r program index kind unit; do
  case $program,$kind in micro_step,all_gather | micro_step,reduce_scatter | update,all_reduce) ;; *) continue ;; esac
  for rank in 0 2; do
    # T03: killed. The others see its process end.
    refused "rank $rank is gone: its process " fault kill 3 $rank 3 "$program" "$index"
    where 'has ended'
    # It lives, but never comes.
    refused "rank $rank did not come within 3000 ms" fault stall 3 $rank 3 "$program" "$index"
    where 'within 3000 ms'
  done
done < <("$work/mpi_fault" "$model" list 3 3)
echo "faults: passed"
