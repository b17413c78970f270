"""Ten training steps of the models of ratings by PyTorch, for tests/nn/test_golden.c. Writes ratings.json.

    python make_ratings.py          (needs numpy and PyTorch)

As make_steps.py, with samples of a user, an item and a rating. The tables are updated by SparseAdam, the other
parameters by Adam where the case says `adam`.
"""
import torch
from torch import nn
from torch.nn import functional as F

import make_steps
from make_steps import SLICES, STEPS, gradients
from shared import Words, normal, uniform, write

RATINGS = dict(task="regress", y_width=1, users=7, items=5, y_mean=3.25, clip=0)
CASES = [
    dict(RATINGS, model="factors", options=dict(width=8, spread=0.1), n=26, seed=5, optim="sparse_adam",
         optim_options=dict(lr=0.02)),
    dict(RATINGS, model="neumf", options=dict(width=4, layers=3, dropout=0), n=30, seed=6, optim="adam",
         optim_options=dict(lr=0.01)),
    dict(RATINGS, model="neumf", options=dict(width=8, layers=1, dropout=0), n=23, seed=7, optim="sgd",
         optim_options=dict(lr=0.05)),
]


class Factors(nn.Module):
    def __init__(self, case):
        super().__init__()
        w, users, items = case["options"]["width"], case["users"], case["items"]
        self.user, self.item = nn.Embedding(users, w, sparse=True), nn.Embedding(items, w, sparse=True)
        self.user_bias, self.item_bias = nn.Embedding(users, 1, sparse=True), nn.Embedding(items, 1, sparse=True)
        self.bias = nn.Parameter(torch.full((1,), case["y_mean"]))

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(1, keepdim=True) + self.user_bias(u) + self.item_bias(i) + self.bias


class NeuMF(nn.Module):
    def __init__(self, case):
        super().__init__()
        w, layers, users, items = case["options"]["width"], case["options"]["layers"], case["users"], case["items"]
        wide = w * 2 ** (layers - 1)
        self.embed_user_GMF = nn.Embedding(users, w, sparse=True)
        self.embed_item_GMF = nn.Embedding(items, w, sparse=True)
        self.embed_user_MLP = nn.Embedding(users, wide, sparse=True)
        self.embed_item_MLP = nn.Embedding(items, wide, sparse=True)
        parts = []
        for _ in range(layers):
            parts += [nn.Dropout(0.0), nn.Linear(2 * wide, wide), nn.ReLU()]
            wide //= 2
        self.MLP_layers = nn.Sequential(*parts)
        self.predict_layer = nn.Linear(2 * w, 1)

    def forward(self, u, i):
        gmf = self.embed_user_GMF(u) * self.embed_item_GMF(i)
        mlp = self.MLP_layers(torch.cat([self.embed_user_MLP(u), self.embed_item_MLP(i)], 1))
        return self.predict_layer(torch.cat([gmf, mlp], 1))


MODELS = dict(factors=Factors, neumf=NeuMF)


def initialise(model, case):
    """The program's own initial weights, by parameter name."""
    seed, spread = case["seed"], case["options"].get("spread", 0.01)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("_bias.weight"):
                p.zero_()
            elif name in ("bias", "predict_layer.bias"):
                p.fill_(case["y_mean"])
            elif name.startswith(("embed", "user", "item")):
                p.copy_(torch.tensor(normal(seed, name, tuple(p.shape), spread)))
            else:
                fan_in = model.get_submodule(name.rsplit(".", 1)[0]).weight.shape[1]
                p.copy_(torch.tensor(uniform(seed, name, tuple(p.shape), fan_in**-0.5)))


def batch(case, words):
    """Sample by sample: user, item, rating."""
    return [(words.u32() % case["users"], words.u32() % case["items"], 3 + float(words.unit()))
            for _ in range(case["n"])]


def optimisers(case, model):
    o = case["optim_options"]
    if case["optim"] == "sgd":
        return [torch.optim.SGD(model.parameters(), **o)]
    tables = [m.weight for m in model.modules() if isinstance(m, nn.Embedding)]
    others = [p for p in model.parameters() if all(p is not t for t in tables)]
    dense = torch.optim.Adam(others, **o) if case["optim"] == "adam" else PlainSparseAdam(others, **o)
    return [torch.optim.SparseAdam(tables, **o), dense]


class PlainSparseAdam:
    """SparseAdam's rule for a parameter whose every row has a gradient; PyTorch's own refuses those."""

    def __init__(self, params, lr):
        self.params, self.tables = params, [torch.nn.Parameter(p.detach().reshape(1, -1).clone()) for p in params]
        self.opt = torch.optim.SparseAdam(self.tables, lr=lr)

    def step(self):
        for p, t in zip(self.params, self.tables):
            t.data.copy_(p.detach().reshape(1, -1))
            t.grad = torch.sparse_coo_tensor(torch.zeros(1, 1, dtype=torch.long), p.grad.reshape(1, -1), t.shape)
        self.opt.step()
        with torch.no_grad():
            for p, t in zip(self.params, self.tables):
                p.copy_(t.reshape(p.shape))


def step(case, model, opts, data, dtype):
    n, total = case["n"], 0
    model.zero_grad()
    for s in range(SLICES):
        part = data[s * n // SLICES : (s + 1) * n // SLICES]
        u, i = (torch.tensor([row[k] for row in part]) for k in (0, 1))
        y = torch.tensor([[row[2]] for row in part], dtype=dtype)
        loss = F.mse_loss(model(u, i), y, reduction="sum")
        loss.backward()
        total += float(loss.detach())
    grads = list(gradients(model))
    norm = sum(float((g / n).double().square().sum()) for g in grads) ** 0.5
    with torch.no_grad():
        for g in grads:
            g.mul_(1 / n)
    for o in opts:
        o.step()
    return total / n, norm


def run(case, dtype):
    model = MODELS[case["model"]](case)
    initialise(model, case)
    model.to(dtype).train()
    opts, words = optimisers(case, model), Words(case["seed"])
    batches = [batch(case, words), batch(case, words)]
    results = [step(case, model, opts, batches[i % 2], dtype) for i in range(STEPS)]
    return [r[0] for r in results], [r[1] for r in results], model.state_dict()


make_steps.run = run
make_steps.KEPT = dict(factors=["user.weight", "item_bias.weight", "bias"],
                       neumf=["embed_item_GMF.weight", "embed_user_MLP.weight", "MLP_layers.1.weight",
                              "predict_layer.weight", "predict_layer.bias"])

if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.sparse.check_sparse_tensor_invariants.enable()
    write("ratings.json", dict(torch=torch.__version__.split("+")[0], steps=STEPS, slices=SLICES,
                               cases=[make_steps.golden(case) for case in CASES]))
