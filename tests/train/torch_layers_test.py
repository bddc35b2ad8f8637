#!/usr/bin/env python3
"""torch_layers_test.py TRAIN_LAYERS: the built-in compute against PyTorch, forwards and backwards.

The program prints parameters, inputs and what it made of them; here torch does the same in double.
Ends with status 77, which CTest takes for a skip, where torch is not installed.
"""
import json
import math
import os
import subprocess
import sys
import unittest

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    debian = "/usr/bin/python3"  # whose package it is
    if sys.executable != debian and os.path.exists(debian):
        os.execv(debian, [debian, "-B", *sys.argv])
    print("skipped: python3-torch is not installed (scripts/deps test brings it)")
    sys.exit(77)

DATA = json.loads(subprocess.run([sys.argv.pop(1)], check=True, capture_output=True, text=True).stdout)
NEAR = 2e-5


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def matrix(of):
    return tensor(of["values"]).reshape(of["rows"], of["cols"])


def cut(parameters, *shapes):
    """The flat parameters as tensors of these shapes, one after another."""
    out, at = [], 0
    for shape in shapes:
        out.append(parameters[at:at + math.prod(shape)].reshape(shape))
        at += math.prod(shape)
    return out


def mlp(parameters, x, inputs, units, outputs, activation):
    w1, b1, w2 = cut(parameters, (inputs, units), (units,), (units, outputs))
    return activation(x @ w1 + b1) @ w2


def gelu(x):
    return F.gelu(x, approximate="tanh")


def norm(x):
    return F.layer_norm(x, x.shape[1:], eps=1e-5)


def conv(p, x):
    w, b = cut(p, (3, 3, 3, 4), (4,))
    image = x.reshape(-1, 6, 5, 3).permute(0, 3, 1, 2)
    out = F.conv2d(image, w.permute(3, 2, 0, 1), b, stride=2, padding=1)
    return out.permute(0, 2, 3, 1).reshape(x.shape[0], -1)


def attention_slice(p, x, heads, each):
    w, v = cut(p, (12, 3 * heads * each), (heads * each, 12))
    q, k, values = (norm(x) @ w).reshape(2, 5, 3, heads, each).permute(2, 0, 3, 1, 4)
    scores = q @ k.transpose(2, 3) / math.sqrt(each)
    scores = scores.masked_fill(torch.ones(5, 5).triu(1).bool(), float("-inf"))
    return (scores.softmax(3) @ values).permute(0, 2, 1, 3).reshape(10, heads * each) @ v


def embedding(p, x):
    tokens, positions = cut(p, (6, 3), (4, 3))
    return (tokens[x.long()] + positions).reshape(-1, 3)


def halves(p):
    return p[:len(p) // 2], p[len(p) // 2:]


LAYERS = {
    "dense": lambda p, x: x @ cut(p, (7, 5), (5,))[0] + cut(p, (7, 5), (5,))[1],
    "relu": lambda p, x: F.relu(x),
    "gelu": lambda p, x: gelu(x),
    "mlp": lambda p, x: sum(mlp(half, x, 7, 4, 5, F.relu) for half in halves(p)),
    "residual_mlp": lambda p, x: x + sum(mlp(half, norm(x), 6, 4, 6, gelu) for half in halves(p)),
    "norm": lambda p, x: F.layer_norm(x, (9,), *cut(p, (9,), (9,)), eps=1e-5),
    "conv": conv,
    "attention": lambda p, x: x + sum(attention_slice(half, x, 2, 3) for half in halves(p)),
    "embedding": embedding,
}


class TorchTest(unittest.TestCase):
    def near(self, ours, theirs, what):
        self.assertEqual(ours.shape, theirs.shape, what)
        self.assertLess((ours - theirs).abs().max().item() if ours.numel() else 0, NEAR, what)

    def test_layers(self):
        self.assertEqual(set(DATA["layers"]), set(LAYERS))
        for name, layer in LAYERS.items():
            with self.subTest(name):
                case = DATA["layers"][name]
                parameters = tensor(case["parameters"]).requires_grad_()
                x = matrix(case["input"]).requires_grad_(name != "embedding")
                out = layer(parameters, x)
                self.near(matrix(case["output"]), out, "output")
                out.backward(matrix(case["output_gradient"]))
                if parameters.numel():
                    self.near(tensor(case["gradient"]), parameters.grad, "gradient of the parameters")
                if x.grad is not None:
                    self.near(matrix(case["input_gradient"]), x.grad, "gradient of the input")

    def test_losses(self):
        for name, case in DATA["losses"].items():
            with self.subTest(name):
                out, targets = matrix(case["output"]).requires_grad_(), matrix(case["targets"])
                loss = F.cross_entropy(out, targets.flatten().long()) if name == "cross_entropy" else F.mse_loss(out, targets)
                loss.backward()
                self.assertAlmostEqual(case["mean"], loss.item(), delta=NEAR)
                self.near(matrix(case["gradient"]), out.grad, "gradient")

    def test_optimizers(self):
        make = {
            "sgd:decay=0.1": lambda p: torch.optim.SGD(p, lr=0.05, weight_decay=0.1),
            "sgd:momentum=0.9,decay=0.1": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.1),
            "adam:decay=0.1": lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.1),
        }
        self.assertEqual(set(DATA["optimizers"]), set(make))
        for name, case in DATA["optimizers"].items():
            with self.subTest(name):
                parameters = tensor(case["start"]).requires_grad_()
                optimizer = make[name]([parameters])
                for gradient in case["gradients"]:
                    parameters.grad = tensor(gradient)
                    optimizer.step()
                self.near(tensor(case["end"]), parameters.detach(), "parameters")


if __name__ == "__main__":
    print(f"kernels: {DATA['kernels']}, torch {torch.__version__}")
    unittest.main()
