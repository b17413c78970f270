#!/usr/bin/env python3
"""Our safetensors files against the reference package (pip install safetensors numpy).

    check_safetensors.py check FILE    FILE, written by us, holds exactly TENSORS
    check_safetensors.py write FILE    writes TENSORS with the package, for us to read
    check_safetensors.py model FILE    FILE loads; prints name, dtype, shape and SHA-256 of each tensor, and
                                       weights_sha256 as docs/formats/weights-sha256.md computes it

Element i of every tensor is (37 i mod 101) - 50, divided by 8 in floating types, without the sign in unsigned
ones. tests/tensor/test_safetensors.c has the same list and the same rule.
"""
import hashlib
import sys

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

TENSORS = [
    ("steps", "int64", ()),
    ("wide", "float64", (3, 5)),
    ("fc1.weight", "float32", (7, 9)),
    ("fc1.bias", "float32", (7,)),
    ("none", "float32", (4, 0, 2)),
    ("idx", "int32", (2, 3, 4)),
    ("marks", "uint32", (11,)),
    ("bytes \u00e4\"\\", "uint8", (1, 1, 1, 1, 1, 13)),
]


def values(dtype, shape):
    n = int(np.prod(shape, dtype=np.int64))
    x = (np.arange(n, dtype=np.int64) * 37) % 101 - 50
    if dtype.startswith("u"):
        x = np.abs(x)
    if dtype.startswith("float"):
        x = x / 8
    return x.astype(dtype).reshape(shape)


def check(path):
    got = load_file(path)
    with safe_open(path, "np") as f:
        assert f.metadata() == {"format": "pt", "made": "here"}, f.metadata()
    assert sorted(got) == sorted(t[0] for t in TENSORS), sorted(got)
    for name, dtype, shape in TENSORS:
        want = values(dtype, shape)
        assert got[name].dtype == want.dtype, (name, got[name].dtype)
        assert got[name].shape == want.shape, (name, got[name].shape)
        assert got[name].tobytes() == want.tobytes(), name
    print("same", len(TENSORS))


def write(path):
    tensors = {name: values(dtype, shape) for name, dtype, shape in TENSORS}
    tensors["half"] = np.zeros((3,), dtype="float16")
    save_file(tensors, path, metadata={"made": "there"})


def model(path):
    h = hashlib.sha256()
    for name, x in sorted(load_file(path).items(), key=lambda kv: kv[0].encode()):
        shape = ",".join(str(d) for d in x.shape)
        print(name, x.dtype, f"[{shape}]", hashlib.sha256(x.tobytes()).hexdigest())
        dtype = {"float32": "F32", "int64": "I64"}[str(x.dtype)]
        h.update(b"\0".join([name.encode(), dtype.encode(), shape.encode(), x.tobytes()]))
    print("weights_sha256", h.hexdigest())


if __name__ == "__main__":
    {"check": check, "write": write, "model": model}[sys.argv[1]](sys.argv[2])
