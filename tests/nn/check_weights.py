#!/usr/bin/env python3
"""Weights in and out, against torchvision itself: `check_weights.py COHORT`, part of `make check-long`.

For resnet18 and resnet50, and for timm's vit_tiny_patch16_224 where timm is installed: a state dict of torchvision (random weights, batch statistics of random pictures) is saved as
safetensors and given to `cohort predict weights=FILE`: the logits of the same pictures must agree within 1e-4. Then one
training step is made from it, the result exported and loaded in torchvision with strict=True: its logits must agree
with ours again. The pictures are random bytes in files of CIFAR-10's layout. Exit status 1 if anything differs; needs
torch, torchvision, safetensors, numpy.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torchvision
try:
    import timm
except ImportError:
    timm = None
from safetensors.torch import load_file, save_file

MODELS = ["resnet18", "resnet50"]
N, PICTURES, AIM = 24, 10000, 1e-4
MEAN = torch.tensor([0.4914, 0.4822, 0.4465]).view(1, 3, 1, 1)
STD = torch.tensor([0.2470, 0.2435, 0.2616]).view(1, 3, 1, 1)


def make_pictures(folder):
    """Six files of CIFAR-10's size; the first N pictures of the test file, as a model sees them."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 256, (PICTURES, 3073), dtype=np.uint8)
    rows[:, 0] %= 10
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        rows.tofile(os.path.join(folder, name + ".bin"))
    x = torch.from_numpy(rows[:N, 1:].astype(np.float32)).view(N, 3, 32, 32)
    return (x / 255 - MEAN) / STD


def make_model(name, x):
    torch.manual_seed(3)
    if name.startswith("vit_"):
        model = timm.create_model(name, img_size=32, num_classes=10)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.05 * torch.randn_like(p))
        return model.eval()
    model = getattr(torchvision.models, name)(num_classes=10)
    for p in model.modules():
        if isinstance(p, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(p.weight, 0.5, 1.5)
            torch.nn.init.uniform_(p.bias, -0.5, 0.5)
    model.train()
    with torch.no_grad():
        for _ in range(20):
            model(x)
    return model.eval()


def logits_there(model, x):
    with torch.no_grad():
        return model(x).double().numpy()


def cohort(*words):
    done = subprocess.run([sys.argv[1], *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"cohort {' '.join(words)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def logits_here(*words):
    lines = cohort("predict", *words, "--limit", str(N), "--logits", "--json").splitlines()
    return np.array([json.loads(line)["logits"] for line in lines])


def check(name, folder, x):
    model = make_model(name, x)
    there, given = os.path.join(folder, name + ".safetensors"), os.path.join(folder, name + "-back.safetensors")
    run = os.path.join(folder, name)
    save_file(model.state_dict(), there)
    settings = [f"model={name}", "data=cifar10", f"data.dir={folder}"]
    want = logits_there(model, x)
    into = np.abs(logits_here(*settings, f"weights={there}") - want).max()

    cohort("train", *settings, f"weights={there}", "trainer.max_steps=1", "trainer.eval_every=0", "test=false",
           "data.batch_size=32", "optim=sgd", "optim.lr=0.001", "console=quiet", f"run.dir={run}")
    cohort("ckpt", "export", run, "--out", given)
    model.load_state_dict(load_file(given), strict=True)
    after = logits_there(model, x)
    out = np.abs(logits_here(f"ckpt_path={run}") - after).max()
    good = bool(into <= AIM and out <= AIM and np.abs(after - want).max() > 0)
    print(json.dumps({"model": name, "largest_logit": float(np.abs(want).max()), "difference_in": float(into),
                      "difference_out": float(out), "moved_by_one_step": float(np.abs(after - want).max()), "aim": AIM,
                      "good": good}))
    return good


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.argv[1] = os.path.abspath(sys.argv[1])
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        x = make_pictures(folder)
        results = [check(name, folder, x) for name in MODELS + (["vit_tiny_patch16_224"] if timm else [])]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
