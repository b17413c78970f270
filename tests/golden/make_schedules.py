"""The rates of every schedule by torch.optim.lr_scheduler, for tests/optim/test_schedules.c. Writes
tests/optim/golden-schedules.txt.

    python make_schedules.py          (needs PyTorch)

One case is a line `case NAME base=B steps=N steps_per_epoch=E warmup=W start=F KEY=VALUE ...`, the keys being the
schedule's own, then one line a step: the rate, and the momentum where it is cycled, with all their digits, or `=` for
those of the line before. A plateau's case has a line a value: the value seen, and the rate after it. Schedulers
that PyTorch steps by epoch are stepped once an epoch here.
"""
import math
import os

import torch
from torch.optim import lr_scheduler as S


def optimiser(base):
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=base, momentum=0.9)


def walk(opt, scheduler, steps, every=1, momentum=False):
    """The rate (and momentum) of each step; the scheduler moves on after every `every` steps."""
    lines = []
    for step in range(steps):
        group = opt.param_groups[0]
        lines.append((group["lr"], group["momentum"]) if momentum else (group["lr"],))
        opt.step()
        if (step + 1) % every == 0 and step + 1 < steps:
            scheduler.step()
    return lines


def warm(opt, warmup, start, make):
    """make(opt) after `warmup` steps of LinearLR."""
    if not warmup:
        return make(opt)
    linear = S.LinearLR(opt, start_factor=start, end_factor=1.0, total_iters=warmup)
    return S.SequentialLR(opt, [linear, make(opt)], milestones=[warmup])


def polynomial(opt, steps, power, end, base):
    if end == 0:
        return S.PolynomialLR(opt, total_iters=steps, power=power)
    return S.LambdaLR(opt, lambda t: (end + (base - end) * (1 - min(t, steps) / steps) ** power) / base)


def case(out, name, base, steps, make, per_epoch=1, warmup=0, start=0.01, by_epoch=False, momentum=False, **options):
    opt = optimiser(base)
    scheduler = warm(opt, warmup, start, lambda o: make(o, steps - warmup))
    lines = walk(opt, scheduler, steps, per_epoch if by_epoch else 1, momentum)
    words = " ".join(f"{k}={v}" for k, v in options.items())
    out.append(f"case {name} base={base!r} steps={steps} steps_per_epoch={per_epoch} warmup={warmup} start={start!r} "
               f"{words}".rstrip())
    texts = [" ".join(repr(v) for v in line) for line in lines]
    out.extend("=" if i and text == texts[i - 1] else text for i, text in enumerate(texts))


def one_cycle(steps, base, **o):
    """Our names of the options are PyTorch's but for `anneal`."""
    args = dict(o, anneal_strategy=o.get("anneal", "cos"))
    args.pop("anneal", None)
    return lambda opt, n: S.OneCycleLR(opt, max_lr=base, total_steps=n, **args)


def plateau(out, base, values, **options):
    opt = optimiser(base)
    scheduler = S.ReduceLROnPlateau(opt, **{k: v for k, v in options.items() if k != "monitor"})
    words = " ".join(f"{k}={v}" for k, v in options.items())
    out.append(f"case plateau base={base!r} steps={len(values)} steps_per_epoch=1 warmup=0 start=0 {words}")
    for v in values:
        scheduler.step(v)
        out.append(f"{v!r} {opt.param_groups[0]['lr']!r}")


def falling(n, slope, noise):
    """A curve that falls, flattens and jitters, as a loss does."""
    return [0.2 + math.exp(-slope * i) + noise * math.sin(12.9898 * i) ** 3 for i in range(n)]


def rising(n, slope, noise):
    return [1.3 - v for v in falling(n, slope, noise)]


