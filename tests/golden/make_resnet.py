"""Residual networks by PyTorch, for tests/nn/test_resnet.c. Writes resnet.json.

    python make_resnet.py          (needs numpy and PyTorch)

Each case: the logits of the first LOGITS images with the initial weights in evaluation, then training steps as
make_steps.py makes them. The networks have torchvision's names; their initial weights are the program's own. Values
are of float64; `float32` is how far the losses of PyTorch's own float32 run are from them.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F

from make_steps import batch, optimisers, step
from shared import Words, normal, uniform, write

LOGITS = 4
DEPTHS = dict(resnet18=(False, [2, 2, 2, 2]), resnet34=(False, [3, 4, 6, 3]), resnet50=(True, [3, 4, 6, 3]))
SGD = dict(momentum=0.9, nesterov=True, weight_decay=5e-4)
ZERO = dict(stem="imagenet", zero_init_residual=True)

# With the default start a small slice is badly conditioned: PyTorch in float32 leaves its own float64 run by parts in
# a hundred at a learning rate of 0.01, so such a run says nothing about us. Longer runs start with the blocks as
# identities; the default start is held by its logits and by a few short steps.
CASES = [
    dict(model="resnet18", options=dict(stem="imagenet"), x=[3, 64, 64], n=8, seed=1, lr=1e-4, steps=3),
    dict(model="resnet50", options=dict(stem="imagenet"), x=[3, 64, 64], n=8, seed=2, lr=0, steps=0),
    dict(model="resnet18", options=ZERO, x=[3, 32, 32], n=8, seed=3, lr=0.001, steps=10),
    dict(model="resnet50", options=ZERO, x=[3, 32, 32], n=8, seed=4, lr=0.01, steps=3),
    dict(model="resnet18", options=dict(ZERO, stem="cifar"), x=[3, 20, 16], n=8, seed=5, lr=0.01, steps=3),
]


def conv(i, o, k, stride=1):
    return nn.Conv2d(i, o, k, stride, k // 2, bias=False)


class Block(nn.Module):
    def __init__(self, i, width, stride, bottleneck):
        super().__init__()
        o = 4 * width if bottleneck else width
        if bottleneck:
            self.conv1, self.bn1 = conv(i, width, 1), nn.BatchNorm2d(width)
            self.conv2, self.bn2 = conv(width, width, 3, stride), nn.BatchNorm2d(width)
            self.conv3, self.bn3 = conv(width, o, 1), nn.BatchNorm2d(o)
        else:
            self.conv1, self.bn1 = conv(i, width, 3, stride), nn.BatchNorm2d(width)
            self.conv2, self.bn2 = conv(width, o, 3), nn.BatchNorm2d(o)
        self.last = self.bn3 if bottleneck else self.bn2
        self.downsample = nn.Sequential(conv(i, o, 1, stride), nn.BatchNorm2d(o)) if stride != 1 or i != o else None

    def forward(self, x):
        h = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if hasattr(self, "conv3"):
            h = self.bn3(self.conv3(F.relu(h)))
        return F.relu(h + (self.downsample(x) if self.downsample else x))


class ResNet(nn.Module):
    def __init__(self, case):
        super().__init__()
        bottleneck, blocks = DEPTHS[case["model"]]
        self.small = case["options"]["stem"] == "cifar"
        self.conv1, self.bn1 = conv(3, 64, 3) if self.small else conv(3, 64, 7, 2), nn.BatchNorm2d(64)
        i = 64
        for layer in range(4):
            made, width = [], 64 << layer
            for b in range(blocks[layer]):
                made.append(Block(i, width, 2 if layer and not b else 1, bottleneck))
                i = 4 * width if bottleneck else width
            setattr(self, f"layer{layer + 1}", nn.Sequential(*made))
        self.fc = nn.Linear(i, case["classes"])
        if case["options"].get("zero_init_residual"):
            for m in self.modules():
                if isinstance(m, Block):
                    nn.init.zeros_(m.last.weight)

    def forward(self, x, lens=None):
        h = F.relu(self.bn1(self.conv1(x)))
        h = h if self.small else F.max_pool2d(h, 3, 2, 1)
        return self.fc(self.layer4(self.layer3(self.layer2(self.layer1(h)))).mean((2, 3)))


def initialise(model, seed):
    with torch.no_grad():
        for path, m in model.named_modules():
            if isinstance(m, nn.Conv2d):
                std = math.sqrt(2 / (m.out_channels * m.kernel_size[0] ** 2))
                m.weight.copy_(torch.tensor(normal(seed, f"{path}.weight", tuple(m.weight.shape), std)))
            elif isinstance(m, nn.Linear):
                for part, p in m.named_parameters():
                    p.copy_(torch.tensor(uniform(seed, f"{path}.{part}", tuple(p.shape),
                                                 1 / math.sqrt(m.in_features))))


def run(case, dtype):
    model, words = ResNet(case), Words(case["seed"])
    initialise(model, case["seed"])
    model.to(dtype)
    batches = [batch(case, words), batch(case, words)]
    with torch.no_grad():
        logits = model.eval()(torch.tensor(batches[0][0][:LOGITS], dtype=dtype))
    model.train()
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.momentum = 1.0
    opts = optimisers(case, model)
    results = [step(case, model, opts, batches[i % 2], dtype) for i in range(case["steps"])]
    return logits.reshape(-1).tolist(), [r[0] for r in results], [r[1] for r in results]


def golden(case):
    case = dict(case, classes=10, slices=2, task="classify", optim="sgd", optim_options=dict(SGD, lr=case["lr"]), clip=0)
    logits, losses, norms = run(case, torch.float64)
    single = run(case, torch.float32)[1]
    worst = max([abs(a - b) / b for a, b in zip(single, losses)], default=0.0)
    text = {k: {n: str(v).lower() for n, v in case[k].items()} for k in ("options", "optim_options")}
    return dict(case, **text, logits=logits, losses=losses, grad_norms=norms, float32=worst)


if __name__ == "__main__":
    torch.set_num_threads(1)
    write("resnet.json", dict(torch=torch.__version__.split("+")[0], cases=[golden(case) for case in CASES]))
