"""Ten training steps of each model by PyTorch, for tests/nn/test_golden.c. Writes steps.json.

    python make_steps.py          (needs numpy and PyTorch)

A step is cohort's: the global batch of n samples is cut at floor(i n / S) into S slices; each slice is computed alone,
its loss summed; gradients are added, divided once by what counts in the whole batch (samples, or tokens that are not
ignored), clipped, applied. Running statistics are averaged over the slices by their samples. Steps take two batches in
turn. The values stored are of float64; `float32` is how far PyTorch's own float32 run is from them.
"""
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from shared import Words, normal, uniform, write

STEPS, SLICES, IGNORE = 10, 4, -100

CASES = [
    dict(model="linear", options={}, task="regress", x=[13], y_width=3, n=26, seed=1, optim="sgd",
         optim_options=dict(lr=0.1), clip=0),
    dict(model="mlp", options=dict(hidden=32, layers=2, dropout=0), task="classify", x=[20], classes=5, n=30, seed=2,
         optim="adamw", optim_options=dict(lr=0.01, weight_decay=0.1), clip=0),
    dict(model="cnn", options=dict(width=8, dropout=0), task="classify", x=[1, 8, 8], classes=10, n=35, seed=3,
         optim="sgd", optim_options=dict(lr=0.05, momentum=0.9), clip=0),
    dict(model="lm", options=dict(d_model=16, heads=2, layers=2, dropout=0), task="lm", x=[], classes=17, max_len=12,
         len_step=4, n=11, seed=4, optim="adam", optim_options=dict(lr=0.01), clip=0.3),
]


class Linear(nn.Module):
    def __init__(self, case):
        super().__init__()
        self.fc = nn.Linear(math.prod(case["x"]), case["y_width"])

    def forward(self, x, lens):
        return self.fc(x.flatten(1))