def all_cases():
    out = []
    case(out, "constant", 0.1, 200, lambda o, n: S.ConstantLR(o, 1.0, 1))
    case(out, "constant", 0.1, 220, lambda o, n: S.ConstantLR(o, 1.0, 1), warmup=37, start=0.01)
    case(out, "constant", 3e-4, 200, lambda o, n: S.ConstantLR(o, 1.0, 1), warmup=200, start=1e-3)
    for size, gamma, per in ((30, 0.1, 1), (7, 0.5, 1), (3, 0.9, 5)):
        case(out, "step", 0.1, 240, lambda o, n: S.StepLR(o, size, gamma), per, by_epoch=True, step_size=size,
             gamma=gamma)
    case(out, "step", 0.1, 230, lambda o, n: S.StepLR(o, 20, 0.3), warmup=25, start=0.1, step_size=20, gamma=0.3)
    for stones, gamma, per in (([30, 60, 90], 0.1, 1), ([1, 2, 150], 0.7, 1), ([8, 16], 0.2, 11)):
        case(out, "multistep", 0.4, 220, lambda o, n: S.MultiStepLR(o, stones, gamma), per, by_epoch=True,
             milestones=",".join(map(str, stones)), gamma=gamma)
    for gamma, per in ((0.95, 1), (0.9, 7), (1.01, 1)):
        case(out, "exponential", 0.2, 210, lambda o, n: S.ExponentialLR(o, gamma), per, by_epoch=True, gamma=gamma)
    for base, steps, low, warmup in ((0.1, 200, 0.0, 0), (0.5, 333, 1e-3, 0), (1e-3, 250, 1e-5, 40)):
        case(out, "cosine", base, steps, lambda o, n: S.CosineAnnealingLR(o, n, low), warmup=warmup, eta_min=low)
    case(out, "cosine", 0.1, 240, lambda o, n: S.CosineAnnealingLR(o, n // 8, 1e-4), 8, by_epoch=True, eta_min=1e-4,
         by="epoch")
    for power, end, warmup in ((1.0, 0.0, 0), (0.9, 0.0, 0), (2.0, 0.0, 20), (2.0, 1e-3, 0), (0.5, 0.02, 0)):
        case(out, "polynomial", 0.1, 220, lambda o, n: polynomial(o, n, power, end, 0.1), warmup=warmup, start=0.5,
             power=power, end=end)
    case(out, "polynomial", 0.1, 210, lambda o, n: polynomial(o, n // 7, 1.5, 0.0, 0.1), 7, by_epoch=True, power=1.5,
         by="epoch")
    for base, steps, o in ((0.1, 200, {}), (0.4, 251, dict(pct_start=0.25, div_factor=10.0, final_div_factor=100.0)),
                           (0.1, 200, dict(anneal="linear")), (0.1, 233, dict(three_phase=True)),
                           (0.02, 240, dict(three_phase=True, anneal="linear", pct_start=0.45)),
                           (0.1, 200, dict(base_momentum=0.7, max_momentum=0.99)), (0.1, 200, dict(pct_start=0.0)),
                           (0.1, 200, dict(pct_start=1.0))):
        case(out, "one_cycle", base, steps, one_cycle(steps, base, **o), momentum=True,
             **{k: str(v).lower() for k, v in o.items()})
    case(out, "one_cycle", 0.1, 200, one_cycle(200, 0.1, cycle_momentum=False), cycle_momentum="false")
    for low, high, n in ((1e-6, 1.0, 200), (1e-4, 10.0, 301)):
        case(out, "range", low, n, lambda o, m: S.ExponentialLR(o, (high / low) ** (1 / (n - 1))), start_lr=low,
             end_lr=high)
    plateau(out, 0.1, falling(220, 0.05, 0.05), monitor="val/loss", mode="min", patience=3)
    plateau(out, 0.1, falling(220, 0.05, 0.02), monitor="val/loss", mode="min", factor=0.5, patience=5, threshold=0.01,
            threshold_mode="abs", cooldown=4, min_lr=1e-3)
    plateau(out, 0.1, rising(220, 0.03, 0.03), monitor="val/acc", mode="max", factor=0.3, patience=2, cooldown=1)
    plateau(out, 0.1, rising(220, 0.03, 0.03), monitor="val/acc", mode="max", factor=0.7, patience=0,
            threshold=0.001, threshold_mode="abs", min_lr=1e-4, eps=1e-3)
    return out


if __name__ == "__main__":
    text = "\n".join([f"# torch {torch.__version__.split('+')[0]}, by tests/golden/make_schedules.py"] + all_cases())
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "..", "optim", "golden-schedules.txt"), "w") as f:
        f.write(text + "\n")
