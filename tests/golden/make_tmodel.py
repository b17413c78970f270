"""A checkpoint as the translation guide's train.py saves it, for tests/train/test_tmodel.c. Writes pth/tmodel_09.pt,
pth/tokenizer_en.json, pth/tokenizer_it.json and tmodel.json.

    python make_tmodel.py          (needs PyTorch and tokenizers)

The names are those of the guide's module, the tables of sinusoids (src_pos.pe, tgt_pos.pe) among them; beside
model_state_dict stand the optimiser's state, epoch, global_step and wandb_run_id. tmodel.json has the pairs and, for each,
the logits of PyTorch.
"""
import json
import os

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import nn
from torch.nn import functional as F

from make_transformer import Transformer, initialise, sinusoids

HERE = os.path.dirname(os.path.abspath(__file__))
SPECIALS = ["[UNK]", "[PAD]", "[SOS]", "[EOS]"]
SOS, EOS = 2, 3
OPTIONS = dict(d_model=8, heads=2, layers=1, d_ff=12)
SEQ_LEN = 10
PAIRS = [("The cat sleeps.", "Il gatto dorme."), ("The dog sleeps now.", "Adesso il cane dorme."),
         ("Tom sings.", "Tom canta."), ("Mary eats.", "Mary mangia."), ("The cat eats now.", "Adesso il gatto mangia."),
         ("The dog eats.", "Il cane mangia.")]


class Position(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("pe", sinusoids(SEQ_LEN, OPTIONS["d_model"], torch.float32)[None])


def tokenizer(side, lang):
    t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.train_from_iterator([p[side] for p in PAIRS], trainer=trainers.WordLevelTrainer(special_tokens=SPECIALS))
    t.save(os.path.join(HERE, "pth", f"tokenizer_{lang}.json"))
    return t


def tensors(src, tgt, pair):
    x = [SOS] + src.encode(pair[0]).ids + [EOS]
    y = tgt.encode(pair[1]).ids
    return torch.tensor([x]), torch.tensor([[SOS] + y]), torch.tensor([y + [EOS]])


def main():
    torch.set_num_threads(1)
    src, tgt = tokenizer(0, "en"), tokenizer(1, "it")
    model = Transformer(dict(options=OPTIONS, sources=src.get_vocab_size(), classes=tgt.get_vocab_size()))
    model.src_pos, model.tgt_pos = Position(), Position()
    initialise(model, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-9)
    for pair in PAIRS:  # so that the optimiser has a state
        x, given, y = tensors(src, tgt, pair)
        loss = F.cross_entropy(model((x, given), torch.tensor([x.shape[1]]))[0], y[0], label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save({"epoch": 9, "model_state_dict": model.state_dict(), "optimizer_state_dict": optimizer.state_dict(),
                "global_step": len(PAIRS), "wandb_run_id": "3kx1v0ab"}, os.path.join(HERE, "pth", "tmodel_09.pt"))
    out = []
    for pair in PAIRS:
        x, given, _ = tensors(src, tgt, pair)
        with torch.no_grad():
            logits = model.double()((x, given), torch.tensor([x.shape[1]]))[0]
        out.append(dict(source=pair[0], target=pair[1], logits=[[round(v, 9) for v in row] for row in logits.tolist()]))
    with open(os.path.join(HERE, "tmodel.json"), "w") as f:
        json.dump(dict(torch=torch.__version__.split("+")[0], options=OPTIONS, pairs=out), f, indent=0)
        f.write("\n")


if __name__ == "__main__":
    main()
