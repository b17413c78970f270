#!/usr/bin/env python3
"""The PyTorch arm of the accuracy comparison: CIFAR-10, resnet18 of torchvision, recipe `experiment=cifar`.

SGD with Nesterov momentum and weight decay, one cycle of the learning rate (and of the momentum, as OneCycleLR has it),
crops of padded pictures and flips; 45,000 pictures to train on, 5,000 to validate, 10,000 to test. Batch statistics are
those of the whole batch unless --slices says otherwise. The last line is a JSON object.

    cifar.py --data FOLDER --epochs 3 [--lr 0.1 --batch 128 --threads 2 --seed 0 --limit N]
"""
import argparse
import json
import lzma
import os
import time

import numpy as np
import torch
import torchvision

from common import accuracy, augment, train_epoch

MEAN = torch.tensor([0.4914, 0.4822, 0.4465]).view(1, 3, 1, 1)
STD = torch.tensor([0.2470, 0.2435, 0.2616]).view(1, 3, 1, 1)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True, help="folder with data_batch_1.bin ... test_batch.bin, plain or .xz")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--lr", type=float, default=0.1, help="the highest of the cycle")
    p.add_argument("--momentum", type=float, default=0.9, help="where the cycle does not set it")
    p.add_argument("--weight-decay", type=float, default=5e-4)
    p.add_argument("--label-smoothing", type=float, default=0.0)
    p.add_argument("--no-cycle-momentum", action="store_true")
    p.add_argument("--slices", type=int, default=1, help="parts of a batch, each with batch statistics of its own")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--limit", type=int, default=0, help="use only so many pictures of each part")
    return p.parse_args()


def read(folder, name):
    path = os.path.join(folder, name + ".bin")
    opener = open if os.path.exists(path) else lzma.open
    with opener(path if opener is open else path + ".xz", "rb") as f:
        rows = np.frombuffer(f.read(), dtype=np.uint8).reshape(-1, 3073)
    return torch.from_numpy(rows[:, 1:].reshape(-1, 3, 32, 32).copy()), torch.from_numpy(rows[:, 0].astype(np.int64))


def load(args):
    parts = [read(args.data, f"data_batch_{i}") for i in range(1, 6)]
    x, y = (torch.cat(t) for t in zip(*parts))
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(42))
    x, y = x[order], y[order]
    sets = {"train": (x[:45000], y[:45000]), "val": (x[45000:], y[45000:]), "test": read(args.data, "test_batch")}
    return {k: (a[:args.limit], b[:args.limit]) if args.limit else (a, b) for k, (a, b) in sets.items()}


def normal(x):
    return (x.float() / 255 - MEAN) / STD


def prepare(x):
    return normal(augment(x, 32, 4))


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    sets = load(args)
    model = torchvision.models.resnet18(num_classes=10)
    sgd = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum, weight_decay=args.weight_decay,
                          nesterov=True)
    steps = args.epochs * -(-len(sets["train"][0]) // args.batch)
    cycle = torch.optim.lr_scheduler.OneCycleLR(sgd, args.lr, total_steps=steps,
                                                cycle_momentum=not args.no_cycle_momentum)
    loss_of = torch.nn.CrossEntropyLoss(reduction="sum", label_smoothing=args.label_smoothing)
    began = time.monotonic()
    for epoch in range(args.epochs):
        loss = train_epoch(model, sgd, cycle, loss_of, prepare, *sets["train"], args)
        val = accuracy(model, normal, *sets["val"])
        print(f"epoch {epoch + 1}/{args.epochs}  train loss {loss:.4f}  val acc {val:.4f}", flush=True)
    print(json.dumps({"test_acc": accuracy(model, normal, *sets["test"]), "val_acc": val, "train_loss": loss,
                      "seconds": time.monotonic() - began, "torch": torch.__version__, **vars(args)}))


if __name__ == "__main__":
    main()
