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


class Peer:
    def __init__(self, args):
        self.args = args
        self.import_bytes = run([args.python, "-c", "import torch, torch.distributed.fsdp, torch.distributed.device_mesh"])[1]

    def run(self, mode, size, data=None):
        script = os.path.join(self.args.peers, "peer_torch.py")
        launcher = [self.args.python]
        if mode in ("fsdp2", "ddp", "ds3"):
            launcher = [os.path.join(os.path.dirname(self.args.python), "torchrun"), "--nproc-per-node", "2"]
        output, _ = run(launcher + [script, mode, size, str(STEPS[size])] + ([f"data={data}"] if data else []))
        losses = [float(x) for x in re.search(r"losses ([\d. ]+)", output).group(1).split()]
        peak = float(re.search(r"peak_rss/rank=(\d+)", output).group(1)) * 2**20
        return dict(losses=losses, tokens=float(re.search(r"tok/s=(\d+)", output).group(1)), bytes=peak - self.import_bytes)


def run_zeroplan(args, model, data, size, ranks, threads, stage, trace=None):
    metrics = os.path.join(args.work, "metrics.jsonl")
    config = SIZES[size]
    samples = config["B"] * (ranks if ranks > 1 else 1)
    command = [args.zeroplan, "train", model, "--ranks", str(ranks), "--threads", str(threads), "--stage", str(stage), "--batch", str(samples),
               "--data", data, "--steps", str(STEPS[size]), "--lr", "3e-4", "--weight-decay", "0.1", "--metrics", metrics]
    output, peak = run(command + (["--trace", trace] if trace else []))
    lines = [json.loads(line) for line in open(metrics)]
    tokens = samples * config["T"]
    step = statistics.median(line["step_ms"] for line in lines[2:])
    base = run([args.zeroplan, "--version"])[1]
    return dict(losses=[line["loss"] for line in lines], tokens=tokens / step * 1000, bytes=(peak - base) / ranks, arena=lines[0]["arena_bytes"])


def median(rows, key):
    return statistics.median(row[key] for row in rows)


def row(name, size, rows):
    rate = median(rows, "tokens")
    gflops = rate * flops_per_token(**SIZES[size]) / 1e9
    spread = f"{min(r['tokens'] for r in rows):.0f}–{max(r['tokens'] for r in rows):.0f}"
    print(f"| {name} | {rate:.0f} ({spread}) | {gflops:.0f} | {median(rows, 'bytes') / 2**20:.0f} |")


def compare(args, peer, size, model, mode, ranks, threads, stage):
    """One alternating series: peer, zeroplan, peer, zeroplan, …"""
    data = os.path.join(args.work, f"data_{size}_{mode}")
    ours, theirs = [], []
    for _ in range(args.repeats):
        theirs.append(peer.run(mode, size, data))
        ours.append(run_zeroplan(args, model, data, size, ranks, threads, stage))
    print(f"\n{size}, {ranks} × {threads} thread(s), fp32, AdamW, {args.repeats} alternating runs of {STEPS[size]} steps\n")
    print("| | tokens/s (min–max) | GFLOP/s | peak MiB per rank above start |\n|---|---|---|---|")
    row(f"PyTorch {mode}", size, theirs)
    row(f"zeroplan stage {stage}", size, ours)
    ratio = statistics.median(o["tokens"] / t["tokens"] for o, t in zip(ours, theirs))
    difference = max(abs(a - b) / abs(b) for a, b in zip(ours[0]["losses"], theirs[0]["losses"]))
    print(f"\nzeroplan / {mode}: {ratio:.2f} × tokens/s, {median(ours, 'bytes') / median(theirs, 'bytes'):.2f} × memory; planned arenas "
          f"{ours[0]['arena'] / 2**20:.0f} MiB per rank; losses differ by at most {difference:.1e} (relative)")
    print("losses zeroplan: " + " ".join(f"{loss:.6f}" for loss in ours[0]["losses"]))
    print(f"losses {mode}: " + " ".join(f"{loss:.6f}" for loss in theirs[0]["losses"]))


FAMILIES = {  # operators that share a row; the others stand alone
    "matmul": "matrix products", "attention": "attention", "attention_grad": "attention", "layer_norm": "layer norm", "layer_norm_grad": "layer norm",
    "cross_entropy": "cross entropy", "cross_entropy_grad": "cross entropy", "optimizer_update": "update", "grad_norm": "update",
    "gelu": "elementwise", "gelu_grad": "elementwise", "add": "elementwise", "elementwise": "elementwise", "reduce_sum": "bias gradients",
}


def family_gflops(size):
    """Work of one step of one rank, by family, where it is counted in products."""
    config = SIZES[size]
    tokens, width = config["B"] * config["T"], config["C"]
    pairs = config["B"] * config["T"] * (config["T"] + 1) / 2  # causal
    return {
        "matrix products": 6 * tokens * (config["L"] * 12 * width**2 + config["V"] * width) / 1e9,
        "attention": config["L"] * (2 + 5) * 2 * pairs * width / 1e9,  # two products forward, five backward
    }


def op_shares(args, model, data, size, machine):
    """Where a step's time goes on rank 0, and each family's rate beside the machine's own for matrix products."""
    trace = os.path.join(args.work, "trace.json")
    run_zeroplan(args, model, data, size, 2, 1, 3, trace)
    events = [e for e in json.load(open(trace))["traceEvents"] if e["ph"] == "X" and e["pid"] == 0]
    last = max(event["args"]["step"] for event in events)
    warm = range(last - STEPS[size] // 2 + 1, last + 1)  # the second half of the steps
    spent = collections.Counter()
    for event in events:
        if event["args"]["step"] in warm:
            op, stream = event["name"].split()[0], ["compute", "gather", "reduce"][event["tid"]]
            spent[FAMILIES.get(op, op) if stream == "compute" else f"{op} ({stream} stream)"] += event["dur"] / 1000 / len(warm)
    total = sum(ms for family, ms in spent.items() if "stream" not in family)
    work = family_gflops(size)
    print(f"\none {size} step on rank 0, mean of {len(warm)} (2 ranks × 1 thread); the machine's matrix products: {machine:.0f} GFLOP/s per core with both busy\n")
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
        model = os.path.join(args.work, "mini.onnx")
        run([args.zeroplan, "new", "gpt2-mini", "-o", model])
        op_shares(args, model, "synthetic", "mini", machine)
        return
    peer = Peer(args)
    models = {}
    for size in SIZES:
        models[size] = os.path.join(args.work, size + ".onnx")
        run([args.python, os.path.join(args.peers, "export.py"), size, models[size], "--dynamic"])
    compare(args, peer, "mini", models["mini"], "fsdp2", 2, 1, 3)
    op_shares(args, models["mini"], os.path.join(args.work, "data_mini_fsdp2"), "mini", machine)
    compare(args, peer, "small", models["small"], "fsdp2", 2, 1, 3)
    compare(args, peer, "mini", models["mini"], "eager", 1, 2, 0)
    compare(args, peer, "mini", models["mini"], "compile", 1, 2, 0)


main()
