"""What scripts/gpu_check.sh runs on a machine with a GPU: one JSON file with what holds and what was measured.

gpu_check.py FOLDER RESULT.json: FOLDER as `gpu_check.sh pack` makes it. Ends with an error where a check fails; figures never fail.
"""
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

LIMIT = 460  # seconds in all
# Dense bf16 products of the tensor units, from the vendor's data sheets; of other cards the share is left out.
BF16_RATE = {"H200": 989e12, "H100 PCIe": 756e12, "H100": 989e12, "A100": 312e12, "B200": 2250e12}
SIZES = {  # as `zeroplan new` has them, and how many layers of it
    "gpt2-124m": dict(size="gpt2-124m", layers=12, width=768, heads=12, context=1024, vocabulary=50257, batch=8),
    "gpt2-1558m-width": dict(size="gpt2-1558m", layers=4, width=1600, heads=25, context=1024, vocabulary=50257, batch=8),
}
STEPS = 12


class Check:
    def __init__(self, folder):
        self.folder, self.begin = folder, time.monotonic()
        self.result = {"steps": [], "models": {}}
        self.environment = {**os.environ, "LD_LIBRARY_PATH": f"{folder / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"}

    def left(self):
        return LIMIT - (time.monotonic() - self.begin)

    def run(self, command, limit):
        """(exit status, output); what runs out of time counts as failed."""
        limit = min(limit, self.left())
        if limit <= 1:
            return 124, "no time left"
        try:
            done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit, env=self.environment)
        except subprocess.TimeoutExpired as expired:
            return 124, (expired.stdout or b"").decode(errors="replace") if isinstance(expired.stdout, bytes) else str(expired.stdout)
        return done.returncode, done.stdout

    def step(self, name, command, limit, required=True):
        begin = time.monotonic()
        status, output = self.run(command, limit)
        passed = status == 0
        self.result["steps"].append({"name": name, "passed": passed, "required": required, "seconds": round(time.monotonic() - begin, 1),
                                     "output": output[-4000:] if not passed else output[-600:]})
        print(f"{name}: {'passed' if passed else f'failed, status {status}'}", flush=True)
        return passed, output


def gpu():
    fields = "name,driver_version,memory.total,compute_cap"
    done = subprocess.run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits", "-i", "0"], capture_output=True, text=True, check=True)
    return dict(zip(fields.split(","), (part.strip() for part in done.stdout.strip().split(","))))


class MemoryWatch:
    """Bytes in use on the GPU above the start: what cudaMemGetInfo counts as not free, of all processes."""

    def __enter__(self):
        self.first, self.most, self.stop = self.used(), 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def used(self):
        done = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"], capture_output=True, text=True, check=True)
        return int(done.stdout) * 2**20

    def watch(self):
        while not self.stop.wait(0.2):
            self.most = max(self.most, self.used() - self.first)


def flops_per_step(s):
    """As docs/benchmarks.md counts them: 6 N + 6 L C T for each token."""
    width, layers = s["width"], s["layers"]
    parameters = s["vocabulary"] * width + s["context"] * width + layers * (12 * width**2 + 13 * width) + 2 * width
    return (6 * parameters + 6 * layers * width * s["context"]) * s["batch"] * s["context"]


def measure(check, name, s, work, card):
    """Step time, memory and, of the first model, a trace."""
    zeroplan, model, metrics, trace = check.folder / "bin/zeroplan", work / f"{name}.onnx", work / f"{name}.jsonl", work / f"{name}.trace.json"
    if not check.step(f"{name}: new", [zeroplan, "new", s["size"], "--layers", s["layers"], "-o", model], 60)[0]:
        return
    command = [zeroplan, "train", model, "--device", "cuda", "--precision", "bf16", "--data", "synthetic", "--batch", s["batch"], "--steps", STEPS, "--lr", 1e-4]
    with MemoryWatch() as memory:
        passed, _ = check.step(f"{name}: train", [*command, "--metrics", metrics], 90)
    if not passed:
        return
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    step = statistics.median(line["step_ms"] for line in lines[3:]) / 1000
    rate = next((rate for words, rate in BF16_RATE.items() if words in card["name"]), None)
    found = {"step_ms": 1000 * step, "loss": lines[-1]["loss"], "tokens_per_second": s["batch"] * s["context"] / step, "flops_per_second": flops_per_step(s) / step,
             "share_of_bf16_rate": flops_per_step(s) / step / rate if rate else None, "planned_bytes": lines[-1]["arena_bytes"], "measured_bytes": memory.most}
    check.result["models"][name] = found
    if name == "gpt2-124m" and check.step("trace", [*command[:-3], 3, "--lr", 1e-4, "--trace", trace], 60)[0]:
        events = json.loads(trace.read_text())
        found["trace_events"] = len(events["traceEvents"] if isinstance(events, dict) else events)
    options = [word for key in ("layers", "width", "heads", "context", "vocabulary", "batch") for word in (f"--{key}", s[key])]
    passed, output = check.step(f"{name}: PyTorch", [sys.executable, check.folder / "tests/bench/peer_gpt2.py", "--device", "cuda", *options, "--steps", STEPS], 60, required=False)
    if passed:
        found["pytorch"] = json.loads(output.strip().splitlines()[-1])
        found["steps_per_step_of_pytorch"] = found["pytorch"]["step_ms"] / found["step_ms"]


def checks(check, work):
    zeroplan, tests = check.folder / "bin/zeroplan", check.folder / "bin/cuda_kernels_test"
    passed, output = check.step("starts", [zeroplan, "--version"], 20)
    if not passed:
        return
    check.result["version"] = output.strip()
    if not check.step("one op case", [tests, "--gtest_filter=*KernelCase.MatchesReference/add"], 30)[0]:
        return
    passed, output = check.step("op cases", [tests, "--gtest_brief=1"], 120)
    counts = re.findall(r"\[  (PASSED|FAILED)  \] (\d+) test", output)
    check.result["op_cases"] = {word.lower(): int(count) for word, count in counts}
    models = check.folder / "tests/models"
    check.step("golden models", [sys.executable, check.folder / "tests/cuda_runs/run.py", zeroplan, models, "corner"], 120)
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer:
        check.step("memcheck of op cases", [sanitizer, "--tool", "memcheck", "--error-exitcode", 9, tests, "--gtest_brief=1", "--gtest_filter=*KernelCase.MatchesReference/*"], 100)
    else:
        check.result["steps"].append({"name": "memcheck of op cases", "passed": None, "required": False, "output": "compute-sanitizer is not on the PATH"})
    for name, size in SIZES.items():
        measure(check, name, size, work, check.result["gpu"])


def main():
    folder, result = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    check = Check(folder)
    check.result["gpu"] = gpu()
    with tempfile.TemporaryDirectory() as work:
        checks(check, pathlib.Path(work))
    check.result["seconds"] = round(time.monotonic() - check.begin, 1)
    check.result["passed"] = all(step["passed"] for step in check.result["steps"] if step["required"])
    result.write_text(json.dumps(check.result, indent=1) + "\n")
    print(f"wrote {result}: {'passed' if check.result['passed'] else 'FAILED'}")
    sys.exit(0 if check.result["passed"] else 1)


main()
