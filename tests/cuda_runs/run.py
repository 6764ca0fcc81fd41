"""Whole runs with --device cuda on a GPU or the stand-in: losses against the golden ones in float64, and one set of bits for all ways to run.

usage: run.py ZEROPLAN MODELS mlp|nccl|short|delays|gpt2|conv|bf16|matrix|corner
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

# Of a loss, relative to the golden one.
TOLERANCE = {"fp32": 1e-5, "bf16": 2e-2}
# With statistics of eight samples, Adam divides gradients by their own size that are only rounding: PyTorch's autocast is 4.1e-2 off.
GOLDEN_OF = {("resnet_nano", "bf16"): "golden2.json"}  # SGD's
DELAYED_RUNS = 20  # scripts/check_full.sh asks for more
MODELS = ["mlp", "gpt2_nano_dynamo", "gpt2_nano_ts", "gpt2_nano_logits", "gpt2_nano_static", "gpt2_nano_zero_bias", "llama_nano", "llama_nano_op23",
          "llama_nano_op23_rope", "lstm_nano", "bert_nano", "resnet_nano", "resnet_nano_eval", "unet_nano", "vit_nano"]
MICRO_BATCHES = {"resnet_nano": 1}  # the reference normalises with the whole batch's statistics; others: 4
OPTIONS = {"gpt2_nano_logits": ["--dim", "seq=16"]}


class Breach(Exception):
    pass


class Runs:
    """Of one model in one precision: the largest error of a loss, and the bits of each run."""

    def __init__(self, zeroplan, models, work, name, precision="fp32"):
        self.zeroplan, self.folder, self.work, self.name, self.precision = zeroplan, models / name, work, name, precision
        self.golden = json.loads((self.folder / GOLDEN_OF.get((name, precision), "golden.json")).read_text())
        self.error, self.bits, self.slowest = 0.0, {}, (0.0, "")

    def command(self, tag, options):
        golden, optimizer, loss = self.golden, self.golden["optimizer"], self.golden["loss"]
        command = [self.zeroplan, "train", self.folder / "model.onnx", "--device", "cuda", "--data", self.folder / "data", "--batch", golden["global_batch"],
                   "--steps", golden["steps"], "--optimizer", optimizer["kind"], "--lr", optimizer["lr"], "--weight-decay", optimizer["weight_decay"],
                   "--precision", self.precision, "--micro-batches", MICRO_BATCHES.get(self.name, 4), "--metrics", self.work / f"{tag}.jsonl",
                   "--export", self.work / "out/trained.onnx", *OPTIONS.get(self.name, []), *options]
        if "momentum" in optimizer:
            command += ["--momentum", optimizer["momentum"]]
        if loss["kind"] == "softmax_cross_entropy":
            command += ["--loss", f"softmax_cross_entropy(logits, labels, axis={loss.get('class_axis', -1)})"]
        return [str(part) for part in command]

    def train(self, tag, options, environment=None):
        begin = time.monotonic()
        (self.work / "out").mkdir(exist_ok=True)
        done = subprocess.run(self.command(tag, options), capture_output=True, text=True, env={**os.environ, **(environment or {})})
        self.slowest = max(self.slowest, (time.monotonic() - begin, tag))
        if done.returncode != 0:
            raise Breach(f"{self.name} {self.precision} {tag}: exit status {done.returncode}\n{done.stderr[-2000:]}")
        losses = [json.loads(line)["loss"] for line in (self.work / f"{tag}.jsonl").read_text().splitlines()]
        for step, (got, want) in enumerate(zip(losses, self.golden["losses"], strict=True), 1):
            error = abs(got - want) / abs(want)
            if not error <= TOLERANCE[self.precision]:
                raise Breach(f"{self.name} {self.precision} {tag}: loss {got} in step {step}, not {want}")
            self.error = max(self.error, error)
        files = sorted((self.work / "out").iterdir())  # a folder of its own: the model names its data, which may not replace another's
        self.bits[tag] = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
        for file in files:
            file.unlink()

    def sweep(self, ranks=(1, 2, 4), stages=(0, 1, 2, 3), graphs=("on",)):
        for n in ranks:
            for stage in stages:
                for graph in graphs:
                    self.train(f"ranks {n} stage {stage} graph {graph}", ["--ranks", n, "--stage", stage, "--cuda-graph", graph])

    def close(self):
        if len(set(self.bits.values())) != 1:
            raise Breach(f"{self.name} {self.precision}: the exports differ: {json.dumps(self.bits, indent=1)}")
        print(f"{self.name} {self.precision}: {len(self.bits)} runs, losses within {self.error:.1e}, one set of bits", flush=True)


def mlp(start):
    runs = start("mlp")
    runs.sweep(graphs=("on", "off"))
    runs.close()


def nccl(start):
    """Ranks with a GPU each reduce by NCCL: ordered, the bits of any other way; fast, close to them and the same each time."""
    gpus = {"CUDA_HOST_DEVICE_COUNT": "4"}
    runs = start("mlp")
    runs.train("alone", ["--ranks", 1])
    runs.train("on one GPU", ["--ranks", 2])
    for ranks in (2, 4):
        for stage in range(4):
            runs.train(f"ranks {ranks} stage {stage}", ["--ranks", ranks, "--stage", stage], gpus)
    runs.close()
    runs = start("mlp")
    for i in range(2):
        runs.train(f"fast {i}", ["--ranks", 4, "--reduce", "fast"], gpus)
    runs.close()
    runs = start("gpt2_nano_dynamo")
    runs.train("alone", ["--ranks", 1])
    runs.train("two GPUs", ["--ranks", 2], gpus)
    runs.close()


def short(start):
    """For builds with a sanitizer."""
    runs = start("mlp")
    runs.sweep(ranks=(2,), stages=(0, 3))
    runs.sweep(ranks=(2,), stages=(3,), graphs=("off",))
    runs.close()


def delays(start):
    runs = start("mlp")
    for seed in range(int(os.environ.get("ZEROPLAN_DELAYED_RUNS", DELAYED_RUNS))):
        runs.train(f"seed {seed}", ["--ranks", 2], {"CUDA_HOST_SEED": str(seed), "CUDA_HOST_MAX_DELAY_US": "300"})
    runs.close()


def gpt2(start):
    runs = start("gpt2_nano_dynamo")
    runs.sweep(ranks=(1, 2), stages=(3,))
    runs.close()


def conv(start):
    runs = start("resnet_nano_eval")
    runs.sweep(ranks=(2,), stages=(3,))
    runs.close()


def bf16(start):
    runs = start("mlp", "bf16")
    runs.sweep(ranks=(1, 2, 4), stages=(0, 3))
    runs.close()
    runs = start("gpt2_nano_dynamo", "bf16")
    runs.sweep(ranks=(2,), stages=(3,))
    runs.close()


def matrix(start, all_ranks=(1, 2, 4), stages=(0, 1, 2, 3), models=MODELS):
    """Every model, precision, number of ranks and stage, each with its line; goes on after a breach and names them all in the end."""
    breaches = []
    chosen = os.environ.get("ZEROPLAN_MODELS", " ".join(models)).split()
    print(f"{'model':22} {'precision':9} {'runs':>4} {'seconds':>8} {'largest error':>13} {'bits':>5}  slowest run", flush=True)
    for name in chosen:
        for precision in TOLERANCE:
            runs, begin, state = start(name, precision), time.monotonic(), "one"
            for n in all_ranks:
                for stage in stages:
                    try:
                        runs.sweep(ranks=(n,), stages=(stage,))
                    except Breach as breach:
                        breaches.append(str(breach))
            if len(set(runs.bits.values())) != 1:
                state = str(len(set(runs.bits.values())))
                breaches.append(f"{name} {precision}: sets of bits: {json.dumps(runs.bits, indent=1)}")
            print(f"{name:22} {precision:9} {len(runs.bits):4} {time.monotonic() - begin:8.1f} {runs.error:13.1e} {state:>5}"
                  f"  {runs.slowest[0]:.1f} s: {runs.slowest[1]}", flush=True)
    if breaches:
        raise Breach("\n".join(breaches))
    print(f"matrix: {len(chosen)} models, fp32 and bf16, ranks {list(all_ranks)}, stages {list(stages)}: no breach")


def corner(start):
    """A model of each kind at stage 3 with 1 and 2 ranks: for a GPU that is lent for minutes."""
    matrix(start, (1, 2), (3,), ["mlp", "gpt2_nano_dynamo", "llama_nano", "lstm_nano", "bert_nano", "resnet_nano", "vit_nano"])


def main():
    zeroplan, folder, part = sys.argv[1:]
    parts = {"mlp": mlp, "nccl": nccl, "short": short, "delays": delays, "gpt2": gpt2, "conv": conv, "bf16": bf16, "matrix": matrix, "corner": corner}
    with tempfile.TemporaryDirectory() as work:
        try:
            parts[part](lambda name, precision="fp32": Runs(zeroplan, pathlib.Path(folder), pathlib.Path(work), name, precision))
        except Breach as breach:
            sys.exit(str(breach))


main()
