"""The task lm of versus.py: cohort's model=lm, a causal transformer over characters, with its names and without dropout.
The text is the one that cohort trains on, in the same batches; every line of it makes a sequence of --size tokens."""
import torch
from torch import nn
from torch.nn import functional as F

from common import Task

WIDTH, HEADS, LAYERS = 256, 4, 2
HELD_OUT = 2  # lines: one to validate on, one to test on
SPLIT_SEED = 42


class Attention(nn.Module):
    def __init__(self, sdpa):
        super().__init__()
        self.sdpa, self.qkv, self.proj = sdpa, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, later):
        n, t, _ = x.shape
        q, k, v = (a.reshape(n, t, HEADS, -1).transpose(1, 2) for a in self.qkv(x).split(WIDTH, 2))
        if self.sdpa:
            h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(2, 3) * (WIDTH // HEADS) ** -0.5  # [n, heads, query, key]
            h = scores.masked_fill(later, float("-inf")).softmax(3) @ v
        return self.proj(h.transpose(1, 2).reshape(n, t, WIDTH))


class Block(nn.Module):
    def __init__(self, sdpa):
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(WIDTH), Attention(sdpa), nn.LayerNorm(WIDTH)
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(WIDTH, 4 * WIDTH), "fc2": nn.Linear(4 * WIDTH, WIDTH)})

    def forward(self, x, later):
        x = x + self.attn(self.norm1(x), later)
        return x + self.mlp["fc2"](F.gelu(self.mlp["fc1"](self.norm2(x))))


class LM(nn.Module):
    def __init__(self, classes, length, sdpa):
        super().__init__()
        self.tok, self.pos = nn.Embedding(classes, WIDTH), nn.Embedding(length, WIDTH)
        self.blocks = nn.ModuleList(Block(sdpa) for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, classes, bias=False)
        self.register_buffer("later", torch.ones(length, length, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, x):
        x = self.tok(x) + self.pos.weight
        for block in self.blocks:
            x = block(x, self.later)
        return self.head(self.norm(x))


def read(path, length):
    """The lines to train on as tokens [n,length], in the order of data=text, and how many tokens there are. Token 0 begins
    a sample; the characters follow in the order of their code points."""
    import made_up
    with open(path, encoding="utf-8", newline="\n") as f:
        lines = list(f)
    if any(len(line) != length for line in lines):
        raise SystemExit(f"{path}: not every line has {length} characters")
    token = {c: i + 1 for i, c in enumerate(sorted(set("".join(lines))))}
    place = made_up.permutation(SPLIT_SEED, made_up.SPLIT, len(lines))[:len(lines) - HELD_OUT]
    return torch.tensor([[token[c] for c in lines[i]] for i in place]), len(token) + 1


def loss_of(scores, y):
    return F.cross_entropy(scores.flatten(0, 1), y.flatten())


def task(args):
    import made_up
    y, classes = read(args.data, args.size)
    x = F.pad(y[:, :-1], (1, 0))

    def batches(steps):
        order = torch.tensor(made_up.order(len(y)))
        return [(x[k], y[k]) for k in order.split(args.batch)[:max(1, min(steps, len(y) // args.batch))]]

    def adamw(m):
        return [torch.optim.AdamW(m.parameters(), lr=1e-3, fused=True)]
    return Task(LM(classes, args.size, args.sdpa), adamw, batches, loss_of, torch.numel, lambda: batches(1)[0])


TASKS = {"lm": task}
