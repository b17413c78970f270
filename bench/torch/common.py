"""What the scripts of this folder share: measuring, two processes over gloo, crops and epochs of pictures."""
import os
import resource
import socket
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Callable


@dataclass
class Task:
    """What versus.py trains. A batch is a tuple of tensors: the model's inputs, then the target."""
    model: object
    optimizers: Callable  # model -> list of optimisers
    batches: Callable     # number of steps -> list of batches, used in turn
    loss_of: Callable     # what the model returns, target -> loss
    counted: Callable     # target -> what speed counts: samples or tokens
    first: Callable       # () -> the batch that cohort trains on first


# --- measuring

def versions(*packages):
    """Versions of PyTorch and of these packages; None: not installed."""
    import importlib
    import torch
    out = {"torch": torch.__version__, "cpu_capability": torch.backends.cpu.get_cpu_capability(),
           "mkldnn": torch.backends.mkldnn.is_available()}
    for name in packages:
        try:
            out[name] = importlib.import_module(name).__version__
        except ImportError:
            out[name] = None
    return out


def pss():
    """Bytes of memory of this process; what it shares with k others counts one k-th."""
    with open("/proc/self/smaps_rollup") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("Pss:"))


def cpu_seconds():
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime


# --- two processes

def start_second(argv):
    """Starts this script again with --rank 1 and a free port, which it returns with the process."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    more = ["--rank", "1", "--port", str(port)]
    return port, subprocess.Popen([sys.executable, *argv, *more], stdout=subprocess.DEVNULL)


def open_group(rank, port, address="127.0.0.1", device="lo"):
    """Joins two processes over gloo."""
    import torch.distributed as dist
    os.environ["GLOO_SOCKET_IFNAME"] = device
    dist.init_process_group("gloo", init_method=f"tcp://{address}:{port}", rank=rank, world_size=2,
                            timeout=timedelta(seconds=120))
    return dist


def sum_over(dist, *numbers):
    """The sums of these numbers over all processes; dist None: there is one."""
    import torch
    x = torch.tensor(numbers, dtype=torch.float64)
    if dist:
        dist.all_reduce(x)
    return x.tolist()


def exchange(dist, count, rounds, optimizer=None):
    """Milliseconds of each all-reduce of `count` floats; optimizer(x): its step() follows, on the gradient of x."""
    import torch
    x = torch.arange(count, dtype=torch.float32).remainder_(1000)
    want, ms, used = 2 * x[-1].item(), [], 0
    weights = torch.nn.Parameter(torch.zeros(count)) if optimizer else None
    update = optimizer([weights]) if optimizer else None
    for i in range(-3, rounds):
        y = x.clone()
        dist.barrier()
        began, cpu = time.monotonic_ns(), cpu_seconds()
        dist.all_reduce(y)
        if update:
            weights.grad = y
            update.step()
        if i >= 0:
            ms.append((time.monotonic_ns() - began) * 1e-6)
            used += cpu_seconds() - cpu
        if y[-1].item() != want:
            sys.exit(f"the sum is {y[-1].item()}, not {want}")
    return {"ms": ms, "median_ms": statistics.median(ms), "cpu_s": used}


# --- pictures, for cifar.py and tinyimagenet.py

def augment(x, side, pad):
    """Pad by black pixels, crop side x side anywhere, flip half of them; x [n,3,side,side] of bytes."""
    import torch
    n = len(x)
    x = torch.nn.functional.pad(x, (pad, pad, pad, pad))
    rows = torch.randint(0, 2 * pad + 1, (n, 1)) + torch.arange(side)
    cols = torch.randint(0, 2 * pad + 1, (n, 1)) + torch.arange(side)
    cols = torch.where(torch.rand(n, 1) < 0.5, cols.flip(1), cols)
    i = torch.arange(n).view(n, 1, 1, 1)
    return x[i, torch.arange(3).view(1, 3, 1, 1), rows.view(n, 1, side, 1), cols.view(n, 1, 1, side)]


def accuracy(model, normal, x, y):
    import torch
    model.eval()
    with torch.no_grad():
        hits = sum((model(normal(a)).argmax(1) == b).sum().item() for a, b in zip(x.split(500), y.split(500)))
    return hits / len(x)


def train_epoch(model, sgd, cycle, loss_sum, prepare, x, y, args):
    """One epoch; prepare(x) makes the network's input. Each of args.slices parts of a batch has batch statistics of its
    own. Returns the mean loss."""
    import torch
    model.train()
    total = 0.0
    for ids in torch.randperm(len(x)).split(args.batch):
        sgd.zero_grad(set_to_none=True)
        a, b = prepare(x[ids]), y[ids]
        for xs, ys in zip(a.tensor_split(args.slices), b.tensor_split(args.slices)):
            if len(xs) == 0:
                continue
            loss = loss_sum(model(xs), ys) / len(ids)
            loss.backward()
            total += loss.item() * len(ids)
        sgd.step()
        cycle.step()
    return total / len(x)
