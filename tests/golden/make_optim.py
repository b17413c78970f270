"""Twenty steps of each optimiser by PyTorch in float64, for tests/optim/test_optim.c. Writes optim.json.

    python make_optim.py          (needs numpy and PyTorch)

A case has ROWS x WIDTH weights, drawn first; then, step by step, their gradients. The gradient of column j is made
smaller by 100^(j mod 5), so that the place of eps shows; all are then multiplied by SCALE, as by a divisor and clip
factor. In a sparse case row r is absent from step t = 1, 2, ... when (r + t) % 3 == 0. A case with `cycled` has the
momentum (Adam: beta1) of each step in `momenta`, as a schedule would set it.
"""
import numpy as np
import torch

from shared import Words, write

ROWS, WIDTH, STEPS, SCALE, STATE = 7, 11, 20, 0.375, 42
SHRINK = np.array([1, 1e-2, 1e-4, 1e-6, 1e-8], np.float32)[np.arange(WIDTH) % 5]

CASES = [  # name, sparse, options[, cycled]
    ("sgd", False, dict(lr=0.1)),
    ("sgd", False, dict(lr=0.1, weight_decay=0.05)),
    ("sgd", False, dict(lr=0.1, momentum=0.9)),
    ("sgd", False, dict(lr=0.1, momentum=0.9, dampening=0.25, weight_decay=0.05)),
    ("sgd", False, dict(lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.05)),
    ("adam", False, dict(lr=0.01)),
    ("adam", False, dict(lr=0.01, beta1=0.8, beta2=0.95, eps=1e-6, weight_decay=0.1)),
    ("adamw", False, dict(lr=0.01)),
    ("adamw", False, dict(lr=0.01, beta1=0.8, beta2=0.95, eps=1e-6, weight_decay=0.3)),
    ("sgd", True, dict(lr=0.1)),
    ("adam", True, dict(lr=0.01)),
    ("adamw", True, dict(lr=0.01, weight_decay=0.3)),
    ("sparse_adam", True, dict(lr=0.01, beta1=0.8, beta2=0.95, eps=1e-6)),
    ("sgd", False, dict(lr=0.1, momentum=0.9, weight_decay=0.05), True),
    ("sgd", False, dict(lr=0.1, momentum=0.9, nesterov=True), True),
    ("adam", False, dict(lr=0.01, weight_decay=0.1), True),
    ("adamw", False, dict(lr=0.01), True),
    ("adam", True, dict(lr=0.01), True),
]
MOMENTA = [0.95 - 0.1 * np.sin(np.pi * t / STEPS) for t in range(STEPS)]
TORCH = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
         "sparse_adam": torch.optim.SparseAdam}


def make(name, sparse, options, w):
    """Row-sparse entries of Adam and AdamW are SparseAdam's, without weight decay."""
    args = dict(options)
    if sparse and name != "sgd":
        name = "sparse_adam"
        args.pop("weight_decay", None)
    if name != "sgd":
        args["betas"] = (args.pop("beta1", 0.9), args.pop("beta2", 0.999))
    return TORCH[name]([w], **args)


def set_momentum(group, value):
    if "betas" in group:
        group["betas"] = (value, group["betas"][1])
    else:
        group["momentum"] = value


def run(name, sparse, options, cycled=False):
    words = Words(STATE)
    w = torch.nn.Parameter(torch.tensor(words.units(ROWS, WIDTH), dtype=torch.float64))
    optimiser = make(name, sparse, options, w)
    for t in range(1, STEPS + 1):
        g = torch.tensor(words.units(ROWS, WIDTH) * SHRINK, dtype=torch.float64) * SCALE
        if sparse:
            present = torch.tensor([r for r in range(ROWS) if (r + t) % 3 != 0])
            g = torch.sparse_coo_tensor(present[None], g[present], (ROWS, WIDTH)).coalesce()
        w.grad = g
        if cycled:
            set_momentum(optimiser.param_groups[0], float(f"{MOMENTA[t - 1]:.10g}"))
        optimiser.step()
    state = optimiser.state[w]
    moments = {k: state[k].reshape(-1).tolist() for k in ("momentum_buffer", "exp_avg", "exp_avg_sq")
               if isinstance(state.get(k), torch.Tensor)}
    return dict(optim=name, sparse=sparse, options={k: str(v).lower() for k, v in options.items()},
                **(dict(momenta=[float(m) for m in MOMENTA]) if cycled else {}),
                weights=w.detach().reshape(-1).tolist(), moments=moments)


torch.set_num_threads(1)
torch.sparse.check_sparse_tensor_invariants.enable()
write("optim.json", dict(torch=torch.__version__.split("+")[0], rows=ROWS, width=WIDTH, steps=STEPS, scale=SCALE,
                         state=STATE, cases=[run(*case) for case in CASES]))
