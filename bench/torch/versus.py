#!/usr/bin/env python3
"""The PyTorch arm of `cohort bench vs-torch`: trains the same model on the same kind of batch and prints one JSON object.

Fair to PyTorch: the data is in memory in the requested layout before the clock starts, nothing is logged or evaluated, the
loss is not fetched between steps, optimisers are the fused ones, and the bench tries several settings and takes the best:

    --threads N       in each process
    --processes 2     DistributedDataParallel over gloo, each process with its share of the batch
    --channels-last   --compile   --sdpa (PyTorch's attention)   --sparse (row-sparse gradients, SparseAdam)

    versus.py --task resnet18 --batch 64 --size 64 --threads 2 --steps 10 [--data FOLDER] [settings]
    versus.py --task resnet18 --first-loss FILE     writes first weights there; the loss of cohort's first batch with them,
                                                    without dropout
"""
import argparse
import importlib
import json
import os
import sys
import time

from common import cpu_seconds, exchange, open_group, pss, start_second, sum_over, versions

# The module of each task, and the packages that it loads.
MODULES = {**{f"resnet{depth}": ["versus_pictures", "torchvision"] for depth in (18, 34, 50, 101, 152)},
           "vit_base": ["versus_pictures", "timm"], "vit_tiny": ["versus_pictures", "timm"],
           "digits-mlp": ["versus_pictures"], "digits-cnn": ["versus_pictures"], "start": ["versus_pictures"],
           "transformer-guide": ["versus_pairs"], "transformer-buckets": ["versus_pairs"],
           "lm": ["versus_text"], "movielens": ["versus_ratings"], "exchange": ["common"]}


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--task", required=True, choices=sorted(MODULES))
    p.add_argument("--batch", type=int, default=64, help="of all processes together")
    p.add_argument("--size", type=int, default=64, help="of pictures; of sequences: tokens; of the exchange: floats")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--steps", type=int, default=10, help="timed")
    p.add_argument("--warmup", type=int, default=2, help="steps before the clock starts, the first one among them")
    p.add_argument("--data", help="folder of sentence pairs or ratings; lm: file of text")
    p.add_argument("--processes", type=int, default=1, choices=[1, 2])
    for flag in "channels-last", "compile", "sdpa", "sparse":
        p.add_argument(f"--{flag}", action="store_true")
    p.add_argument("--first-loss", metavar="FILE")
    p.add_argument("--rank", type=int, default=0, help="of the second process: 1")
    p.add_argument("--port", type=int)
    p.add_argument("--worker", action="store_true", help="one of torchrun's workers")
    p.add_argument("--check", action="store_true", help="only say which versions there are")
    return p.parse_args()


def first_loss(task, path):
    """Saves the first weights for cohort to start from; the loss of its first batch with them, without dropout."""
    import torch
    for module in task.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0
    torch.save(task.model.state_dict(), path)
    *inputs, target = task.first()
    return {"loss": task.loss_of(task.model(*inputs), target).item(),
            "parameters": sum(p.numel() for p in task.model.parameters())}


def set_up(task, args, dist):
    """The model as it is called, its optimisers, and the batches of this process."""
    import torch
    batches = task.batches(args.warmup + args.steps)
    if dist:
        batches = [tuple(t[args.rank::2].contiguous() for t in batch) for batch in batches]
    model = task.model
    if args.channels_last:
        model = model.to(memory_format=torch.channels_last)
        batches = [(x.to(memory_format=torch.channels_last), y) for x, y in batches]
    optimizers = task.optimizers(model)
    if dist:
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)
    if args.compile:
        model = torch.compile(model)
    return model, optimizers, batches


def train(task, args, dist, libraries):
    model, optimizers, batches = set_up(task, args, dist)
    first_ns = began = cpu = counted = 0
    for step in range(args.warmup + args.steps):
        if step == args.warmup:
            began, cpu = time.monotonic_ns(), cpu_seconds()
        *inputs, target = batches[step % len(batches)]
        for o in optimizers:
            o.zero_grad(set_to_none=True)
        task.loss_of(model(*inputs), target).backward()
        for o in optimizers:
            o.step()
        if step == 0:
            first_ns = time.monotonic_ns()
        if step >= args.warmup:
            counted += task.counted(target)
    if dist:
        dist.barrier()
    seconds, cpu = (time.monotonic_ns() - began) * 1e-9, cpu_seconds() - cpu
    cpu, counted, libraries = sum_over(dist, cpu, counted, libraries)
    return {"per_s": counted / seconds, "cpu_s": cpu / counted if counted else 0, "first_step_clock_ns": first_ns,
            "parameters": sum(p.numel() for p in task.model.parameters()), "pss_libraries_bytes": libraries}


def exchange_and_apply(args, dist, libraries):
    import torch
    result = exchange(dist, args.size, args.steps, lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, fused=True))
    cpu, libraries = sum_over(dist, result["cpu_s"], libraries)
    return {"per_s": 1e3 / result["median_ms"], "cpu_s": cpu / args.steps, "first_step_clock_ns": time.monotonic_ns(),
            "parameters": args.size, "pss_libraries_bytes": libraries}


def become_torchrun():
    """Starts the workers with PyTorch's launcher; the clock starts here."""
    os.environ.update(OMP_NUM_THREADS="1", BEGAN_NS=str(time.monotonic_ns()))
    os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
                              *sys.argv, "--worker"])


def worker_group(args):
    """The group that torchrun's environment describes."""
    import torch.distributed as dist
    args.rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    return dist


def main():
    args = arguments()
    if args.check:
        print(json.dumps(versions("torchvision", "timm", "tokenizers")))
        return
    if args.task == "start" and not args.worker and not args.first_loss:
        become_torchrun()
    second = None
    if args.processes == 2 and args.rank == 0:
        args.port, second = start_second(sys.argv)
    import torch
    torch.set_num_threads(max(1, args.threads // args.processes))
    torch.manual_seed(0)
    module, *_ = [importlib.import_module(name) for name in MODULES[args.task]]
    libraries = pss()
    dist = open_group(args.rank, args.port) if args.processes == 2 else worker_group(args) if args.worker else None
    if args.task == "exchange":
        result = exchange_and_apply(args, dist, libraries)
    else:
        task = module.TASKS[args.task](args)
        task.model.train()
        result = first_loss(task, args.first_loss) if args.first_loss else train(task, args, dist, libraries)
    if args.rank == 0:
        began = int(os.environ.get("BEGAN_NS", 0))
        print(json.dumps({**result, "began_clock_ns": began, **versions()}), flush=True)
    if dist:
        dist.destroy_process_group()
    if second and second.wait() != 0:
        sys.exit("the second process failed")


if __name__ == "__main__":
    main()
