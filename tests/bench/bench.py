"""Times zeroplan and PyTorch on one model in turn and prints one table. Run by scripts/bench.sh."""
import argparse
import collections
import json
import os
import re
import statistics
import subprocess
import sys

SIZES = {  # as in the peers' gpt2.py: layers, width, heads, context, vocabulary, batch per rank
    "mini": dict(L=6, C=384, H=6, T=256, V=8192, B=4),
    "small": dict(L=12, C=768, H=12, T=512, V=50257, B=1),
}
STEPS = {"mini": 8, "small": 5}


def flops_per_token(L, C, T, V, **_):
    """llm.c's convention: 6 N + 6 L C T."""
    n = V * C + T * C + L * (12 * C * C + 13 * C) + 2 * C
    return 6 * n + 6 * L * C * T


def run(command, env=None):
    """(output, largest resident bytes of the process and the children it waited for)."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"bench: failed: {' '.join(command)}\n{output}")
    return output, usage.ru_maxrss * 1024


def spawn(args, mode, script, words):
    """Output of a peer; modes of several ranks run under torchrun with two."""
    launcher = [args.python]
    if mode in ("fsdp2", "ddp", "ds3"):
        launcher = [os.path.join(os.path.dirname(args.python), "torchrun"), "--nproc-per-node", "2"]
    return run(launcher + [script] + [str(word) for word in words])[0]


class Gpt:
    """A size of the peers' gpt2.py; the rate is in tokens."""
    unit, options = "tokens", []

    def __init__(self, args, size):
        self.args, self.name, self.steps = args, size, STEPS[size]
        self.config = SIZES[size]
        self.batch, self.per_sample = self.config["B"], self.config["T"]
        self.model = os.path.join(args.work, size + ".onnx")
        if args.python == "none":
            run([args.zeroplan, "new", "gpt2-" + size, "-o", self.model])
        else:
            run([args.python, os.path.join(args.peers, "export.py"), size, self.model, "--dynamic"])

    def peer(self, mode, data):
        return spawn(self.args, mode, os.path.join(self.args.peers, "peer_torch.py"), [mode, self.name, self.steps, "data=" + data])

    def rate(self, output):
        return float(re.search(r"tok/s=(\d+)", output).group(1))

    def flops(self):
        """Of one unit."""
        return flops_per_token(**self.config)

    def work(self):
        """GFLOP of one step of one rank, by family, where it is counted in products."""
        L, width = self.config["L"], self.config["C"]
        tokens = self.batch * self.per_sample
        pairs = self.batch * self.per_sample * (self.per_sample + 1) / 2  # causal
        return {
            "matrix products": 6 * tokens * (L * 12 * width**2 + self.config["V"] * width) / 1e9,
            "attention": L * (2 + 5) * 2 * pairs * width / 1e9,  # two products forward, five backward
        }


class Exported:
    """A model of peer_models.py; the rate is in samples, and PyTorch counts the work."""
    unit, batch, per_sample = "samples", 8, 1
    options = ["--loss", "softmax_cross_entropy(logits, labels)"]
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer_models.py")

    def __init__(self, args, name):
        self.args, self.name, self.steps = args, name, 8
        self.model = os.path.join(args.work, name + ".onnx")
        self.counted = None
        run([args.python, self.script, "export", name, self.model])

    def peer(self, mode, data):
        output = spawn(self.args, mode, self.script, ["train", mode, self.name, self.steps, data])
        self.counted = [float(n) for n in re.search(r"flops ([\d. ]+)", output).group(1).split()]
        return output

    def rate(self, output):
        return float(re.search(r"samples/s=([\d.]+)", output).group(1))

    def flops(self):
        return sum(self.counted) / self.batch

    def work(self):
        return dict(zip(("convolutions", "matrix products", "attention"), (n / 1e9 for n in self.counted)))


def run_peer(args, case, mode, data):
    output = case.peer(mode, data)
    losses = [float(x) for x in re.search(r"losses ([\d. ]+)", output).group(1).split()]
    peak = float(re.search(r"peak_rss/rank=(\d+)", output).group(1)) * 2**20
    return dict(losses=losses, rate=case.rate(output), bytes=peak - args.import_bytes)


def run_zeroplan(args, case, data, ranks, threads, stage, trace=None):
    metrics = os.path.join(args.work, "metrics.jsonl")
    samples = case.batch * ranks
    command = [args.zeroplan, "train", case.model, "--ranks", str(ranks), "--threads", str(threads), "--stage", str(stage), "--batch", str(samples),
               "--data", data, "--steps", str(case.steps), "--lr", "3e-4", "--weight-decay", "0.1", "--metrics", metrics] + case.options
    output, peak = run(command + (["--trace", trace] if trace else []))
    lines = [json.loads(line) for line in open(metrics)]
    step = statistics.median(line["step_ms"] for line in lines[2:])
    base = run([args.zeroplan, "--version"])[1]
    return dict(losses=[line["loss"] for line in lines], rate=samples * case.per_sample / step * 1000, bytes=(peak - base) / ranks,
                arena=lines[0]["arena_bytes"])


def median(rows, key):
    return statistics.median(row[key] for row in rows)


def row(name, case, rows):
    rate = median(rows, "rate")
    spread = f"{min(r['rate'] for r in rows):.4g}–{max(r['rate'] for r in rows):.4g}"
    print(f"| {name} | {rate:.4g} ({spread}) | {rate * case.flops() / 1e9:.0f} | {median(rows, 'bytes') / 2**20:.0f} |")


