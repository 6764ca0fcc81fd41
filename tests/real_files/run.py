"""Trains each file of files.py towards a noisy copy of itself and judges by ONNX Runtime. Run by scripts/real_files.sh."""
import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile

import numpy
import onnxruntime

import files

STEPS = 20
TOLERANCE = 1e-4        # of the outputs, between ONNX Runtime and zeroplan, relative to the output's largest value where that is above 1
LOSS_TOLERANCE = 1e-3   # of the losses, relative


class Failed(Exception):
    pass


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}\n{done.stdout}")
    return done.stdout


def onnx_runtime(model, file, data):
    """Outputs by name. Samples lie on the first axis of `data`; a file with a fixed batch gets them piece by piece."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = {}
    for entry in session.get_inputs():
        if entry.name in file.bound:
            kind = {"float": "float32", "double": "float64"}.get(entry.type[7:-1], entry.type[7:-1])
            feed[entry.name] = numpy.array(file.bound[entry.name], dtype=kind)
    names = [entry.name for entry in session.get_outputs()]
    pieces = []
    for piece in range(file.pieces if file.fixed else 1):
        for name, values in data.items():
            part = values if name in file.whole else numpy.split(values, file.pieces)[piece] if file.fixed else values
            feed[name] = part if name in file.whole else numpy.moveaxis(part, 0, file.axes.get(name, 0))
        pieces.append(session.run(names, {entry.name: feed[entry.name] for entry in session.get_inputs()}))
    return {name: numpy.concatenate(parts) if file.fixed else parts[0] for name, *parts in zip(names, *pieces)}


def file_name(value):
    return value.replace("/", "_") + ".npy"


def cpu_seconds():
    """Of this process and all that it waited for: what counts where a machine is shared."""
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def mse(a, b):
    return float(numpy.mean((a.astype(numpy.float64) - b.astype(numpy.float64)) ** 2))


def largest_difference(ours, theirs):
    worst = 0.0
    for name, values in theirs.items():
        mine = ours(name)
        if mine.shape != values.shape:
            raise Failed(f"output {name} has shape {mine.shape}, ONNX Runtime gives {values.shape}")
        a, b = mine.astype(numpy.float64), values.astype(numpy.float64)
        if not numpy.isfinite(b).all():
            raise Failed(f"output {name} of ONNX Runtime is not finite")
        worst = max(worst, float(numpy.abs(a - b).max(initial=0)) / max(1.0, float(numpy.abs(b).max(initial=0))))
    return worst


def close(what, a, b):
    if not abs(a - b) <= LOSS_TOLERANCE * max(abs(a), abs(b)):
        raise Failed(f"{what}: zeroplan {a:.6g}, ONNX Runtime {b:.6g}")


class Check:
    def __init__(self, args, file, folder):
        self.args, self.file, self.folder = args, file, folder
        self.model = os.path.join(args.wheels, file.wheel, file.path)
        self.zeroplan = os.path.join(args.build, "zeroplan")
        self.options = list(file.options)
        for name, value in file.bound.items():
            self.options += ["--bind", f"{name}={value}"]
        self.loss = ["--loss", f"mse({file.output}, target)"]

    def path(self, name):
        return os.path.join(self.folder, name)

    def inspect(self):
        text = run(self.zeroplan, "inspect", self.model, *self.options, *self.loss)
        if self.args.verbose:
            print(text)
        return [int(n) for n in re.search(r"trainable: (\d+) in (\d+) tensors?; frozen: (\d+)", text).groups()]

    def predict(self, model, name):
        """Output name -> values. Of a file with a fixed batch, piece by piece: its outputs need not have an axis of samples."""
        pieces = self.file.pieces if self.file.fixed else 1
        for piece in range(pieces):
            data, out = self.path(f"{name}.data{piece}"), self.path(f"{name}{piece}")
            os.mkdir(out)
            self.save(data, {n: numpy.split(v, pieces)[piece] if self.file.fixed else v for n, v in self.data.items()})
            run(self.zeroplan, "predict", model, "--data", data, "-o", out, *self.options, *([] if self.file.fixed else self.ranks))
        return lambda output: numpy.concatenate([numpy.load(self.path(f"{name}{piece}/{file_name(output)}")) for piece in range(pieces)])

    def save(self, folder, values):
        os.mkdir(folder)
        for name, array in values.items():
            numpy.save(os.path.join(folder, file_name(name)), array)

    def make_data(self):
        self.data = self.file.data(numpy.random.default_rng(1))
        self.samples = next(iter(self.data.values())).shape[0]
        self.ranks = ["--batch", str(self.samples), "--ranks", "2", "--micro-batches", str(self.file.pieces)]
        self.save(self.path("data"), self.data)
        run(os.path.join(self.args.build, "perturb"), self.model, "-o", self.path("teacher.onnx"), "--noise", str(self.file.noise),
            *self.options, *self.loss)
        self.target = onnx_runtime(self.path("teacher.onnx"), self.file, self.data)[self.file.output]
        numpy.save(self.path("data/target.npy"), self.target)

    def train(self):
        text = run(self.zeroplan, "train", self.model, "--data", self.path("data"), "--eval-data", self.path("data"), "--steps", str(STEPS),
                   "--optimizer", "adam", "--lr", str(self.file.lr), "--metrics", self.path("metrics.jsonl"),
                   "--export", self.path("trained.onnx"), *self.options, *self.loss, *self.ranks)
        if self.args.verbose:
            print(text)
        lines = [json.loads(line) for line in open(self.path("metrics.jsonl"))]
        return lines[0]["loss"], lines[-1]["eval_loss"]

    def judge(self, model, name, loss):
        """The largest difference of the outputs."""
        theirs = onnx_runtime(model, self.file, self.data)
        close(f"loss of {name}", loss, mse(theirs[self.file.output], self.target))
        return largest_difference(self.predict(model, name), theirs)

    def run(self):
        begin = cpu_seconds()
        trainable, tensors, frozen = self.inspect()
        self.make_data()
        first, last = self.train()
        worst = max(self.judge(self.model, "original", first), self.judge(self.path("trained.onnx"), "trained", last))
        row = (self.file.name, trainable, tensors, frozen, first, last, worst, cpu_seconds() - begin)
        print("%-24s trained %8d in %3d, frozen %7d   loss %.3g -> %.3g   ONNX Runtime differs by %.1e   %4.1f s of CPU" % row, flush=True)
        if trainable != self.file.trainable:
            raise Failed(f"{trainable} elements are trained, {self.file.trainable} expected")
        if not last <= first / 2:
            raise Failed(f"the loss went from {first:.6g} to {last:.6g}, not to half")
        if worst > TOLERANCE:
            raise Failed(f"ONNX Runtime's outputs differ by {worst:.2g}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wheels", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    failures = 0
    for file in files.FILES:
        if args.only not in file.name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                Check(args, file, folder).run()
            except Failed as failure:
                failures += 1
                print(f"{file.name}: {failure}", file=sys.stderr)
    sys.exit(1 if failures else 0)


main()
