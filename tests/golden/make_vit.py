"""Vision transformers by timm, for tests/nn/test_vit.c. Writes vit.json.

    python make_vit.py          (needs numpy, PyTorch and timm)

`models`: the names and shapes of timm's parameters, in the order of its state dict; the blocks of a model are alike, so
only block 0 is written. `cases`: the logits of the first LOGITS pictures, then ten training steps as make_steps.py
makes them. Every weight is drawn by name, so that no bias is 0 and no norm 1 (see weights()). `resample`: timm's
bicubic resampling of a position embedding. Values are of float64; `float32` is how far the losses of PyTorch's own
float32 run are from them.
"""
import math

import timm
import torch
from timm.layers import resample_abs_pos_embed
from timm.models.vision_transformer import VisionTransformer

from make_steps import batch, optimisers, step
from shared import Words, uniform, write

LOGITS, STEPS = 2, 10
NAMES = [f"vit_{size}_patch16_224" for size in ("tiny", "small", "base", "large")]
NAMES += [f"vit_{size}_patch32_224" for size in ("small", "base", "large")] + ["vit_tiny_patch4_32"]
SMALL = dict(img_size=32, patch_size=4, embed_dim=192, depth=12, num_heads=3)
ADAMW = dict(lr=1e-4, weight_decay=0.05)

CASES = [
    dict(model="vit_tiny_patch16_224", options={}, x=[3, 224, 224], n=2, seed=1, optim="adamw", optim_options=ADAMW),
    dict(model="vit_tiny_patch4_32", options={}, x=[3, 32, 32], n=6, seed=2, optim="adamw", optim_options=ADAMW),
    dict(model="vit_tiny_patch4_32", options=dict(embed_dim=48, depth=3, num_heads=4), x=[1, 20, 12], n=6, seed=3,
         optim="sgd", optim_options=dict(lr=0.05, momentum=0.9)),
]
SIZES = [((4, 4), (7, 7)), ((14, 14), (8, 8)), ((7, 7), (5, 3)), ((2, 2), (1, 3))]


def make(name, **options):
    """timm has no vit_tiny_patch4_32; its class has."""
    return VisionTransformer(**dict(SMALL, **options)) if name == "vit_tiny_patch4_32" else timm.create_model(name, **options)


def names(name):
    params = {k: list(v.shape) for k, v in make(name, num_classes=1000).state_dict().items()}
    outside = [[k, v] for k, v in params.items() if not k.startswith("blocks.")]
    block = [[k[len("blocks.0."):], v] for k, v in params.items() if k.startswith("blocks.0.")]
    depth = 1 + max(int(k.split(".")[1]) for k in params if k.startswith("blocks."))
    order = outside[:4] + [[f"blocks.{i}.{k}", v] for i in range(depth) for k, v in block] + outside[4:]
    assert order == [[k, v] for k, v in params.items()], name
    return dict(model=name, depth=depth, parameters=sum(math.prod(v) for v in params.values()), before=outside[:4],
                block=block, after=outside[4:])


def weights(model, seed):
    """Uniform by name: matrices keep the size of what they multiply, all else is in +-0.2; a norm's weight is 1 more."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            matrix = p.dim() > 1 and name not in ("cls_token", "pos_embed")
            value = uniform(seed, name, tuple(p.shape), math.sqrt(3 / p[0].numel()) if matrix else 0.2)
            p.copy_(torch.tensor(value) + (1 if "norm" in name and name.endswith("weight") else 0))


class Net(torch.nn.Module):
    def __init__(self, case):
        super().__init__()
        size = dict(img_size=tuple(case["x"][1:]), in_chans=case["x"][0], num_classes=case["classes"])
        self.vit = make(case["model"], **size, **case["options"])
        weights(self.vit, case["seed"])

    def forward(self, x, lens=None):
        return self.vit(x)


def run(case, dtype):
    model, words = Net(case).to(dtype), Words(case["seed"])
    batches = [batch(case, words), batch(case, words)]
    with torch.no_grad():
        logits = model.eval()(torch.tensor(batches[0][0][:LOGITS], dtype=dtype))
    opts = optimisers(case, model.train())
    results = [step(case, model, opts, batches[i % 2], dtype) for i in range(STEPS)]
    return logits.reshape(-1).tolist(), [r[0] for r in results], [r[1] for r in results]


def golden(case):
    case = dict(case, classes=10, slices=2, steps=STEPS, task="classify", clip=0)
    logits, losses, norms = run(case, torch.float64)
    single = run(case, torch.float32)
    worst = max(abs(a - b) / b for a, b in zip(single[1], losses))
    off = max(abs(a - b) for a, b in zip(single[0], logits))
    print(case["model"], "float32: loss", worst, "logits", off, "losses", losses)
    text = {k: {n: str(v).lower() for n, v in case[k].items()} for k in ("options", "optim_options")}
    return dict(case, **text, logits=logits, losses=losses, grad_norms=norms, float32=worst)


def resample(old, new, width=2):
    pos = torch.tensor(Words(old[0] * 100 + new[1]).units(1, 1 + old[0] * old[1], width)).double()
    got = resample_abs_pos_embed(pos, new_size=list(new), old_size=list(old), num_prefix_tokens=1)
    return dict(seed=old[0] * 100 + new[1], old=list(old), new=list(new), width=width, values=got.reshape(-1).tolist())


if __name__ == "__main__":
    torch.set_num_threads(1)
    write("vit.json", dict(torch=torch.__version__.split("+")[0], timm=timm.__version__,
                           models=[names(name) for name in NAMES], resample=[resample(*s) for s in SIZES],
                           cases=[golden(case) for case in CASES]))
