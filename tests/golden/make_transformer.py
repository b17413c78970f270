"""Ten training steps of the translation model by PyTorch, for tests/nn/test_golden.c. Writes transformer.json.

    python make_transformer.py          (needs numpy and PyTorch)

As make_steps.py, with samples of a source and a target. PyTorch's side is padded and masked, which is the same
arithmetic. The model is that of src/nn/models/transformer.c, module by module.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F

import make_steps
from make_steps import IGNORE, SLICES, STEPS
from shared import Words, uniform, write

CASES = [
    dict(model="transformer", options=dict(d_model=16, heads=2, layers=2, d_ff=24, dropout=0), task="pairs", x=[],
         classes=17, sources=13, max_len=12, n=11, seed=8, optim="adam", optim_options=dict(lr=0.005, eps=1e-9), clip=0,
         label_smoothing=0.1),
    dict(model="transformer", options=dict(d_model=12, heads=3, layers=1, d_ff=40, dropout=0), task="pairs", x=[],
         classes=29, sources=31, max_len=20, n=9, seed=9, optim="sgd", optim_options=dict(lr=0.1, momentum=0.9), clip=0.5),
]


class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.alpha, self.bias = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))

    def forward(self, x):
        return self.alpha * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + self.bias


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.w_q, self.w_k = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.w_v, self.w_o = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)

    def forward(self, x, y, seen):
        def split(a):
            return a.reshape(a.shape[0], a.shape[1], self.heads, -1).transpose(1, 2)
        h = F.scaled_dot_product_attention(split(self.w_q(x)), split(self.w_k(y)), split(self.w_v(y)), attn_mask=seen)
        return self.w_o(h.transpose(1, 2).reshape(x.shape))


class Residual(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = Norm(d)


class Block(nn.Module):
    def __init__(self, o, decoder):
        super().__init__()
        d = o["d_model"]
        self.self_attention_block = Attention(d, o["heads"])
        if decoder:
            self.cross_attention_block = Attention(d, o["heads"])
        self.feed_forward_block = nn.ModuleDict(dict(linear_1=nn.Linear(d, o["d_ff"]), linear_2=nn.Linear(o["d_ff"], d)))
        self.residual_connections = nn.ModuleList(Residual(d) for _ in range(3 if decoder else 2))

    def forward(self, x, own, memory=None, seen=None):
        at = [r.norm for r in self.residual_connections]
        h = at[0](x)
        x = x + self.self_attention_block(h, h, own)
        if memory is not None:
            x = x + self.cross_attention_block(at[1](x), memory, seen)
        f = self.feed_forward_block
        return x + f["linear_2"](F.relu(f["linear_1"](at[-1](x))))


class Side(nn.Module):
    def __init__(self, o, decoder):
        super().__init__()
        self.layers = nn.ModuleList(Block(o, decoder) for _ in range(o["layers"]))
        self.norm = Norm(o["d_model"])


def sinusoids(t, d, dtype):
    at = torch.arange(t, dtype=torch.float64)[:, None]
    rate = torch.exp(torch.arange(0, d, 2, dtype=torch.float64) * (-math.log(10000.0) / d))
    return torch.stack([torch.sin(at * rate), torch.cos(at * rate)], 2).reshape(t, d).to(dtype)


class Transformer(nn.Module):
    def __init__(self, case):
        super().__init__()
        o = case["options"]
        self.d = o["d_model"]
        self.src_embed = nn.ModuleDict(dict(embedding=nn.Embedding(case["sources"], self.d)))
        self.tgt_embed = nn.ModuleDict(dict(embedding=nn.Embedding(case["classes"], self.d)))
        self.encoder, self.decoder = Side(o, False), Side(o, True)
        self.projection_layer = nn.ModuleDict(dict(proj=nn.Linear(self.d, case["classes"])))

    def embed(self, table, x):
        x = table["embedding"](x) * math.sqrt(self.d)
        return x + sinusoids(x.shape[1], self.d, x.dtype)

    def forward(self, both, lens):
        source, given = both
        words = torch.arange(source.shape[1])[None] < lens[:, None]  # [n, source]
        t = torch.arange(given.shape[1])
        x, y = self.embed(self.src_embed, source), self.embed(self.tgt_embed, given)
        for block in self.encoder.layers:
            x = block(x, words[:, None, None])
        x = self.encoder.norm(x)
        for block in self.decoder.layers:
            y = block(y, t[None, :] <= t[:, None], x, words[:, None, None])
        return self.projection_layer["proj"](self.decoder.norm(y))


def initialise(model, seed):
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() > 1:
                p.copy_(torch.tensor(uniform(seed, name, tuple(p.shape), math.sqrt(6 / sum(p.shape)))))
            elif name.endswith("bias") and "norm" not in name:
                wide = model.get_submodule(name[:-5]).weight.shape[1]
                p.copy_(torch.tensor(uniform(seed, name, tuple(p.shape), 1 / math.sqrt(wide))))


def batch(case, words):
    """Sample by sample: the source's length and tokens, the target's length and one token more."""
    pairs = []
    for _ in range(case["n"]):
        source = [words.u32() % case["sources"] for _ in range(3 + words.u32() % (case["max_len"] - 2))]
        length = 3 + words.u32() % (case["max_len"] - 2)
        pairs.append((source, [words.u32() % case["classes"] for _ in range(length + 1)]))
    return pairs


def cut(case, data, lo, hi, dtype):
    """Slice [lo, hi) as tensors (source, given), y, lengths of the sources."""
    lens = torch.tensor([len(s) for s, _ in data[lo:hi]])
    wide, tall = int(lens.max()), max(len(t) - 1 for _, t in data[lo:hi])
    source = torch.tensor([s + [0] * (wide - len(s)) for s, _ in data[lo:hi]])
    given = torch.tensor([t[:-1] + [0] * (tall - len(t) + 1) for _, t in data[lo:hi]])
    y = torch.tensor([t[1:] + [IGNORE] * (tall - len(t) + 1) for _, t in data[lo:hi]])
    return (source, given), y, lens


def optimisers(case, model):
    o = case["optim_options"]
    return [torch.optim.SGD(model.parameters(), **o) if case["optim"] == "sgd" else torch.optim.Adam(model.parameters(), **o)]


make_steps.MODELS["transformer"] = Transformer
make_steps.KEPT["transformer"] = ["src_embed.embedding.weight", "tgt_embed.embedding.weight",
                                  "encoder.layers.0.self_attention_block.w_q.weight", "encoder.norm.alpha",
                                  "decoder.layers.0.cross_attention_block.w_v.weight",
                                  "decoder.layers.0.feed_forward_block.linear_1.bias", "projection_layer.proj.bias"]
make_steps.initialise, make_steps.batch, make_steps.cut, make_steps.optimisers = initialise, batch, cut, optimisers

if __name__ == "__main__":
    torch.set_num_threads(1)
    write("transformer.json", dict(torch=torch.__version__.split("+")[0], steps=STEPS, slices=SLICES,
                                   cases=[make_steps.golden(case) for case in CASES]))
