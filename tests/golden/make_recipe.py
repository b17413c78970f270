"""Ten steps of residual networks by PyTorch with a whole recipe, for tests/nn/test_recipe.c. Writes recipe.json.

    python make_recipe.py          (needs numpy and PyTorch)

The recipe: SGD with Nesterov's momentum, weight decay except on norms and biases (parameters of one dimension),
OneCycleLR with the momentum cycled, smoothed labels, and an average of weights and buffers by AveragedModel. Steps and
slices are make_steps.py's. Of the average some norms are kept, and those of its distance from the start. Values are of
float64; `float32...` is how far PyTorch's own float32 run is from them.
"""
import torch
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from make_resnet import ResNet, initialise
from make_steps import batch, step
from shared import Words, write

STEPS = 10
RECIPE = dict(x=[3, 32, 32], n=8, slices=2, classes=10, task="classify", optim="sgd", schedule="one_cycle", clip=0,
              label_smoothing=0.1, ema=0.99, no_decay=True, steps=STEPS)
SGD = dict(momentum=0.9, nesterov=True)
ONE_CYCLE = dict(pct_start=0.3, div_factor=25.0, final_div_factor=1e4, base_momentum=0.85, max_momentum=0.95)

# As in make_resnet.py the blocks start as identities: slices of four small images are badly conditioned otherwise. In
# ten steps a decay of 5e-4 leaves no trace on a bias; the last case has one that does, if norms and biases are not spared.
CASES = [
    dict(RECIPE, model="resnet18", options=dict(stem="imagenet", zero_init_residual=True), seed=6, lr=0.003,
         weight_decay=5e-4),
    dict(RECIPE, model="resnet50", options=dict(stem="imagenet", zero_init_residual=True), seed=7, lr=0.001,
         weight_decay=5e-4),
    dict(RECIPE, model="resnet18", options=dict(stem="imagenet", zero_init_residual=True), seed=8, lr=0.003,
         weight_decay=0.2),
]
KEPT = dict(resnet18=["conv1.weight", "bn1.weight", "bn1.running_mean", "layer1.0.conv2.weight", "layer2.0.bn2.weight",
                      "layer3.0.downsample.0.weight", "layer4.1.bn2.running_var", "fc.weight", "fc.bias"],
            resnet50=["conv1.weight", "bn1.bias", "bn1.running_var", "layer1.0.conv3.weight", "layer2.0.bn3.weight",
                      "layer3.0.downsample.0.weight", "layer4.2.bn3.running_mean", "fc.weight", "fc.bias"])


def groups(model, decay):
    params = list(model.parameters())
    return [dict(params=[p for p in params if p.dim() > 1], weight_decay=decay),
            dict(params=[p for p in params if p.dim() <= 1], weight_decay=0.0)]


def run(case, dtype):
    model, words = ResNet(case), Words(case["seed"])
    initialise(model, case["seed"])
    model.to(dtype).train()
    start = {name: value.clone() for name, value in model.state_dict().items()}
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.momentum = 1.0  # step() takes the statistics of each slice and averages them itself
    batches = [batch(case, words), batch(case, words)]
    opt = torch.optim.SGD(groups(model, case["weight_decay"]), lr=case["lr"], momentum=SGD["momentum"], nesterov=True)
    schedule = OneCycleLR(opt, max_lr=case["lr"], total_steps=STEPS, **ONE_CYCLE)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(case["ema"]), use_buffers=True)
    results = []
    for i in range(STEPS):
        results.append(step(case, model, [opt], batches[i % 2], dtype))
        average.update_parameters(model)
        if i + 1 < STEPS:
            schedule.step()
    state = average.module.state_dict()
    norms = {name: float(state[name].double().norm()) for name in KEPT[case["model"]]}
    moved = {name: float((state[name] - start[name]).double().norm()) for name in KEPT[case["model"]]}
    moved = {name: d for name, d in moved.items() if d > 2e-4 * norms[name]}  # less is not to be seen in float32
    return [r[0] for r in results], [r[1] for r in results], norms, moved


def apart(got, want):
    return max(abs(got[k] - v) / v for k, v in want.items())


def golden(case):
    losses, grad_norms, norms, moved = run(case, torch.float64)
    single, _, single_norms, single_moved = run(case, torch.float32)
    worst = max(abs(a - b) / b for a, b in zip(single, losses))
    text = {k: {n: str(v).lower() for n, v in o.items()} for k, o in
            dict(options=case["options"], optim_options=dict(SGD, lr=case["lr"], weight_decay=case["weight_decay"]),
                 schedule_options=ONE_CYCLE).items()}
    return dict(case, **text, losses=losses, grad_norms=grad_norms, ema_norms=norms, ema_moved=moved,
                float32=worst, float32_norms=apart(single_norms, norms), float32_moved=apart(single_moved, moved))


if __name__ == "__main__":
    torch.set_num_threads(1)
    write("recipe.json", dict(torch=torch.__version__.split("+")[0], cases=[golden(case) for case in CASES]))
