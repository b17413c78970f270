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
import os
import time

import sacrebleu
import torch

from translation import EOS, PAD, SOS, Transformer, batch_of, encode, loss_of, padded, read_pairs, split, tokenizer


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


def train_epoch(net, opt, rows, a):
    total = tokens = 0
    order = torch.randperm(len(rows)).tolist()
    for at in range(0, len(order), a.batch):
        batch = [rows[i] for i in order[at:at + a.batch]]
        x, given, y = batch_of(batch)
        loss = loss_of(net(x, given), y)
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
    train, val = split(read_pairs(a.data))
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