class MLP(nn.Module):
    def __init__(self, case):
        super().__init__()
        hidden = case["options"]["hidden"]
        self.fc1, self.fc2 = nn.Linear(math.prod(case["x"]), hidden), nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, case["classes"])

    def forward(self, x, lens):
        return self.head(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


class CNN(nn.Module):
    def __init__(self, case):
        super().__init__()
        w = case["options"]["width"]
        self.conv1, self.bn1 = nn.Conv2d(case["x"][0], w, 3, padding=1, bias=False), nn.BatchNorm2d(w)
        self.conv2, self.bn2 = nn.Conv2d(w, 2 * w, 3, padding=1, bias=False), nn.BatchNorm2d(2 * w)
        self.conv3, self.bn3 = nn.Conv2d(2 * w, 2 * w, 3, padding=1, bias=False), nn.BatchNorm2d(2 * w)
        self.fc = nn.Linear(2 * w, case["classes"])

    def forward(self, x, lens):
        h = F.relu(self.bn1(self.conv1(x)))
        h = F.max_pool2d(F.relu(self.bn2(self.conv2(h))), 2)
        h = F.relu(self.bn3(self.conv3(h)))
        return self.fc(h.mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, lens):
        n, t, d = x.shape
        q, k, v = (a.reshape(n, t, self.heads, d // self.heads).transpose(1, 2) for a in self.qkv(x).split(d, 2))
        at = torch.arange(t)
        seen = (at[None, :] <= at[:, None])[None] & (at[None, None, :] < lens[:, None, None])  # [n, query, key]
        h = F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None])
        return self.proj(h.transpose(1, 2).reshape(n, t, d))


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(d), Attention(d, heads), nn.LayerNorm(d)
        self.mlp = nn.ModuleDict(dict(fc1=nn.Linear(d, 4 * d), fc2=nn.Linear(4 * d, d)))

    def forward(self, x, lens):
        x = x + self.attn(self.norm1(x), lens)
        return x + self.mlp["fc2"](F.gelu(self.mlp["fc1"](self.norm2(x))))


class LM(nn.Module):
    def __init__(self, case):
        super().__init__()
        o = case["options"]
        self.tok = nn.Embedding(case["classes"], o["d_model"], sparse=True)
        self.pos = nn.Embedding(case["max_len"], o["d_model"])
        self.blocks = nn.ModuleList(Block(o["d_model"], o["heads"]) for _ in range(o["layers"]))
        self.norm, self.head = nn.LayerNorm(o["d_model"]), nn.Linear(o["d_model"], case["classes"], bias=False)

    def forward(self, x, lens):
        x = self.tok(x) + self.pos.weight[: x.shape[1]]
        for block in self.blocks:
            x = block(x, lens)
        return self.head(self.norm(x))


MODELS = dict(linear=Linear, mlp=MLP, cnn=CNN, lm=LM)


def initialise(model, seed):
    """The program's own initial weights, by parameter name."""
    with torch.no_grad():
        for path, module in model.named_modules():
            for part, p in module.named_parameters(recurse=False):
                name = f"{path}.{part}"
                if isinstance(module, (nn.Linear, nn.Conv2d)):
                    value = uniform(seed, name, tuple(p.shape), 1 / math.sqrt(module.weight[0].numel()))
                elif isinstance(module, nn.Embedding):
                    value = normal(seed, name, tuple(p.shape), 1)
                else:
                    continue  # norms start at 1 and 0
                p.copy_(torch.tensor(value))


def batch(case, words):
    """Sample by sample: x, then y. Text: its length, then one token more than that."""
    n = case["n"]
    if case["task"] == "lm":
        texts = []
        for _ in range(n):
            length = 3 + words.u32() % (case["max_len"] - 2)
            texts.append([words.u32() % case["classes"] for _ in range(length + 1)])
        return texts
    x, y = [], []
    for _ in range(n):
        x.append(words.units(*case["x"]))
        y.append(words.units(case["y_width"]) if case["task"] == "regress" else words.u32() % case["classes"])
    return np.stack(x), np.stack(y)


def cut(case, data, lo, hi, dtype):
    """Slice [lo, hi) as tensors x, y, lens."""
    if case["task"] != "lm":
        y = torch.tensor(data[1][lo:hi])
        return torch.tensor(data[0][lo:hi], dtype=dtype), y.to(dtype) if case["task"] == "regress" else y, None
    lens = torch.tensor([len(t) - 1 for t in data[lo:hi]])
    step = case["len_step"]
    width = (int(lens.max()) + step - 1) // step * step
    x = torch.tensor([t[:-1] + [0] * (width - len(t) + 1) for t in data[lo:hi]])
    y = torch.tensor([t[1:] + [IGNORE] * (width - len(t) + 1) for t in data[lo:hi]])
    return x, y, lens


def loss_of(case, pred, y):
    """Sum over the slice, and how much of it counts."""
    if case["task"] == "regress":
        return F.mse_loss(pred, y, reduction="none").mean(1).sum(), len(y)
    return (F.cross_entropy(pred.reshape(-1, case["classes"]), y.reshape(-1), reduction="sum", ignore_index=IGNORE,
                            label_smoothing=case.get("label_smoothing", 0.0)),
            int((y != IGNORE).sum()))


def optimisers(case, model):
    o = case["optim_options"]
    if case["optim"] == "sgd":
        return [torch.optim.SGD(model.parameters(), **o)]
    if case["optim"] == "adamw":
        return [torch.optim.AdamW(model.parameters(), **o)]
    rest = [p for name, p in model.named_parameters() if name != "tok.weight"]
    return [torch.optim.Adam(rest, **o), torch.optim.SparseAdam([model.tok.weight], **o)]


def gradients(model):
    """The values of every gradient: of a sparse one, those of its rows."""
    for p in model.parameters():
        p.grad = p.grad.coalesce() if p.grad.is_sparse else p.grad
        yield p.grad.values() if p.grad.is_sparse else p.grad


def step(case, model, opts, data, dtype):
    n, slices, total, count = case["n"], case.get("slices", SLICES), 0, 0
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    old = [(m.running_mean.clone(), m.running_var.clone()) for m in norms]
    seen = [[0, 0] for _ in norms]
    model.zero_grad()
    for s in range(slices):
        lo, hi = s * n // slices, (s + 1) * n // slices
        x, y, lens = cut(case, data, lo, hi, dtype)
        loss, rows = loss_of(case, model(x, lens), y)
        loss.backward()
        total, count = total + float(loss.detach()), count + rows
        for m, sums in zip(norms, seen):  # their momentum is 1: they now hold this slice's own statistics
            sums[0], sums[1] = sums[0] + (hi - lo) * m.running_mean, sums[1] + (hi - lo) * m.running_var
    grads = list(gradients(model))
    norm = math.sqrt(sum(float((g / count).double().square().sum()) for g in grads))
    factor = min(1, case["clip"] / (norm + 1e-6)) if case["clip"] > 0 else 1
    with torch.no_grad():
        for g in grads:
            g.mul_(factor / count)
        for m, (mean, var), sums in zip(norms, old, seen):
            m.running_mean.copy_(0.9 * mean + 0.1 * sums[0] / n)
            m.running_var.copy_(0.9 * var + 0.1 * sums[1] / n)
    for o in opts:
        o.step()
    return total / count, norm


def run(case, dtype):
    model = MODELS[case["model"]](case)
    initialise(model, case["seed"])
    model.to(dtype).train()
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.momentum = 1.0
    opts, words = optimisers(case, model), Words(case["seed"])
    batches = [batch(case, words), batch(case, words)]
    results = [step(case, model, opts, batches[i % 2], dtype) for i in range(STEPS)]
    return [r[0] for r in results], [r[1] for r in results], model.state_dict()


KEPT = dict(linear=["fc.weight", "fc.bias"], mlp=["fc1.weight", "head.bias"],
            cnn=["conv1.weight", "bn2.weight", "bn2.running_mean", "bn3.running_var", "fc.bias"],
            lm=["tok.weight", "pos.weight", "blocks.1.mlp.fc1.weight", "norm.weight", "head.weight"])


def golden(case):
    losses, norms, state = run(case, torch.float64)
    single = run(case, torch.float32)[0]
    worst = max(abs(a - b) / b for a, b in zip(single, losses))
    text = {k: str(v).lower() for k, v in case["options"].items()}
    optim_text = {k: str(v).lower() for k, v in case["optim_options"].items()}
    return dict(case, options=text, optim_options=optim_text, losses=losses, grad_norms=norms, float32=worst,
                final={name: state[name].reshape(-1)[:8].tolist() for name in KEPT[case["model"]]})


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.sparse.check_sparse_tensor_invariants.enable()
    write("steps.json", dict(torch=torch.__version__.split("+")[0], steps=STEPS, slices=SLICES,
                             cases=[golden(case) for case in CASES]))
