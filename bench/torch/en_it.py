#!/usr/bin/env python3
"""The PyTorch arm of the translation comparison: the recipe `experiment=en_it` as the guide's train.py has it.

The guide's encoder-decoder (norm before each layer, by the unbiased standard deviation; attention without biases;
sinusoids; Xavier's weights), Adam with eps 1e-9, label smoothing, greedy decoding. It reads the same pairs, makes the same
split and trains the same tokenizers as cohort's data=pairs; batches are padded to their longest sentence and masked, which
is the same arithmetic as no padding. BLEU (sacrebleu) is of the first --sentences pairs of val. The last line is a JSON
object; --ours RUN, the folder of a finished cohort run, puts its figures beside.

    en_it.py --data tatoeba.en-it.tsv --epochs 10 [--ours RUN] [--limit N --sentences 1000]

Needs torch, tokenizers, sacrebleu.
"""
import argparse
import json
import math
import os
import time

import sacrebleu
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import nn
from torch.nn import functional as F

SPECIALS = ["[UNK]", "[PAD]", "[SOS]", "[EOS]"]
PAD, SOS, EOS = 1, 2, 3
M64 = (1 << 64) - 1


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True, help="tab-separated file: English, Italian")
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--d-model", type=int, default=256)
    p.add_argument("--layers", type=int, default=3)
    p.add_argument("--heads", type=int, default=8)
    p.add_argument("--d-ff", type=int, default=1024)
    p.add_argument("--dropout", type=float, default=0.1)
    p.add_argument("--max-len", type=int, default=350)
    p.add_argument("--sentences", type=int, default=1000, help="of val, to translate")
    p.add_argument("--longest", type=int, default=120, help="tokens of a translation")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--limit", type=int, default=0, help="train on so many pairs only")
    p.add_argument("--ours", help="folder of a cohort run to print beside")
    return p.parse_args()


# --- the data, as data=pairs has it

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
    out = []
    for a, b in pairs:
        x, y = src.encode(a).ids, tgt.encode(b).ids
        if len(x) + 2 <= max_len and len(y) + 1 <= max_len:
            out.append(([SOS] + x + [EOS], y, a, b))
    return out


def padded(rows):
    longest = max(map(len, rows))
    return torch.tensor([r + [PAD] * (longest - len(r)) for r in rows])


# --- the guide's model

class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.alpha, self.bias = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))

    def forward(self, x):
        return self.alpha * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + self.bias


class Attention(nn.Module):
    def __init__(self, d, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, nn.Dropout(dropout)
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, x, memory, mask):
        def cut(t):
            return t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)
        q, k, v = cut(self.w_q(x)), cut(self.w_k(memory)), cut(self.w_v(memory))
        score = (q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        score = self.dropout(score.masked_fill(~mask, -1e9).softmax(-1))
        return self.w_o((score @ v).transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, a, crosses):
        super().__init__()
        self.self_attention = Attention(a.d_model, a.heads, a.dropout)
        self.cross = Attention(a.d_model, a.heads, a.dropout) if crosses else None
        self.inner, self.outer = nn.Linear(a.d_model, a.d_ff), nn.Linear(a.d_ff, a.d_model)
        self.norms, self.dropout = nn.ModuleList(Norm(a.d_model) for _ in range(3 if crosses else 2)), nn.Dropout(a.dropout)

    def forward(self, x, mask, memory=None, memory_mask=None):
        h = self.norms[0](x)
        x = x + self.dropout(self.self_attention(h, h, mask))
        if self.cross:
            x = x + self.dropout(self.cross(self.norms[1](x), memory, memory_mask))
        return x + self.dropout(self.outer(self.dropout(F.relu(self.inner(self.norms[-1](x))))))


class Transformer(nn.Module):
    def __init__(self, a, sources, targets):
        super().__init__()
        self.embed = nn.ModuleList([nn.Embedding(sources, a.d_model), nn.Embedding(targets, a.d_model)])
        self.encoder = nn.ModuleList(Block(a, False) for _ in range(a.layers))
        self.decoder = nn.ModuleList(Block(a, True) for _ in range(a.layers))
        self.norms = nn.ModuleList([Norm(a.d_model), Norm(a.d_model)])
        self.out, self.dropout = nn.Linear(a.d_model, targets), nn.Dropout(a.dropout)
        at = torch.arange(a.max_len)[:, None] * torch.exp(torch.arange(0, a.d_model, 2) * (-math.log(1e4) / a.d_model))
        self.register_buffer("sinusoids", torch.stack([at.sin(), at.cos()], -1).flatten(1))
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def begin(self, side, x):
        e = self.embed[side](x)
        return self.dropout(e * math.sqrt(e.shape[-1]) + self.sinusoids[:x.shape[1]])

    def encode(self, x):
        mask, h = (x != PAD)[:, None, None], self.begin(0, x)
        for block in self.encoder:
            h = block(h, mask)
        return self.norms[0](h), mask

    def decode(self, given, memory, memory_mask):
        n = given.shape[1]
        mask = (given != PAD)[:, None, None] & torch.ones(n, n, dtype=torch.bool).tril()
        h = self.begin(1, given)
        for block in self.decoder:
            h = block(h, mask, memory, memory_mask)
        return self.out(self.norms[1](h))


def train_epoch(net, opt, rows, a):
    total = tokens = 0
    order = torch.randperm(len(rows)).tolist()
    for at in range(0, len(order), a.batch):
        batch = [rows[i] for i in order[at:at + a.batch]]
        x, given = padded([r[0] for r in batch]), padded([[SOS] + r[1] for r in batch])
        y = padded([r[1] + [EOS] for r in batch])
        logits = net.decode(given, *net.encode(x))
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=PAD, label_smoothing=0.1)
        opt.zero_grad()
        loss.backward()
        opt.step()
        n = int((y != PAD).sum())
        total, tokens = total + loss.item() * n, tokens + n
    return total / tokens


