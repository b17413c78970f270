"""cohort's own numbers in Python: the order of samples, its made-up pictures, its digits. With them PyTorch computes the
loss of the very batch that cohort trains on first. The rules are those of docs/formats/rng.md and order.md.
"""
import gzip
import os
import sys

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.append(os.path.join(ROOT, "tests", "golden"))
from shared import normal, permutation, philox, stream_of, uniform  # noqa: E402

SHUFFLE, DATA, SPLIT = 2, 4, 5


def order(n, epoch=0, seed=0):
    """Sample ids of an epoch of training on n samples."""
    return permutation(seed, SHUFFLE, n, epoch)


def fake_images(ids, size, classes=10, planes=3, seed=0):
    """data=fake_images: pictures [n,planes,size,size] and their labels."""
    patches = 4
    pattern = normal(seed, "fake_images.pattern", (classes, planes, patches, patches), 0.5, DATA)
    at = np.arange(size) * patches // size
    x, y = np.empty((len(ids), planes, size, size), np.float32), np.empty(len(ids), np.int64)
    for i, one in enumerate(ids):
        word = int(philox(seed, DATA, stream_of("fake_images.y"), 1, one)[0, 0])
        y[i] = word * classes >> 32
        x[i] = uniform(seed, "fake_images.x", x[i].shape, 1, DATA, one) + pattern[y[i]][:, at][:, :, at]
    return x, y


def digits(ids):
    """data=digits: training samples [n,1,8,8] and their labels."""
    with gzip.open(os.path.join(ROOT, "src", "data", "digits.csv.gz"), "rt") as f:
        rows = np.array([line.split(",") for line in f], np.float32)
    rows = rows[np.array(permutation(42, SPLIT, len(rows)))[ids]]
    x = (rows[:, :64] / np.float32(16) - np.float32(0.3053)) / np.float32(0.3760)
    return x.reshape(-1, 1, 8, 8), rows[:, 64].astype(np.int64)
