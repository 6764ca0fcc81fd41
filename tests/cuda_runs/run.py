"""Whole runs with --device cuda on the stand-in: losses against the golden ones in float64, and one set of bits for all ways to run.

usage: run.py ZEROPLAN MODELS mlp|nccl|delays|gpt2
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOLERANCE = 1e-5  # of a loss in fp32, relative to the golden one or absolute where that is below 1
DELAYED_RUNS = 20  # scripts/check_full.sh asks for more


def train(zeroplan, folder, name, work, tag, options, environment=None):
    golden = json.loads((folder / name / "golden.json").read_text())
    optimizer = golden["optimizer"]
    command = [zeroplan, "train", folder / name / "model.onnx", "--device", "cuda", "--data", folder / name / "data", "--batch", golden["global_batch"],
               "--steps", golden["steps"], "--optimizer", optimizer["kind"], "--lr", optimizer["lr"], "--weight-decay", optimizer["weight_decay"],
               "--metrics", work / f"{tag}.jsonl", "--export", work / f"{tag}.onnx", *options]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        sys.exit(f"{name} {tag}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    losses = [json.loads(line)["loss"] for line in (work / f"{tag}.jsonl").read_text().splitlines()]
    for step, (got, want) in enumerate(zip(losses, golden["losses"], strict=True), 1):
        if not abs(got - want) <= TOLERANCE * max(1, abs(want)):
            sys.exit(f"{name} {tag}: loss {got} in step {step}, not {want}")
    files = [work / f"{tag}.onnx", work / f"{tag}.onnx.data"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files if file.exists())).hexdigest()


def one_set_of_bits(name, results):
    if len(set(results.values())) != 1:
        sys.exit(f"{name}: the exports differ: {json.dumps(results, indent=1)}")
    print(f"{name}: {len(results)} runs, losses within {TOLERANCE}, one set of bits")


def mlp(zeroplan, folder, work):
    one_set_of_bits("mlp", {
        tag: train(zeroplan, folder, "mlp", work, tag, ["--micro-batches", 4, "--ranks", ranks, "--stage", stage, "--cuda-graph", graph])
        for ranks in (1, 2, 4) for stage in range(4) for graph in ("on", "off") for tag in [f"{ranks}-{stage}-{graph}"]})


def nccl(zeroplan, folder, work):
    """Ranks with a GPU each reduce by NCCL: ordered, the bits of any other way; fast, close to them and the same each time."""
    gpus = {"CUDA_HOST_DEVICE_COUNT": "4"}
    run = lambda tag, options, environment=None: train(zeroplan, folder, "mlp", work, tag, ["--micro-batches", 4, *options], environment)
    results = {f"{ranks}-{stage}": run(f"{ranks}-{stage}", ["--ranks", ranks, "--stage", stage], gpus) for ranks in (2, 4) for stage in range(4)}
    one_set_of_bits("mlp by NCCL", {"alone": run("alone", ["--ranks", 1]), "one GPU": run("one", ["--ranks", 2]), **results})
    fast = {i: run(f"fast-{i}", ["--ranks", 4, "--reduce", "fast"], gpus) for i in range(2)}  # losses within the tolerance
    one_set_of_bits("mlp by NCCL, fast", fast)
    gpt2 = lambda tag, ranks, environment=None: train(zeroplan, folder, "gpt2_nano_dynamo", work, tag, ["--micro-batches", 2, "--ranks", ranks], environment)
    one_set_of_bits("gpt2_nano_dynamo by NCCL", {"alone": gpt2("g1", 1), "two GPUs": gpt2("g2", 2, gpus)})


def delays(zeroplan, folder, work):
    runs = int(os.environ.get("ZEROPLAN_DELAYED_RUNS", DELAYED_RUNS))
    one_set_of_bits("mlp with random delays of streams", {
        seed: train(zeroplan, folder, "mlp", work, str(seed), ["--micro-batches", 4, "--ranks", 2],
                    {"CUDA_HOST_SEED": str(seed), "CUDA_HOST_MAX_DELAY_US": "300"}) for seed in range(runs)})


def gpt2(zeroplan, folder, work):
    one_set_of_bits("gpt2_nano_dynamo", {ranks: train(zeroplan, folder, "gpt2_nano_dynamo", work, str(ranks), ["--micro-batches", 2, "--ranks", ranks])
                                         for ranks in (1, 2)})


def main():
    zeroplan, folder, part = sys.argv[1:]
    with tempfile.TemporaryDirectory() as work:
        {"mlp": mlp, "nccl": nccl, "delays": delays, "gpt2": gpt2}[part](zeroplan, pathlib.Path(folder), pathlib.Path(work))


main()
