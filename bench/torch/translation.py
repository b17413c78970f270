"""Sentence pairs and the translation guide's model in PyTorch, for en_it.py and the transformer tasks of versus.py.

The pairs, their split and the tokenizers are those of cohort's data=pairs, and the parameters have the names of
model=transformer, which are the guide's. Needs torch and tokenizers.
"""
import math
import os

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import nn
from torch.nn import functional as F

SPECIALS = ["[UNK]", "[PAD]", "[SOS]", "[EOS]"]
PAD, SOS, EOS = 1, 2, 3
M64 = (1 << 64) - 1


# --- the data, as data=pairs has it

def read_pairs(path):
    """Pairs of a tab-separated file, or of the file tatoeba*.tsv in a folder."""
    if os.path.isdir(path):
        found = sorted(n for n in os.listdir(path) if n.startswith("tatoeba") and n.endswith(".tsv"))
        if not found:
            raise SystemExit(f"{path}: there is no file tatoeba*.tsv")
        path = os.path.join(path, found[0])
    with open(path, encoding="utf-8") as f:
        return [tuple(s.strip() for s in line.rstrip("\n").split("\t")[:2]) for line in f if line.strip()]


def fnv1a64(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = ((h ^ b) * 0x100000001B3) & M64
    return h


def mix(x):
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & M64
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & M64
    return x ^ x >> 31


def split(pairs, val_fraction=0.1, seed=0):
    """All pairs of a source sentence are in one split; the sentences are in order of a hash of seed and bytes."""
    key = {src: (mix(fnv1a64(src.encode()) ^ mix(seed + 1)), src.encode()) for src, _ in pairs}
    order = sorted(key, key=key.get)
    val = set(order[:max(1, int(len(order) * val_fraction))])
    return [p for p in pairs if p[0] not in val], [p for p in pairs if p[0] in val]


def tokenizer(sentences):
    t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.train_from_iterator(sentences, trainer=trainers.WordLevelTrainer(special_tokens=SPECIALS, min_frequency=2))
    return t


def encode(pairs, src, tgt, max_len):
    """(source tokens with begin and end, target tokens, source, target) of each pair that is not too long."""
    out = []
    for a, b in pairs:
        x, y = src.encode(a).ids, tgt.encode(b).ids
        if len(x) + 2 <= max_len and len(y) + 1 <= max_len:
            out.append(([SOS] + x + [EOS], y, a, b))
    return out


def padded(rows, length=0):
    """A tensor of rows that are as long as the longest of them, or as `length`."""
    length = length or max(map(len, rows))
    return torch.tensor([r + [PAD] * (length - len(r)) for r in rows])


def batch_of(rows, length=0):
    """(source, target so far, target) of these encoded pairs."""
    return (padded([r[0] for r in rows], length), padded([[SOS] + r[1] for r in rows], length),
            padded([r[1] + [EOS] for r in rows], length))


def loss_of(logits, y, smoothing=0.1):
    return F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=PAD, label_smoothing=smoothing)


# --- the guide's model

class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.alpha, self.bias = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))

    def forward(self, x):
        return self.alpha * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + self.bias


class Attention(nn.Module):
    def __init__(self, a):
        super().__init__()
        d = a.d_model
        self.heads, self.dropout, self.fused = a.heads, nn.Dropout(a.dropout), getattr(a, "sdpa", False)
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, x, memory, mask):
        def cut(t):
            return t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)
        q, k, v = cut(self.w_q(x)), cut(self.w_k(memory)), cut(self.w_v(memory))
        if self.fused:
            rate = self.dropout.p if self.training else 0
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rate)
        else:
            score = (q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
            y = self.dropout(score.masked_fill(~mask, -1e9).softmax(-1)) @ v
        return self.w_o(y.transpose(1, 2).reshape(x.shape))


class FeedForward(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.linear_1, self.linear_2 = nn.Linear(a.d_model, a.d_ff), nn.Linear(a.d_ff, a.d_model)
        self.dropout = nn.Dropout(a.dropout)

    def forward(self, x):
        return self.linear_2(self.dropout(F.relu(self.linear_1(x))))


class Residual(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.norm, self.dropout = Norm(a.d_model), nn.Dropout(a.dropout)

    def forward(self, x, layer):
        return x + self.dropout(layer(self.norm(x)))


class Block(nn.Module):
    def __init__(self, a, crosses):
        super().__init__()
        self.self_attention_block = Attention(a)
        self.cross_attention_block = Attention(a) if crosses else None
        self.feed_forward_block = FeedForward(a)
        self.residual_connections = nn.ModuleList(Residual(a) for _ in range(3 if crosses else 2))

    def forward(self, x, mask, memory=None, memory_mask=None):
        x = self.residual_connections[0](x, lambda h: self.self_attention_block(h, h, mask))
        if self.cross_attention_block:
            x = self.residual_connections[1](x, lambda h: self.cross_attention_block(h, memory, memory_mask))
        return self.residual_connections[-1](x, self.feed_forward_block)


class Side(nn.Module):
    def __init__(self, a, crosses):
        super().__init__()
        self.layers, self.norm = nn.ModuleList(Block(a, crosses) for _ in range(a.layers)), Norm(a.d_model)

    def forward(self, h, *more):
        for block in self.layers:
            h = block(h, *more)
        return self.norm(h)


class Words(nn.Module):
    def __init__(self, rows, d):
        super().__init__()
        self.embedding = nn.Embedding(rows, d)


class Projection(nn.Module):
    def __init__(self, d, rows):
        super().__init__()
        self.proj = nn.Linear(d, rows)


class Transformer(nn.Module):
    """`a` has d_model, layers, heads, d_ff, dropout, max_len; sdpa: PyTorch's own attention instead of the guide's."""
    def __init__(self, a, sources, targets):
        super().__init__()
        self.src_embed, self.tgt_embed = Words(sources, a.d_model), Words(targets, a.d_model)
        self.encoder, self.decoder = Side(a, False), Side(a, True)
        self.projection_layer, self.dropout = Projection(a.d_model, targets), nn.Dropout(a.dropout)
        at = torch.arange(a.max_len)[:, None] * torch.exp(torch.arange(0, a.d_model, 2) * (-math.log(1e4) / a.d_model))
        self.register_buffer("sinusoids", torch.stack([at.sin(), at.cos()], -1).flatten(1), persistent=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def begin(self, words, x):
        e = words.embedding(x)
        return self.dropout(e * math.sqrt(e.shape[-1]) + self.sinusoids[:x.shape[1]])

    def encode(self, x):
        mask = (x != PAD)[:, None, None]
        return self.encoder(self.begin(self.src_embed, x), mask), mask

    def decode(self, given, memory, memory_mask):
        n = given.shape[1]
        mask = (given != PAD)[:, None, None] & torch.ones(n, n, dtype=torch.bool).tril()
        h = self.decoder(self.begin(self.tgt_embed, given), mask, memory, memory_mask)
        return self.projection_layer.proj(h)

    def forward(self, x, given):
        return self.decode(given, *self.encode(x))
