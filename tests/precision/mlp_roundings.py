"""Trains tests/models/mlp in NumPy with the roundings of --precision bf16 and fp16, and writes what precision_test compares with.

    python3 mlp_roundings.py ../models/mlp        (NumPy, onnx)

Arithmetic is float64; what is stored in 16 bits or float32 is rounded there, to the nearest, ties to even:
weights and activations in 16 bits, the loss in float32, gradients of activations in 16 bits, those of parameters in float32 (a product of
16-bit operands, never rounded to 16 bits), master, moments and update in float32. On the CPU a product is rounded before its bias is
added; on a GPU ("… with bias") the product adds the bias, and is rounded once.
"""

import json
import sys

import numpy as np
import onnx
from onnx import numpy_helper


def bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def fp16(x):
    return np.asarray(x, np.float64).astype(np.float16).astype(np.float64)


def f32(x):
    return np.asarray(x, np.float64).astype(np.float32).astype(np.float64)


def train(folder, half, steps, adds_bias):
    model = onnx.load(folder + "/model.onnx")
    master = {i.name: f32(numpy_helper.to_array(i)) for i in model.graph.initializer}
    x_all, target_all = (np.load(f"{folder}/data/{name}.npy").astype(np.float64).reshape(-1, width) for name, width in (("x", 6), ("target", 3)))
    golden = json.load(open(folder + "/golden.json"))["optimizer"]
    lr, (beta1, beta2), eps, decay = golden["lr"], golden["betas"], golden["eps"], golden["weight_decay"]
    m = {name: np.zeros_like(w) for name, w in master.items()}
    v = {name: np.zeros_like(w) for name, w in master.items()}
    losses = []
    product = (lambda x: x) if adds_bias else half
    for t in range(1, steps + 1):
        x, target = x_all[(t - 1) * 8 : t * 8], target_all[(t - 1) * 8 : t * 8]
        w1, b1, w2, b2 = (half(master[n]) for n in ("net.fc1.weight", "net.fc1.bias", "net.out.weight", "net.out.bias"))
        xh = half(x)
        hidden = half(product(xh @ w1.T) + b1)
        active = np.maximum(hidden, 0)
        out = half(product(active @ w2.T) + b2)
        difference = f32(out - target)
        losses.append(float(np.mean(f32(difference * difference))))
        # Backward starts at the sum of the squares; the update divides by their number.
        d_out = half(f32(2 * difference))
        d_hidden = half(d_out @ w2) * (hidden > 0)
        gradients = {
            "net.out.bias": d_out.sum(0),
            "net.out.weight": d_out.T @ active,
            "net.fc1.bias": d_hidden.sum(0),
            "net.fc1.weight": d_hidden.T @ xh,
        }
        for name, gradient in gradients.items():
            g = f32(f32(gradient) / difference.size)
            p = f32(master[name] * (1 - lr * decay))
            m[name] = f32(m[name] + (1 - beta1) * (g - m[name]))
            v[name] = f32(v[name] * beta2 + (1 - beta2) * g * g)
            step = lr / (1 - beta1**t) * m[name] / (np.sqrt(v[name]) / np.sqrt(1 - beta2**t) + eps)
            master[name] = f32(p - step)
    return losses, {name: [float(x) for x in w.ravel()] for name, w in master.items()}


def main(folder):
    result = {}
    for name, half, adds_bias in (("bf16", bf16, False), ("f16", fp16, False), ("bf16 with bias", bf16, True), ("f16 with bias", fp16, True)):
        losses, weights = train(folder, half, 10, adds_bias)
        result[name] = {"losses": losses, "net.out.bias": weights["net.out.bias"], "net.fc1.bias": weights["net.fc1.bias"]}
    with open(folder + "/golden_half.json", "w") as file:
        json.dump(result, file, indent=1)


main(sys.argv[1])
