#!/usr/bin/env python3
"""Weights out to timm and in from torch.save: `check_hf.py COHORT`, part of `make check-long`.

For resnet18 and vit_tiny_patch4_32: a step of training here, `cohort ckpt export --to hf`, and timm loads the folder
without a warning: its logits of the same pictures agree with ours within 1e-4, and mean, std and sizes are the run's.
Then timm's state dict goes the other way by torch.save, bare and with the prefix of Lightning: the same logits, and a file
of `cohort ckpt import` has the same tensors. Exit status 1 if anything differs; needs torch, timm, safetensors, numpy.
"""
import json
import os
import sys
import tempfile
import warnings

import numpy as np
import timm
import torch
from safetensors.torch import load_file

from check_weights import AIM, cohort, logits_here, logits_there, make_pictures


def check(name, folder, x):
    run, out = os.path.join(folder, name), os.path.join(folder, name + "-hf")
    data = ["data=cifar10", f"data.dir={folder}"]
    cohort("train", f"model={name}", *data, "trainer.max_steps=1", "trainer.eval_every=0", "test=false",
           "data.batch_size=32", "console=quiet", f"run.dir={run}")
    cohort("ckpt", "export", run, "--to", "hf", "--out", out)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = timm.create_model("local-dir:" + out, pretrained=True).eval()
    cfg = model.pretrained_cfg
    assert tuple(cfg["mean"]) == (0.4914, 0.4822, 0.4465) and tuple(cfg["std"]) == (0.2470, 0.2435, 0.2616), cfg
    assert tuple(cfg["input_size"]) == (3, 32, 32) and model.num_classes == 10, cfg
    want = logits_there(model, x)
    differences = [np.abs(logits_here(f"ckpt_path={run}") - want).max()]

    bare, wrapped = os.path.join(folder, name + ".pth"), os.path.join(folder, name + ".ckpt")
    torch.save(model.state_dict(), bare)
    torch.save({"epoch": 1, "state_dict": {"net." + k: v for k, v in model.state_dict().items()}}, wrapped)
    for path in (bare, wrapped):
        differences.append(np.abs(logits_here(f"model={name}", *data, f"weights={path}") - want).max())
    cohort("ckpt", "import", wrapped, f"model={name}", "data.size=32")
    tensors = load_file(os.path.join(folder, name + ".safetensors"))
    same = tensors.keys() == model.state_dict().keys() and all(
        torch.equal(v, tensors[k]) for k, v in model.state_dict().items())
    good = bool(same and max(differences) <= AIM)
    print(json.dumps({"model": name, "largest_logit": float(np.abs(want).max()), "out": float(differences[0]),
                      "in": float(max(differences[1:])), "tensors_same": same, "aim": AIM, "good": good}))
    return good


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.argv[1] = os.path.abspath(sys.argv[1])
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        x = make_pictures(folder)
        results = [check(name, folder, x) for name in ("resnet18", "vit_tiny_patch4_32")]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
