"""The tasks of versus.py on pictures: resnets of torchvision, vision transformers of timm, and two small networks for
digits. Timed steps use random numbers of the right shape; the first loss is of cohort's own first batch."""
from collections import OrderedDict

import torch
from torch import nn

from common import Task

CLASSES = 10


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, fused=True)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3, fused=True)


def task(args, model, shape, optimizer, digits=False):
    def first():
        import made_up
        if digits:
            x, y = made_up.digits(made_up.order(1797 - 2 * 180)[:args.batch])
        else:
            x, y = made_up.fake_images(made_up.order(2048)[:args.batch], args.size)
        return torch.from_numpy(x), torch.from_numpy(y)

    def batches(steps):
        return [(torch.randn(args.batch, *shape), torch.randint(CLASSES, (args.batch,))) for _ in range(2)]
    return Task(model, lambda m: [optimizer(m.parameters())], batches, nn.CrossEntropyLoss(), len, first)


def resnet(args):
    import torchvision
    model = getattr(torchvision.models, args.task)(num_classes=CLASSES)
    return task(args, model, (3, args.size, args.size), sgd)


def vit_base(args):
    import timm
    model = timm.create_model("vit_base_patch32_224", num_classes=CLASSES, img_size=args.size)
    return task(args, model, (3, args.size, args.size), adamw)


def vit_tiny(args):
    from timm.models.vision_transformer import VisionTransformer
    model = VisionTransformer(img_size=args.size, patch_size=4, embed_dim=192, depth=12, num_heads=3,
                              num_classes=CLASSES)
    return task(args, model, (3, args.size, args.size), adamw)


def digits_mlp(args):
    def layer(i, width):
        return [(f"fc{i}", nn.Linear(width, 128)), (f"relu{i}", nn.ReLU()), (f"drop{i}", nn.Dropout(0.1))]
    layers = [("flat", nn.Flatten()), *layer(1, 64), *layer(2, 128), ("head", nn.Linear(128, CLASSES))]
    return task(args, nn.Sequential(OrderedDict(layers)), (1, 8, 8), sgd, digits=True)


def digits_cnn(args):
    def layer(i, width, out):
        return [(f"conv{i}", nn.Conv2d(width, out, 3, padding=1, bias=False)), (f"bn{i}", nn.BatchNorm2d(out)),
                (f"relu{i}", nn.ReLU(inplace=True))]
    layers = [*layer(1, 1, 32), *layer(2, 32, 64), ("pool", nn.MaxPool2d(2)), *layer(3, 64, 64),
              ("mean", nn.AdaptiveAvgPool2d(1)), ("flat", nn.Flatten()), ("fc", nn.Linear(64, CLASSES))]
    return task(args, nn.Sequential(OrderedDict(layers)), (1, 8, 8), sgd, digits=True)


TASKS = {**{f"resnet{depth}": resnet for depth in (18, 34, 50, 101, 152)}, "vit_base": vit_base, "vit_tiny": vit_tiny,
         "digits-mlp": digits_mlp, "digits-cnn": digits_cnn, "start": digits_mlp}
