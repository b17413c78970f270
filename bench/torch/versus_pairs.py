"""The translation tasks of versus.py: a transformer of width 512 with 6 + 6 layers on sentence pairs.

transformer-guide pads every sentence to 350 tokens, as the guide's recipe does, and takes cohort's own batches.
transformer-buckets sorts the pairs by length and pads a batch to its longest sentence; the timed batches are spread evenly
over the sorted list. What counts is target tokens without padding.
"""
from types import SimpleNamespace

import torch

from common import Task
from translation import PAD, Transformer, batch_of, encode, loss_of, read_pairs, split, tokenizer

LENGTH = 350


def task(args):
    import made_up
    train, _ = split(read_pairs(args.data))
    src, tgt = tokenizer([p[0] for p in train]), tokenizer([p[1] for p in train])
    rows = encode(train, src, tgt, LENGTH)
    sizes = SimpleNamespace(d_model=512, layers=6, heads=8, d_ff=2048, dropout=0.1, max_len=LENGTH, sdpa=args.sdpa)
    model = Transformer(sizes, src.get_vocab_size(), tgt.get_vocab_size())

    def first():
        return batch_of([rows[i] for i in made_up.order(len(rows))[:args.batch]])

    def as_guide(steps):
        order, n = made_up.order(len(rows)), min(steps, len(rows) // args.batch)
        return [batch_of([rows[i] for i in order[k * args.batch:(k + 1) * args.batch]], LENGTH) for k in range(n)]

    def buckets(steps):
        by_length = sorted(rows, key=lambda r: (len(r[1]), len(r[0])))
        n = len(by_length) // args.batch
        places = [int((k + 0.5) * n / steps) * args.batch for k in range(steps)]
        return [batch_of(by_length[at:at + args.batch]) for at in places]

    def adam(m):
        return [torch.optim.Adam(m.parameters(), lr=1e-4, eps=1e-9, fused=True)]
    batches = as_guide if args.task == "transformer-guide" else buckets
    return Task(model, adam, batches, loss_of, lambda y: int((y != PAD).sum()), first)


TASKS = {"transformer-guide": task, "transformer-buckets": task}
