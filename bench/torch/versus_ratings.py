"""The task movielens of versus.py: matrix factorisation with embedding tables. --sparse: row-sparse gradients and
SparseAdam; if not, dense gradients and Adam."""
import csv
import os

import numpy as np
import torch
from torch import nn

from common import Task

WIDTH = 32


class Factors(nn.Module):
    def __init__(self, users, items, mean, sparse):
        super().__init__()
        self.user, self.item = (nn.Embedding(n, WIDTH, sparse=sparse) for n in (users, items))
        self.user_bias, self.item_bias = (nn.Embedding(n, 1, sparse=sparse) for n in (users, items))
        self.bias = nn.Parameter(torch.tensor([mean]))
        for table in self.user, self.item:
            nn.init.normal_(table.weight, std=0.01)
        for table in self.user_bias, self.item_bias:
            nn.init.zeros_(table.weight)

    def forward(self, u, i):
        dot = (self.user(u) * self.item(i)).sum(1, keepdim=True)
        return dot + self.user_bias(u) + self.item_bias(i) + self.bias


def ratings(folder):
    """Rows of users and items, and stars [n,1], in the order of data=movielens with data.val_fraction=0."""
    import made_up
    with open(os.path.join(folder, "ratings.csv"), newline="") as f:
        lines = [(int(r["userId"]), int(r["movieId"]), float(r["rating"])) for r in csv.DictReader(f)]
    user, item, stars = (np.array(column) for column in zip(*lines))
    user, item = (np.unique(ids, return_inverse=True)[1] for ids in (user, item))
    place = made_up.permutation(0, made_up.SPLIT, len(stars))
    stars = stars[place].astype(np.float32)[:, None]
    return torch.from_numpy(user[place]), torch.from_numpy(item[place]), torch.from_numpy(stars)


def task(args):
    import made_up
    user, item, stars = ratings(args.data)
    model = Factors(int(user.max()) + 1, int(item.max()) + 1, stars.mean().item(), args.sparse)

    def batches(steps):
        ids = torch.tensor(made_up.order(len(stars))).split(args.batch)[:max(1, min(steps, len(stars) // args.batch))]
        return [(user[k], item[k], stars[k]) for k in ids]

    def optimizers(m):
        if not args.sparse:
            return [torch.optim.Adam(m.parameters(), lr=0.002, fused=True)]
        tables = [p for name, p in m.named_parameters() if not name.endswith("bias") or "." in name]
        return [torch.optim.SparseAdam(tables, lr=0.002), torch.optim.Adam([m.bias], lr=0.002)]
    return Task(model, optimizers, batches, nn.MSELoss(), len, lambda: batches(1)[0])


TASKS = {"movielens": task}
