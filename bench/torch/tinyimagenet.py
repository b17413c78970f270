#!/usr/bin/env python3
"""The PyTorch arm of the accuracy comparison: Tiny ImageNet, resnet18 of torchvision, recipe `experiment=tinyimagenet`.

SGD with Nesterov momentum and weight decay, one cycle of the learning rate (and of the momentum, as OneCycleLR has it),
crops of 64x64 out of pictures with 8 black pixels around them, flips. The batch of 128 is cut into 8 slices with batch
statistics of their own, as cohort's; --slices 1 takes those of the whole batch. The last line is a JSON object.

    tinyimagenet.py --data FOLDER_OR_TAR --epochs 6 [--seed 0 --lr 0.05 --batch 128 --threads 2 --slices 8 --limit N]
"""
import argparse
import io
import json
import os
import tarfile
import time

import numpy as np
import PIL.Image
import torch
import torchvision

from common import accuracy, augment, train_epoch

MEAN = torch.tensor([0.4802, 0.4481, 0.3975]).view(1, 3, 1, 1)
STD = torch.tensor([0.2770, 0.2691, 0.2821]).view(1, 3, 1, 1)
SIDE, PAD = 64, 8


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True, help="tiny-imagenet-200 or a part of it: the folder, or a .tar, .tar.xz, .tar.gz")
    p.add_argument("--epochs", type=int, default=30)
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--lr", type=float, default=0.05, help="the highest of the cycle")
    p.add_argument("--momentum", type=float, default=0.9, help="where the cycle does not set it")
    p.add_argument("--weight-decay", type=float, default=5e-4)
    p.add_argument("--slices", type=int, default=8, help="parts of a batch, each with batch statistics of its own")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--limit", type=int, default=0, help="use only so many pictures of each part")
    return p.parse_args()


def files(path):
    """Name inside the set and bytes, for every file of the folder or archive."""
    if os.path.isdir(path):
        tars = [f for f in os.listdir(path) if ".tar" in f]
        if tars and not os.path.isdir(os.path.join(path, "train")):
            path = os.path.join(path, tars[0])
    if os.path.isdir(path):
        for folder, _, names in os.walk(path):
            for name in names:
                full = os.path.join(folder, name)
                with open(full, "rb") as f:
                    yield os.path.relpath(full, path), f.read()
        return
    with tarfile.open(path) as tar:
        for member in tar:
            if member.isfile():
                yield member.name.split("/", 1)[1], tar.extractfile(member).read()


def decode(data):
    return np.asarray(PIL.Image.open(io.BytesIO(data)).convert("RGB")).transpose(2, 0, 1)


def load(args):
    """{"train", "val"}: pictures [n,3,64,64] of bytes and labels; classes in the order of their names."""
    all_of = dict(files(args.data))
    pictures = {"train": sorted(n for n in all_of if n.startswith("train/") and n.endswith(".JPEG")),
                "val": sorted(n for n in all_of if n.startswith("val/images/") and n.endswith(".JPEG"))}
    classes = {c: i for i, c in enumerate(sorted({n.split("/")[1] for n in pictures["train"]}))}
    lines = all_of["val/val_annotations.txt"].decode().split("\n")
    of_val = {row[0]: row[1] for row in (line.split("\t") for line in lines) if len(row) > 1}
    label = {"train": lambda n: classes[n.split("/")[1]], "val": lambda n: classes[of_val[n.split("/")[2]]]}
    sets = {}
    for part, names in pictures.items():
        names = names[:: max(1, len(names) // args.limit)][:args.limit] if args.limit else names
        sets[part] = (torch.from_numpy(np.stack([decode(all_of[n]) for n in names])),
                      torch.tensor([label[part](n) for n in names]))
    return sets, len(classes)


def normal(x):
    return (x.float() / 255 - MEAN) / STD


def prepare(x):
    return normal(augment(x, SIDE, PAD))


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    sets, classes = load(args)
    model = torchvision.models.resnet18(num_classes=classes).to(memory_format=torch.channels_last)
    sgd = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum, weight_decay=args.weight_decay,
                          nesterov=True)
    steps = args.epochs * -(-len(sets["train"][0]) // args.batch)
    cycle = torch.optim.lr_scheduler.OneCycleLR(sgd, args.lr, total_steps=steps)
    loss_of = torch.nn.CrossEntropyLoss(reduction="sum")
    began, best = time.monotonic(), 0.0
    for epoch in range(args.epochs):
        loss = train_epoch(model, sgd, cycle, loss_of, prepare, *sets["train"], args)
        val = accuracy(model, normal, *sets["val"])
        best = max(best, val)
        print(f"epoch {epoch + 1}/{args.epochs}  train loss {loss:.4f}  val acc {val:.4f}", flush=True)
    print(json.dumps({"val_acc": val, "best_val_acc": best, "train_loss": loss, "seconds": time.monotonic() - began,
                      "torch": torch.__version__, **vars(args)}))


if __name__ == "__main__":
    main()
