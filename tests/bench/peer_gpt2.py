"""A GPT-2 in PyTorch, for figures beside zeroplan's: same sizes, tokens at random, AdamW. Prints one line of JSON.

peer_gpt2.py --device cuda|cpu --layers L --width C --heads H --context T --vocabulary V --batch B --steps N [--compile]
On a GPU the products run in bfloat16 by autocast, weights and update in float32; on the CPU all is float32.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.token, self.place = nn.Embedding(a.vocabulary, a.width), nn.Embedding(a.context, a.width)
        self.h = nn.ModuleList(Block(a.width, a.heads) for _ in range(a.layers))
        self.norm = nn.LayerNorm(a.width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.place.weight
        for block in self.h:
            x = block(x)
        logits = self.norm(x) @ self.token.weight.T  # tied
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cuda", "cpu"), required=True)
    for name in ("layers", "width", "heads", "context", "vocabulary", "batch", "steps"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--compile", action="store_true")
    a = parser.parse_args()
    cuda = a.device == "cuda"
    torch.manual_seed(0)
    model = Gpt2(a).to(a.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=cuda or None)
    run = torch.compile(model) if a.compile else model
    times, loss = [], None
    for _ in range(a.steps):
        tokens = torch.randint(0, a.vocabulary, (2, a.batch, a.context), device=a.device)
        if cuda:
            torch.cuda.synchronize()
        begin = time.perf_counter()
        with torch.autocast(a.device, torch.bfloat16, enabled=cuda):
            loss = run(tokens[0], tokens[1])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    peak = torch.cuda.max_memory_reserved() if cuda else None
    late = times[min(3, len(times) - 1):]  # after the allocator and the libraries have settled
    print(json.dumps({"step_ms": 1000 * statistics.median(late), "loss": loss.item(), "reserved_bytes": peak, "torch": torch.__version__}))


main()
