#!/usr/bin/env python3
"""PyTorch's side of `cohort bench gloo`: one of two processes that train resnet18 with DistributedDataParallel over
gloo, or that only add up a tensor. Process 0 prints one JSON object.

Fair to PyTorch: the data is in memory in the requested layout before the clock starts, nothing is logged or evaluated,
gradients are views into DDP's buckets (one copy fewer), and buffers are not broadcast. The bench runs both layouts and
takes the better. Connections are plain.

    gloo.py --check
    gloo.py train --rank 0 --address 127.0.0.1 --port 4400 --device lo --batch 64 --size 64 --steps 10
    gloo.py allreduce --rank 0 --address 127.0.0.1 --port 4400 --device lo --count 11250000 --rounds 10
"""
import argparse
import json
import os
import time

from common import exchange, open_group


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", nargs="?", choices=["train", "allreduce"])
    p.add_argument("--rank", type=int, default=0)
    p.add_argument("--address", default="127.0.0.1", help="of process 0")
    p.add_argument("--port", type=int)
    p.add_argument("--device", default="lo", help="network interface")
    p.add_argument("--batch", type=int, default=64, help="of both processes together")
    p.add_argument("--size", type=int, default=64)
    p.add_argument("--classes", type=int, default=10)
    p.add_argument("--steps", type=int, default=10, help="timed")
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--channels-last", action="store_true")
    p.add_argument("--count", type=int, default=11250000, help="floats")
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--check", action="store_true", help="only say which versions there are")
    return p.parse_args()


def resnet18(classes):
    """torchvision's resnet18, written out: torchvision is not needed."""
    from torch import nn

    def conv(i, o, k, stride):
        return nn.Conv2d(i, o, k, stride, k // 2, bias=False)

    class Block(nn.Module):
        def __init__(self, i, o, stride):
            super().__init__()
            self.conv1, self.bn1 = conv(i, o, 3, stride), nn.BatchNorm2d(o)
            self.conv2, self.bn2 = conv(o, o, 3, 1), nn.BatchNorm2d(o)
            self.relu = nn.ReLU(inplace=True)
            self.down = nn.Sequential(conv(i, o, 1, stride), nn.BatchNorm2d(o)) if stride > 1 else nn.Identity()

        def forward(self, x):
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(y + self.down(x))

    def layer(i, o, stride):
        return [Block(i, o, stride), Block(o, o, 1)]
    return nn.Sequential(conv(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
                         *layer(64, 64, 1), *layer(64, 128, 2), *layer(128, 256, 2), *layer(256, 512, 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


def train(args):
    import torch
    torch.manual_seed(0)
    model = resnet18(args.classes)
    model.train()
    mine = args.batch // 2
    x = [torch.randn(mine, 3, args.size, args.size) for _ in range(2)]
    y = [torch.randint(args.classes, (mine,)) for _ in range(2)]
    if args.channels_last:
        model = model.to(memory_format=torch.channels_last)
        x = [t.to(memory_format=torch.channels_last) for t in x]
    dist = open_group(args.rank, args.port, args.address, args.device)
    ddp = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)
    sgd = torch.optim.SGD(ddp.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    began = 0
    for step in range(args.warmup + args.steps):
        if step == args.warmup:
            dist.barrier()
            began = time.monotonic_ns()
        sgd.zero_grad(set_to_none=True)
        loss_of(ddp(x[step % 2]), y[step % 2]).backward()
        sgd.step()
    dist.barrier()
    seconds = (time.monotonic_ns() - began) * 1e-9
    dist.destroy_process_group()
    return {"samples_per_s": args.steps * 2 * mine / seconds, "parameters": sum(p.numel() for p in model.parameters())}


def allreduce(args):
    dist = open_group(args.rank, args.port, args.address, args.device)
    result = exchange(dist, args.count, args.rounds)
    dist.destroy_process_group()
    return result


def has_tls():
    """Whether this build of PyTorch has gloo's TLS. A build that lacks it refuses the transport by name."""
    import torch.distributed as dist
    os.environ.update(GLOO_DEVICE_TRANSPORT="TCP_TLS", GLOO_DEVICE_TRANSPORT_TCP_TLS_PKEY="/nonexistent",
                      GLOO_DEVICE_TRANSPORT_TCP_TLS_CERT="/nonexistent",
                      GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE="/nonexistent", GLOO_SOCKET_IFNAME="lo")
    try:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        return True
    except Exception as e:
        return "unsupported" not in str(e)


def main():
    args = arguments()
    import warnings
    warnings.filterwarnings("ignore")
    import torch
    if args.check:
        gloo = torch.distributed.is_available() and torch.distributed.is_gloo_available()
        print(json.dumps({"torch": torch.__version__, "gloo": gloo, "gloo_tls": gloo and has_tls()}))
        return
    torch.set_num_threads(1)
    result = {"train": train, "allreduce": allreduce}[args.what](args)
    if args.rank == 0:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