def compare(args, case, mode, ranks, threads, stage):
    """One alternating series: peer, zeroplan, peer, zeroplan, …"""
    data = os.path.join(args.work, f"data_{case.name}_{mode}")
    ours, theirs = [], []
    for _ in range(args.repeats):
        theirs.append(run_peer(args, case, mode, data))
        ours.append(run_zeroplan(args, case, data, ranks, threads, stage))
    print(f"\n{case.name}, {ranks} × {threads} thread(s), fp32, AdamW, {args.repeats} alternating runs of {case.steps} steps\n")
    print(f"| | {case.unit}/s (min–max) | GFLOP/s | peak MiB per rank above start |\n|---|---|---|---|")
    row(f"PyTorch {mode}", case, theirs)
    row(f"zeroplan stage {stage}", case, ours)
    ratio = statistics.median(o["rate"] / t["rate"] for o, t in zip(ours, theirs))
    difference = max(abs(a - b) / abs(b) for a, b in zip(ours[0]["losses"], theirs[0]["losses"]))
    print(f"\nzeroplan / {mode}: {ratio:.2f} × {case.unit}/s, {median(ours, 'bytes') / median(theirs, 'bytes'):.2f} × memory; planned arenas "
          f"{ours[0]['arena'] / 2**20:.0f} MiB per rank; losses differ by at most {difference:.1e} (relative)")
    print("losses zeroplan: " + " ".join(f"{loss:.6f}" for loss in ours[0]["losses"]))
    print(f"losses {mode}: " + " ".join(f"{loss:.6f}" for loss in theirs[0]["losses"]))


FAMILIES = {  # operators that share a row; the others stand alone
    "matmul": "matrix products", "attention": "attention", "attention_grad": "attention", "layer_norm": "layer norm", "layer_norm_grad": "layer norm",
    "cross_entropy": "cross entropy", "cross_entropy_grad": "cross entropy", "optimizer_update": "update", "grad_norm": "update",
    "conv": "convolutions", "conv_grad_input": "convolutions", "conv_grad_weight": "convolutions", "batch_norm": "batch norm", "batch_norm_grad": "batch norm",
    "gelu": "elementwise", "gelu_grad": "elementwise", "add": "elementwise", "elementwise": "elementwise", "reduce_sum": "bias gradients",
}


def op_shares(args, case, data, machine):
    """Where a step's time goes on rank 0, and each family's rate beside the machine's own for matrix products."""
    trace = os.path.join(args.work, "trace.json")
    run_zeroplan(args, case, data, 2, 1, 3, trace)
    events = [e for e in json.load(open(trace))["traceEvents"] if e["ph"] == "X" and e["pid"] == 0]
    last = max(event["args"]["step"] for event in events)
    warm = range(last - case.steps // 2 + 1, last + 1)  # the second half of the steps
    spent = collections.Counter()
    for event in events:
        if event["args"]["step"] in warm:
            op, stream = event["name"].split()[0], ["compute", "gather", "reduce"][event["tid"]]
            spent[FAMILIES.get(op, op) if stream == "compute" else f"{op} ({stream} stream)"] += event["dur"] / 1000 / len(warm)
    total = sum(ms for family, ms in spent.items() if "stream" not in family)
    work = case.work()
    print(f"\none {case.name} step on rank 0, mean of {len(warm)} (2 ranks × 1 thread); the machine's matrix products: {machine:.0f} GFLOP/s per core with both busy\n")
    print("| family | ms | share of compute | GFLOP/s | share of the machine's rate |\n|---|---|---|---|---|")
    for family, ms in spent.most_common(14):
        rate = work[family] / ms * 1000 if family in work else None
        print(f"| {family} | {ms:.1f} | {'' if 'stream' in family else f'{ms / total:.1%}'} | " +
              (f"{rate:.0f} | {rate / machine:.0%} |" if rate else " | |"))
    rate = sum(work.values()) / total * 1000
    print(f"| all of compute | {total:.1f} | | {rate:.0f} | {rate / machine:.0%} |")


def machine_rate(args):
    """oneDNN's rate per core on the shapes of gpt2-mini, each shape once, both cores busy."""
    command = [args.kernels, "--benchmark_filter=matmul/.*/1/", "--benchmark_format=json", "--benchmark_min_time=0.3"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(2)]
    results = [json.loads(p.communicate()[0])["benchmarks"] for p in processes]
    print("\nmatrix products alone, both cores busy, GFLOP/s per core\n\n| case | core 0 | core 1 |\n|---|---|---|")
    work = time = 0
    for a, b in zip(*results):
        print(f"| {a['name'].split('/')[1]} | {a['GFLOP/s']:.0f} | {b['GFLOP/s']:.0f} |")
        for case in (a, b):
            work += case["GFLOP/s"] * case["real_time"]
            time += case["real_time"]
    return work / time


def main():
    parser = argparse.ArgumentParser()
    for name in ("zeroplan", "kernels", "peers", "python", "work"):
        parser.add_argument("--" + name)
    parser.add_argument("--repeats", type=int)
    args = parser.parse_args()
    args.zeroplan = os.path.abspath(args.zeroplan)
    machine = machine_rate(args)
    if args.python == "none":
        op_shares(args, Gpt(args, "mini"), "synthetic", machine)
        return
    args.import_bytes = run([args.python, "-c", "import torch, torch.distributed.fsdp, torch.distributed.device_mesh"])[1]
    cases = {size: Gpt(args, size) for size in SIZES}
    cases.update((name, Exported(args, name)) for name in ("resnet", "bert"))
    for name in ("mini", "resnet", "bert"):
        compare(args, cases[name], "fsdp2", 2, 1, 3)
        op_shares(args, cases[name], os.path.join(args.work, f"data_{name}_fsdp2"), machine)
    compare(args, cases["small"], "fsdp2", 2, 1, 3)
    for name in ("mini", "resnet", "bert"):
        for mode in ("eager", "compile"):
            compare(args, cases[name], mode, 1, 2, 0)


main()
