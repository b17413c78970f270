"""The numbers that the C tests and these scripts both make, so that no batch and no initial weight has to be stored.

Words is test_u32 and test_unit of tests/harness.c (splitmix64). uniform() and normal() are co_layout_initialise:
Philox4x32-10 with the key and counter of docs/formats/rng.md, one stream per parameter name.
"""
import json
import os
import re

import numpy as np

M64 = (1 << 64) - 1


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
    return z ^ (z >> 31)


class Words:
    def __init__(self, state):
        self.state = state

    def u32(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & M64
        return mix(self.state) >> 32

    def unit(self):
        """A float32 in [-1, 1); every value is exact."""
        return np.float32((self.u32() >> 8) * 2.0**-23 - 1)

    def units(self, *shape):
        return np.array([self.unit() for _ in range(int(np.prod(shape)))], np.float32).reshape(shape)


INIT = 1  # CO_RNG_INIT


def philox(seed, purpose, stream, blocks, sample=0, step=0):
    """Words [blocks, 4] of counters {block, sample, step, stream}."""
    z = mix((seed ^ (purpose * 0x9E3779B97F4A7C15)) & M64)
    k = [np.uint64(z & 0xFFFFFFFF), np.uint64(z >> 32)]
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    c = [np.arange(blocks, dtype=np.uint64)] + [np.full(blocks, w, np.uint64) for w in (sample, step, stream)]
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> shift) ^ c[1] ^ k[0], p1 & low, (p0 >> shift) ^ c[3] ^ k[1], p0 & low]
        k = [(k[0] + np.uint64(0x9E3779B9)) & low, (k[1] + np.uint64(0xBB67AE85)) & low]
    return np.stack(c, 1)


def stream_of(name):
    h = 0x811C9DC5
    for byte in name.encode():
        h = ((h ^ byte) * 0x01000193) & 0xFFFFFFFF
    return h


def uniform(seed, name, shape, a, purpose=INIT, sample=0):
    n = int(np.prod(shape))
    u = philox(seed, purpose, stream_of(name), (n + 3) // 4, sample).reshape(-1)[:n]
    unit = (u >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
    a = np.float32(a)
    return (-a + (a + a) * unit).reshape(shape)


def normal(seed, name, shape, std, purpose=INIT):
    n = int(np.prod(shape))
    u = philox(seed, purpose, stream_of(name), (n + 3) // 4).reshape(-1, 2).astype(np.float64)
    radius = np.sqrt(-2 * np.log((u[:, 0] + 0.5) * 2.0**-32))
    angle = 2 * np.pi * (u[:, 1] * 2.0**-32)
    z = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)[:n]
    return (std * z).astype(np.float32).reshape(shape)


def permutation(seed, purpose, n, step=0):
    """Of 0..n-1: Fisher-Yates with Lemire's bounded numbers, as docs/formats/rng.md says."""
    words, used, p = philox(seed, purpose, 0, n // 3 + 16, step=step).reshape(-1).tolist(), 0, list(range(n))
    for i in range(n, 1, -1):
        m, used = words[used] * i, used + 1
        while m & 0xFFFFFFFF < (1 << 32) % i:
            m, used = words[used] * i, used + 1
        p[i - 1], p[m >> 32] = p[m >> 32], p[i - 1]
    return p


def plain(value):
    """Numbers of ten digits, which is a thousand times finer than any check; lists and dicts of them."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def write(name, value):
    """Writes `name` beside this file, a list of numbers to a line."""
    text = json.dumps(plain(value), indent=1)
    text = re.sub(r"\[[-+.\de,\s]+\]", lambda m: re.sub(r"\s+", " ", m[0]).replace("[ ", "[").replace(" ]", "]"), text)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "w") as f:
        f.write(text + "\n")
