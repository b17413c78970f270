"""What the tokenizers library makes of sentences, for tests/text/. Needs the package tokenizers.

    python text_oracle.py make SENTENCES OUT    trains tokenisers on the lines of a file; writes OUT/NAME.json, the
                                                tokeniser, OUT/NAME.ids, the tokens of each line, and OUT/NAME.back,
                                                what decode makes of them
    python text_oracle.py check TOKENIZER SENTENCES IDS    does the library read this file and give these tokens?
"""
import json
import sys

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

SPECIALS = ["[UNK]", "[PAD]", "[SOS]", "[EOS]"]


def words(lines, size):
    t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.train_from_iterator(lines, trainer=trainers.WordLevelTrainer(special_tokens=SPECIALS, min_frequency=2))
    return t


def bpe(pre, decoder=None, normalizer=None, model=None, **more):
    def make(lines, size):
        t = Tokenizer(models.BPE(**(model or {})))
        t.pre_tokenizer = pre
        if normalizer:
            t.normalizer = normalizer
        if decoder:
            t.decoder = decoder
        t.train_from_iterator(lines, trainer=trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIALS,
                                                                 show_progress=False, **more))
        return t
    return make


def fallback(lines, size):
    """Unknown characters become bytes; whole words of the vocabulary are not merged; an added word in the middle."""
    t = bpe(pre_tokenizers.WhitespaceSplit(), limit_alphabet=30)(lines, size)
    parts = json.loads(t.to_str())
    vocab = parts["model"]["vocab"]
    for b in range(256):
        vocab.setdefault(f"<0x{b:02X}>", len(vocab))
    parts["model"].update(byte_fallback=True, ignore_merges=True, unk_token="[UNK]")
    parts["model"]["merges"] = [" ".join(m) for m in parts["model"]["merges"]]
    t = Tokenizer.from_str(json.dumps(parts))
    t.add_tokens(["the "])
    t.add_special_tokens(["<|endoftext|>"])
    return t


KINDS = {
    "words": words,
    "bytes": bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel(),
                 initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
    "bytes_prefix": bpe(pre_tokenizers.ByteLevel(add_prefix_space=True), decoders.ByteLevel(),
                        normalizer=normalizers.Sequence([normalizers.Lowercase()])),
    "plain": bpe(pre_tokenizers.Whitespace(), model=dict(unk_token="[UNK]"), limit_alphabet=40),
    "fused": bpe(pre_tokenizers.Whitespace(), model=dict(unk_token="[UNK]", fuse_unk=True), limit_alphabet=20,
                 continuing_subword_prefix="##"),
    "suffix": bpe(pre_tokenizers.WhitespaceSplit(), decoders.BPEDecoder(), normalizers.Lowercase(),
                  end_of_word_suffix="</w>"),
    "fallback": fallback,
}


def make(lines, size):
    for name, kind in KINDS.items():
        t = kind(lines, size)
        ids = [t.encode(line, add_special_tokens=False).ids for line in lines]
        yield name, t, ids, [t.decode(i) for i in ids]


def main():
    if sys.argv[1] == "make":
        lines = open(sys.argv[2], encoding="utf-8", newline="\n").read().split("\n")[:-1]
        for name, t, ids, back in make(lines, 3000):
            path = f"{sys.argv[3]}/{name}"
            t.save(path + ".json")
            open(path + ".ids", "w").write("".join(" ".join(map(str, i)) + "\n" for i in ids))
            open(path + ".back", "w", encoding="utf-8", newline="\n").write("".join(b + "\n" for b in back))
    else:
        t = Tokenizer.from_file(sys.argv[2])
        lines = open(sys.argv[3], encoding="utf-8", newline="\n").read().split("\n")[:-1]
        want = [list(map(int, line.split())) for line in open(sys.argv[4])]
        assert len(lines) == len(want)
        wrong = sum(t.encode(line, add_special_tokens=False).ids != w for line, w in zip(lines, want))
        print(f"{len(lines)} sentences, {wrong} differ")
        sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
