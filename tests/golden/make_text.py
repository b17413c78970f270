"""Tokens, BLEU and error rates by the libraries, for tests/text/. Writes text.json.

    python make_text.py          (needs the packages tokenizers, sacrebleu, torchmetrics)

All sentences are made up here, from a few words and marks, with a fixed seed.
"""
import json
import random

import sacrebleu
from torchmetrics.text import CharErrorRate, WordErrorRate

from text_oracle import make

WORDS = ("the a cat dog house sees likes Tom Maria is was not very old new red 3.14 10,000 1984 it's don't we'll I'm they've "
         "she'd well-known così è perché città l'uomo un'altra Über naïve Straße").split()
MARKS = [".", "!", "?", ",", "...", "?!", " -", ";", ":", '"', " (so)", "%", " 5-6", " $3.50", " &amp; more", "/", "..", " <skipped>"]
ODD = [
    "Héllo, wörld! it's 3.14 — “x”", "a\u00a0b _x_ ١٢ e\u0301 ॐ z\u200db  ", "²½ª Ⅷ x\u0301y Ⓐb", "[PAD] hi [SOS]there a[EOS]b",
    "İstanbul ΣΑΣ ǅ ẞ 𐐀", "  two  blanks\tand a tab ", "日本語のテキスト。", "👍🏽 ok👩‍👩‍👧", "x'S 'tis 'll we'LL don't''s", "",
    " ", "a  \u3000 b\u2028c\x85d", "<|endoftext|>the end<|endoftext|>", "the cat\rsat\x0bon\x1ca", "ʹ ٣٤ ௧ 𝟘𝟙 ①②",
]


def sentence(r):
    n = r.randint(1, 12)
    return " ".join(r.choice(WORDS) + (r.choice(MARKS) if r.random() < 0.3 else "") for _ in range(n))


def changed(r, text):
    words = text.split(" ")
    for _ in range(r.randint(0, 4)):
        at = r.randrange(len(words) + 1)
        words[at:at + r.randint(0, 1)] = [r.choice(WORDS)] if r.random() < 0.6 else []
    return " ".join(words)


def tokens(r):
    lines = [sentence(r) for _ in range(45)] + ODD + ["the dog isn't old."] * 3
    out = []
    for name, t, ids, back in make(lines, 300):
        out.append(dict(name=name, file=t.to_str(pretty=name == "words"), ids=ids, back=back))
    return dict(lines=lines, kinds=out)


def scored(pairs):
    predicted, wanted = [p for p, _ in pairs], [w for _, w in pairs]
    bleu = sacrebleu.corpus_bleu(predicted, [wanted])
    return dict(n=len(pairs), bleu=bleu.score, counts=bleu.counts, totals=bleu.totals, predicted=bleu.sys_len,
                wanted=bleu.ref_len, cer=float(CharErrorRate()(predicted, wanted)), wer=float(WordErrorRate()(predicted, wanted)))


def scores(r):
    wanted = [sentence(r) for _ in range(500)]
    pairs = [(changed(r, w), w) for w in wanted]
    short = [[("the cat", "the cat is old")], [("a b c d", "e f g h")], [("the red dog is old", "a red dog was here")],
             [("", "nothing")], [("the", "the")]]
    return dict(pairs=pairs, whole=scored(pairs), first=[scored(pairs[:n]) for n in (1, 7, 50)],
                short=[dict(pair=p[0], **scored(p)) for p in short])


if __name__ == "__main__":
    r = random.Random(15)
    with open("text.json", "w", encoding="utf-8") as f:
        json.dump(dict(tokens=tokens(r), scores=scores(r)), f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")
