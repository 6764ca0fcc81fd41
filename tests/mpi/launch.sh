#!/usr/bin/env bash
# Launchers: who is started how, and what is refused at once. One rank that cannot start ends all.
source "$(dirname "$0")/common.sh"
model=$models/mlp/model.onnx
train=("$zeroplan" train "$model" --data synthetic --steps 2 --batch 12)

# Slurm is known by its variables, here set by a script that mpirun starts; it hides mpirun's.
cat >slurm.sh <<'SCRIPT'
export SLURM_PROCID=$OMPI_COMM_WORLD_RANK SLURM_STEP_NUM_TASKS=$OMPI_COMM_WORLD_SIZE SLURM_LOCALID=$OMPI_COMM_WORLD_LOCAL_RANK
export SLURM_NTASKS=$SLURM_STEP_NUM_TASKS SLURM_JOB_ID=7
unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK
exec "$@"
SCRIPT
mpirun -n 3 bash slurm.sh "${train[@]}" --export "$work/slurm.onnx" >slurm.log 2>&1 || fail "$(cat slurm.log)"
"${train[@]}" --ranks 3 --export threads.onnx >/dev/null
cmp slurm.onnx threads.onnx || fail "other weights under Slurm's variables"
[ "$(grep -c '^step 2/2' slurm.log)" = 1 ] || fail "progress of more than one rank under Slurm's variables"
refused '--ranks 2: srun started 3 processes' mpirun -n 3 bash slurm.sh "${train[@]}" --ranks 2
# In a batch script, before srun: one process.
SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 SLURM_JOB_ID=7 "${train[@]}" --ranks 2 >/dev/null || fail "a batch script's own variables"
refused "SLURM_PROCID is 'x'" env SLURM_PROCID=x SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 "${train[@]}"
refused 'a rank must be below their number' env SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 "${train[@]}"
# mpirun says 2 and MPI knows of no other process.
refused 'MPI calls it 0 of 1' env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 "${train[@]}"

# Another number of ranks. What all say alike is said once.
"$zeroplan" compile "$model" -o two.zplan --ranks 2 --batch 12 >/dev/null
refused 'two.zplan: --ranks 2: mpirun started 3 processes' mpirun -n 3 "$zeroplan" run "$work/two.zplan" --data synthetic --steps 1
[ "$(said)" = 1 ] || fail "not said once: $(cat refused.log)"
refused '--ranks 3: mpirun started 2 processes' mpirun -n 2 "${train[@]}" --ranks 3
mpirun -n 1 "${train[@]}" --ranks 2 >/dev/null 2>&1 || fail "one process with two threads"
refused 'unknown' mpirun -n 2 "${train[@]}" --unknown
[ "$(said)" = 1 ] || fail "not said once: $(cat refused.log)"

# Commands that share nothing run once. compile takes the number of processes for that of ranks.
for command in "inspect $model" "compile $model -o $work/four.zplan --batch 12" "verify $work/two.zplan" "dump $work/two.zplan" --version "train --help"; do
  $zeroplan $command >alone.log
  mpirun -n 4 "$zeroplan" $command >four.log 2>four.err || fail "mpirun $command: $(cat four.err)"
  [[ $command == compile* ]] || cmp alone.log four.log || fail "mpirun $command: other output than without"
done
[ "$(grep -c '^wrote' four.log)" = 0 ] || fail "compile ran more than once"
"$zeroplan" dump four.zplan >four.txt
grep -q '^ranks 4 ' four.txt || fail "compile under mpirun -n 4 is not for 4 ranks"
refused 'cannot' mpirun -n 2 "$zeroplan" inspect "$work/nothing.onnx"
[ "$(said)" = 2 ] || fail "one line on the launch and one on the error: $(cat refused.log)"

# per_rank NAME VALUE-OF-RANK-0 VALUE-OF-THE-OTHERS COMMAND…: ranks that are told different things, as @.
cat >per_rank.sh <<'SCRIPT'
first=$1 other=$2
shift 2
[ "$OMPI_COMM_WORLD_RANK" = 0 ] && value=$first || value=$other
exec "${@//@/$value}"
SCRIPT
differ() { local words=$1 n=$2; shift 2; refused "$words" mpirun -n "$n" bash "$work/per_rank.sh" "$@"; }

# T04: a rank has another model, or another plan of the same one.
"$zeroplan" new mlp -o other.onnx >/dev/null
differ 'ranks 0 and 1 have different plans; the first entry that differs is header' 2 "$model" "$work/other.onnx" "${train[@]:0:2}" @ "${train[@]:3}"
grep -qF '(rank 1, step 0, load' refused.log || fail "no place: $(cat refused.log)"
grep -qE 'then .*(step|unit) [0-9]+' refused.log || fail "no step or unit: $(cat refused.log)"
"$zeroplan" compile "$model" -o other.zplan --ranks 2 --batch 12 --stage 1 >/dev/null
differ 'rank 0 has --stage 3, rank 1 has --stage 1' 2 "$work/two.zplan" "$work/other.zplan" "$zeroplan" run @ --data synthetic --steps 2
# The same plan in another folder is the same.
mkdir elsewhere && cp two.zplan elsewhere/ && cp "$model" elsewhere/
mpirun -n 2 bash per_rank.sh "$work" "$work/elsewhere" "$zeroplan" run @/two.zplan --data synthetic --steps 2 >/dev/null 2>&1 || fail "the same plan, elsewhere"
# Options and data that must agree.
differ 'rank 0 has --lr 0.1, rank 1 has --lr 0.2' 2 0.1 0.2 "${train[@]}" --lr @
differ 'rank 0 has --steps 2, rank 1 has --steps 3' 2 2 3 "${train[@]:0:5}" --steps @ --batch 12
differ "rank 0 has --seed 1, rank " 3 1 2 "${train[@]}" --seed @
differ "device cuda" 2 cpu cuda "${train[@]}" --device @
differ 'rank 0 has --reduce-dtype fp32, rank 1 has --reduce-dtype bf16' 2 fp32 bf16 "${train[@]}" --reduce-dtype @
differ 'rank 0 has --threads 1, rank 1 has --threads 2' 2 1 2 "${train[@]}" --threads @
# A rank without its data.
mkdir data && cp "$models"/mlp/data/*.npy data/ 2>/dev/null || fail "no data of mlp"
differ 'nowhere' 3 "$work/data" "$work/nowhere" "$zeroplan" train "$model" --data @ --batch 12 --steps 2
grep -qF '(rank 1)' refused.log || fail "no rank: $(cat refused.log)"

# MPI that takes calls of one thread.
refused 'MPI_THREAD_MULTIPLE' mpirun -n 2 -x LD_PRELOAD="$programs/libmpi_one_thread.so" "${train[@]}"
# A build without MPI.
refused 'this build has no MPI' mpirun -n 2 "$programs/zeroplan_without_mpi" "${train[@]:1}"
"$programs/zeroplan_without_mpi" "${train[@]:1}" --ranks 2 >/dev/null || fail "a build without MPI trains no more"
echo "launch: passed"