@torch.no_grad()
def translate(net, rows, tgt, a):
    out = []
    for at in range(0, len(rows), 64):
        x = padded([r[0] for r in rows[at:at + 64]])
        memory, mask = net.encode(x)
        given, done = torch.full((len(x), 1), SOS), torch.zeros(len(x), dtype=torch.bool)
        while given.shape[1] < a.longest and not done.all():
            word = net.decode(given, memory, mask)[:, -1].argmax(-1)
            given = torch.cat([given, torch.where(done, PAD, word)[:, None]], 1)
            done |= word == EOS
        for g in given.tolist():
            g = g[1:g.index(EOS)] if EOS in g else g[1:]
            out.append(tgt.decode(g))
    return out


def main():
    a = arguments()
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    with open(a.data, encoding="utf-8") as f:
        pairs = [tuple(s.strip() for s in line.rstrip("\n").split("\t")[:2]) for line in f if line.strip()]
    train, val = split(pairs)
    src, tgt = tokenizer([p[0] for p in train]), tokenizer([p[1] for p in train])
    train, val = encode(train, src, tgt, a.max_len), encode(val, src, tgt, a.max_len)[:a.sentences]
    if a.limit:
        train = train[:a.limit]
    net = Transformer(a, src.get_vocab_size(), tgt.get_vocab_size())
    opt = torch.optim.Adam(net.parameters(), lr=a.lr, eps=1e-9)
    started = time.time()
    for epoch in range(a.epochs):
        net.train()
        loss = train_epoch(net, opt, train, a)
        print(f"epoch {epoch + 1}/{a.epochs}  train loss {loss:.4f}  {time.time() - started:.0f} s", flush=True)
    seconds = time.time() - started
    net.eval()
    said = translate(net, val, tgt, a)
    for i in range(min(3, len(val))):
        print(f"SOURCE:    {val[i][2]}\nTARGET:    {val[i][3]}\nPREDICTED: {said[i]}")
    bleu = sacrebleu.corpus_bleu(said, [[r[3] for r in val]]).score
    result = dict(task="en_it", epochs=a.epochs, pairs=len(train), sentences=len(val), vocabularies=[
        src.get_vocab_size(), tgt.get_vocab_size()], parameters=sum(p.numel() for p in net.parameters()),
        torch_bleu=round(bleu, 2), torch_train_loss=round(loss, 4), torch_seconds=round(seconds, 1))
    if a.ours:
        with open(os.path.join(a.ours, "summary.json")) as f:
            ours = json.load(f)
        result.update(ours_metrics=ours["metrics"], ours_epochs=ours["epochs"], ours_seconds=round(ours["wall_s"], 1))
        score = next((v for k, v in ours["metrics"].items() if k.lower().endswith("bleu")), None)
        if score is not None:
            result.update(ours_bleu=score, ratio=round(score / bleu, 3) if bleu else None)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
