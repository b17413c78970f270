#!/usr/bin/env python3
"""The PyTorch arm of `cohort bench vs-torch`: trains the same model and batch on made-up tensors and
prints one JSON object.

Fair to PyTorch: the data is in memory in the requested layout before the clock starts, nothing is logged or
evaluated, the loss is not fetched between steps, and the bench runs it both with the default layout and with
--channels-last and takes the better. Eager mode, as a training script has it by default.

    versus.py --task resnet18 --batch 64 --size 64 --threads 2 --steps 10 --warmup 2 [--channels-last]
"""
import argparse
import json
import time


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--task", required=True, choices=sorted(MODELS))
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--size", type=int, default=64, help="of the pictures of resnet*")
    p.add_argument("--classes", type=int, default=10)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--steps", type=int, default=10, help="timed")
    p.add_argument("--warmup", type=int, default=2, help="steps before the clock starts, the first one among them")
    p.add_argument("--channels-last", action="store_true")
    p.add_argument("--check", action="store_true", help="only say which versions there are")
    return p.parse_args()


def resnet(name):
    def make(args):
        import torchvision
        return getattr(torchvision.models, name)(num_classes=args.classes), (3, args.size, args.size)
    return make


def digits_mlp(args):
    from torch import nn
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1),
                         nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10)), (1, 8, 8)


def digits_cnn(args):
    from torch import nn

    def layer(i, o):
        return [nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True)]
    return nn.Sequential(*layer(1, 32), *layer(32, 64), nn.MaxPool2d(2), *layer(64, 64), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(64, 10)), (1, 8, 8)


MODELS = {"resnet18": resnet("resnet18"), "resnet50": resnet("resnet50"), "digits-mlp": digits_mlp,
          "digits-cnn": digits_cnn}


def versions():
    import torch
    out = {"torch": torch.__version__, "cpu_capability": torch.backends.cpu.get_cpu_capability(),
           "mkldnn": torch.backends.mkldnn.is_available()}
    try:
        import torchvision
        out["torchvision"] = torchvision.__version__
    except ImportError:
        out["torchvision"] = None
    return out


def pss():
    with open("/proc/self/smaps_rollup") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("Pss:"))


def main():
    args = arguments()
    import torch
    if args.check:
        print(json.dumps(versions()))
        return
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model, shape = MODELS[args.task](args)
    model.train()
    sgd = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    x = [torch.randn(args.batch, *shape) for _ in range(2)]
    y = [torch.randint(args.classes, (args.batch,)) for _ in range(2)]
    if args.channels_last:
        model = model.to(memory_format=torch.channels_last)
        x = [t.to(memory_format=torch.channels_last) for t in x]

    first_ns = began = 0
    at_rest = pss()
    for step in range(args.warmup + args.steps):
        if step == args.warmup:
            began = time.monotonic_ns()
        sgd.zero_grad(set_to_none=True)
        loss = loss_of(model(x[step % 2]), y[step % 2])
        loss.backward()
        sgd.step()
        if step == 0:
            first_ns = time.monotonic_ns()
    seconds = (time.monotonic_ns() - began) * 1e-9
    print(json.dumps({
        "samples_per_s": args.steps * args.batch / seconds,
        "first_step_clock_ns": first_ns,
        "parameters": sum(p.numel() for p in model.parameters()),
        "loss": loss.item(),
        "pss_before_first_step_bytes": at_rest,
        "threads": torch.get_num_threads(),
        "channels_last": args.channels_last,
        **versions(),
    }))


if __name__ == "__main__":
    main()
