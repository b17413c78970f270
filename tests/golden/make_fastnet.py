"""The fast network for CIFAR-10 by PyTorch, for tests/nn/test_fastnet.c. Writes fastnet.json.

    python make_fastnet.py          (needs numpy and PyTorch)

Each case: `filters`, the first half of the whitening filters of the first batch's pictures, smoothed so that their pixels
are correlated; then ten training steps as make_steps.py makes them, from these filters and the program's own initial
weights. The filters come from torch.linalg.eigh in float64; of the two eigenvectors of a line, the one whose largest
component is positive is taken. Losses are of float64; `float32` is how far PyTorch's own float32 run is from them.
"""
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from make_steps import batch, optimisers, step
from shared import Words, uniform, write

STEPS, SLICES = 10, 2
SGD = dict(lr=0.02, momentum=0.85, nesterov=True, weight_decay=1e-3)
CASES = [
    dict(options=dict(width1=32, width2=40, width3=36, residual=True), x=[3, 16, 16], n=16, seed=1),
    dict(options=dict(width1=8, width2=12, width3=10, residual=False), x=[1, 20, 20], n=14, seed=2),
]


class Block(nn.Module):
    def __init__(self, i, o, residual):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o)
        self.conv2, self.norm2 = nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o)
        self.residual = residual

    def forward(self, x):
        x = F.gelu(self.norm1(F.max_pool2d(self.conv1(x), 2)))
        h = F.gelu(self.norm2(self.conv2(x)))
        return h + x if self.residual else h


class FastNet(nn.Module):
    def __init__(self, case):
        super().__init__()
        o, i = case["options"], case["x"][0]
        self.whiten = nn.Conv2d(i, 8 * i, 2)
        i *= 8
        for k in (1, 2, 3):
            setattr(self, f"block{k}", Block(i, o[f"width{k}"], o["residual"]))
            i = o[f"width{k}"]
        self.head = nn.Linear(i, case["classes"], bias=False)

    def forward(self, x, lens=None):
        h = self.block3(self.block2(self.block1(F.gelu(self.whiten(x)))))
        return self.head(h.amax((2, 3))) / 9


def smooth(x):
    """y[j] = x[j] + y[j - 1] / 2 over all numbers in a row, in float32."""
    y, last = np.empty(x.size, np.float32), np.float32(0)
    for j, v in enumerate(x.reshape(-1)):
        last = y[j] = v + np.float32(0.5) * last
    return y.reshape(x.shape)


def whitening(x):
    """[m,c,2,2], as airbench's init_whitening_conv; x [n,c,h,w]"""
    c = x.shape[1]
    patches = torch.tensor(x, dtype=torch.float64).unfold(2, 2, 1).unfold(3, 2, 1)  # [n,c,h-1,w-1,2,2]
    patches = patches.permute(0, 2, 3, 1, 4, 5).reshape(-1, c * 4)
    values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
    rows = vectors.T.flip(0)
    largest = rows.abs().argmax(1, keepdim=True)
    rows = rows * rows.gather(1, largest).sign()
    return (rows / torch.sqrt(values.flip(0) + 5e-4)[:, None]).reshape(-1, c, 2, 2)


def initialise(model, seed, filters):
    with torch.no_grad():
        for path, m in model.named_modules():
            if path == "whiten":
                m.weight.copy_(torch.cat([filters, -filters]))
                m.bias.zero_()
            elif isinstance(m, nn.Conv2d):
                m.weight.copy_(torch.tensor(uniform(seed, f"{path}.weight", tuple(m.weight.shape),
                                                    1 / math.sqrt(m.in_channels * 9))))
                nn.init.dirac_(m.weight[: m.in_channels])
            elif isinstance(m, nn.Linear):
                m.weight.copy_(torch.tensor(uniform(seed, f"{path}.weight", tuple(m.weight.shape),
                                                    1 / math.sqrt(m.in_features))))


def run(case, dtype):
    model, words = FastNet(case), Words(case["seed"])
    batches = [batch(case, words), batch(case, words)]
    filters = whitening(smooth(np.array(batches[0][0], np.float32)))
    initialise(model, case["seed"], filters.float())
    model.to(dtype).train()
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.momentum = 1.0
    opts = optimisers(case, model)
    results = [step(case, model, opts, batches[i % 2], dtype) for i in range(STEPS)]
    return filters.reshape(-1).tolist(), [r[0] for r in results], [r[1] for r in results]


def golden(case):
    case = dict(case, model="fastnet", classes=10, slices=SLICES, steps=STEPS, task="classify", optim="sgd",
                optim_options=SGD, clip=0, label_smoothing=0.2)
    filters, losses, norms = run(case, torch.float64)
    single = run(case, torch.float32)[1]
    worst = max(abs(a - b) / b for a, b in zip(single, losses))
    text = {k: {n: str(v).lower() for n, v in case[k].items()} for k in ("options", "optim_options")}
    return dict(case, **text, filters=filters, losses=losses, grad_norms=norms, float32=worst)


if __name__ == "__main__":
    torch.set_num_threads(1)
    write("fastnet.json", dict(torch=torch.__version__.split("+")[0], cases=[golden(case) for case in CASES]))
