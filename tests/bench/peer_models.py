"""A residual network and a text encoder in PyTorch, for scripts/bench.sh.

peer_models.py export NAME OUT.onnx              weights of seed 0, batch dynamic
peer_models.py train MODE NAME STEPS DATA        MODE: eager | compile | ddp | fsdp2 (the last two under torchrun); writes its batches to DATA
"""
import os
import resource
import sys
import time
import warnings

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
BATCH = {"resnet": 8, "bert": 8}  # samples per rank


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.down = None
        if stride != 1 or inputs != outputs:
            self.down = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.down is None else self.down(x)))


class ResNet(nn.Module):
    """18 layers on 3 x 64 x 64 images, 100 classes."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn = nn.BatchNorm2d(64)
        blocks, width = [], 64
        for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            blocks += [Block(width, outputs, stride), Block(outputs, outputs, 1)]
            width = outputs
        self.h = nn.ModuleList(blocks)
        self.fc = nn.Linear(512, 100)

    def forward(self, image):
        x = F.max_pool2d(F.relu(self.bn(self.stem(image))), 3, 2, 1)
        for block in self.h:
            x = block(x)
        return self.fc(x.mean((2, 3)))

    def batch(self, generator):
        return (torch.randn(BATCH["resnet"], 3, 64, 64, generator=generator), torch.randint(0, 100, (BATCH["resnet"],), generator=generator))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, c)
        x = self.norm1(x + self.out(y))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    """6 layers, 384 wide, 6 heads, 128 tokens of 8192; layer norm after the sum; the label of every token is predicted."""

    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(8192, 384), nn.Embedding(128, 384)
        self.norm = nn.LayerNorm(384)
        self.h = nn.ModuleList(Layer(384, 6) for _ in range(6))
        self.head = nn.Linear(384, 8192)

    def forward(self, tokens):
        x = self.norm(self.token(tokens) + self.place.weight)
        for layer in self.h:
            x = layer(x)
        return self.head(x)

    def batch(self, generator):
        return torch.randint(0, 8192, (BATCH["bert"], 128), generator=generator), torch.randint(0, 8192, (BATCH["bert"], 128), generator=generator)


MODELS = {"resnet": (ResNet, "image"), "bert": (Bert, "tokens")}


def build(name):
    torch.manual_seed(0)
    return MODELS[name][0]()


def export(name, path):
    model = build(name).train()
    x, _ = model.batch(torch.Generator().manual_seed(0))
    torch.onnx.export(model, (x,), path, input_names=[MODELS[name][1]], output_names=["logits"], dynamic_axes={MODELS[name][1]: {0: "batch"}, "logits": {0: "batch"}},
                      opset_version=17, dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)


def wrap(model, mode):
    if mode == "compile":
        return torch.compile(model)
    if mode == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    if mode == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for block in model.h:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    return model


def write_data(name, model, steps, ranks, folder):
    generators = [torch.Generator().manual_seed(rank) for rank in range(ranks)]
    batches = [model.batch(g) for _ in range(steps) for g in generators]
    os.makedirs(folder, exist_ok=True)
    np.save(os.path.join(folder, MODELS[name][1] + ".npy"), torch.cat([x for x, _ in batches]).numpy())
    np.save(os.path.join(folder, "labels.npy"), torch.cat([y for _, y in batches]).numpy())


def step_flops(name):
    """Counted by PyTorch for one batch, forward and backward: convolutions and matrix products."""
    from torch.utils.flop_counter import FlopCounterMode
    model = build(name)
    x, y = model.batch(torch.Generator().manual_seed(0))
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(model(x).flatten(0, -2), y.flatten()).backward()
    counts = {str(op): n for op, n in counter.get_flop_counts()["Global"].items()}
    convolutions = sum(n for op, n in counts.items() if "conv" in op)
    attention = sum(n for op, n in counts.items() if "attention" in op)
    return convolutions, sum(counts.values()) - convolutions - attention, attention


def train(mode, name, steps, folder):
    ranks, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    if ranks > 1:
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
    model = build(name)
    if rank == 0:
        write_data(name, model, steps, ranks, folder)
    generator, batch = torch.Generator().manual_seed(rank), model.batch
    model = wrap(model.train(), mode)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, foreach=True)
    times, losses = [], []
    for _ in range(steps):
        x, y = batch(generator)
        start = time.perf_counter()
        loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        mean = loss.detach().clone()
        if ranks > 1:
            dist.all_reduce(mean)
            mean /= ranks
        losses.append(mean.item())
        times.append(time.perf_counter() - start)
    peak = torch.tensor([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0])
    if ranks > 1:
        dist.all_reduce(peak, op=dist.ReduceOp.MAX)
    if rank == 0:
        step = sorted(times[2:])[len(times[2:]) // 2]
        print("losses", " ".join(f"{loss:.6f}" for loss in losses))
        print(f"samples/s={ranks * BATCH[name] / step:.3f} peak_rss/rank={peak.item():.0f} flops " + " ".join(str(n) for n in step_flops(name)), flush=True)
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1] == "export":
        export(*sys.argv[2:4])
    else:
        train(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
