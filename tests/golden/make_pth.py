"""Files of torch.save for tests/ckpt/test_torch.c. Writes pth/*.pth, pth/*.ckpt and pth.json.

    python make_pth.py          (needs PyTorch)

pth.json has for each file what it must give: name -> dtype (safetensors' name), shape, bytes in hex, row-major.
The names of the archive's own records are those of the file, so the files are the same each time.
"""
import json
import os
from collections import OrderedDict

import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
          torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}


def numbers(*shape, dtype=torch.float32):
    n = torch.Size(shape).numel()
    x = (torch.arange(n) * 37) % 101 - 50
    return (x % 2 == 0 if dtype == torch.bool else x.abs() if dtype == torch.uint8 else
            x / 8 if dtype.is_floating_point else x).to(dtype).reshape(shape)


def small():
    """The model of tests/ckpt/small.h with width 4."""
    return OrderedDict([("fc1.weight", numbers(4, 5)), ("fc1.bias", numbers(4)), ("bn.running_mean", numbers(4)),
                        ("bn.num_batches_tracked", torch.tensor(7)), ("scale", torch.tensor(0.5))])


def kinds():
    """Every dtype, and every way in which a tensor lies in its storage."""
    base = numbers(6, 4)
    out = OrderedDict((f"dtype.{name}", numbers(3, 2, dtype=dtype)) for dtype, name in DTYPES.items())
    out["view.transposed"] = base.t()
    out["view.rows"] = base[2:5]
    out["view.every_other"] = base[::2, 1::2]
    out["view.permuted"] = numbers(2, 3, 4).permute(2, 0, 1)
    out["view.one"] = base[3, 2]
    out["view.expanded"] = torch.arange(5).expand(1, -1)
    out["tied"] = out["dtype.F32"]
    out["empty"] = torch.zeros(0, 3)
    out["channels_last"] = numbers(2, 3, 2, 2).to(memory_format=torch.channels_last)
    out["parameter"] = nn.Parameter(numbers(2, 2))
    out["six"] = numbers(1, 2, 1, 2, 1, 2)
    return out


def lightning():
    """What Lightning's ModelCheckpoint saves, with every plain value."""
    weights = OrderedDict(("net." + k, v) for k, v in small().items())
    return {"epoch": 3, "global_step": 70000, "pytorch-lightning_version": "2.5.0", "state_dict": weights,
            "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"total": {"ready": 4}}}},
            "callbacks": {"ModelCheckpoint{'monitor': 'val/acc'}": {"best_model_score": torch.tensor(0.75),
                                                                    "best_k_models": {}, "kth_value": None}},
            "optimizer_states": [{"state": {0: {"step": torch.tensor(4.0), "exp_avg": numbers(4, 5)}},
                                  "param_groups": [{"lr": 0.001, "betas": (0.9, 0.999), "amsgrad": False,
                                                    "fused": None, "params": [0, 1, 2, 3, 4]}]}],
            "lr_schedulers": [], "hparams_name": "kwargs",
            "hyper_parameters": {"lr": 1e-3, "width": -5, "large": 2**40, "minus": -2**40, "larger": 2**80, "on": True,
                                 "shape": torch.Size([1, 2])}}


def script():
    """PyTorch's ImageNet example under DistributedDataParallel, after torch.compile."""
    weights = {"module._orig_mod." + k: v for k, v in small().items()}
    return {"epoch": 2, "arch": "mlp", "state_dict": weights, "best_acc1": torch.tensor(71.5), "optimizer": {}}


class Own:
    pass


def objects():
    """A state dict beside an object of a class that only its own program knows."""
    return {"model_state_dict": small(), "options": Own(), "dtype": torch.float32}


def strip(name):
    for prefix in ("net.", "module._orig_mod."):
        name = name.removeprefix(prefix)
    return name


def expected(tensors):
    out = {}
    for name, x in tensors.items():
        x = x.detach().contiguous()
        raw = x.reshape(-1).view(torch.uint8).tolist() if x.numel() else []
        out[strip(name)] = dict(dtype=DTYPES[x.dtype], shape=list(x.shape), hex=bytes(raw).hex())
    return out


def main():
    os.makedirs(os.path.join(HERE, "pth"), exist_ok=True)
    want = {}
    for name, value in [("small.pth", small()), ("kinds.pth", kinds()), ("lightning.ckpt", lightning()),
                        ("script.pth", script()), ("objects.pth", objects())]:
        torch.save(value, os.path.join(HERE, "pth", name))
        held = value.get("state_dict", value.get("model_state_dict", value))
        want[name] = expected(held)
    with open(os.path.join(HERE, "pth.json"), "w") as f:
        json.dump(want, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
