"""Twenty pictures through each transform by torchvision, for tests/data/test_transform_golden.c.

    python make_transforms.py          (needs torchvision, Pillow and numpy)

Writes golden-transforms/: pictures.bin.gz, one FAMILY.bin.gz for each transform, mix.bin.gz. Little-endian.

    pictures   int32 count; then for each int32 height, width, planes and its bytes, interleaved
    FAMILY     int32 count; then for each the int32 (or float) fields of FIELDS below and the result: bytes [h,w,planes],
               or with `floats` the normalised sample, float [planes,h,w]
    mix        int32 count, samples, planes, height, width; the samples as floats, their labels as int32; then for each
               int32 cuts, top, left, bottom, right; float lambda; the mixed samples as floats; then as floats the weights of
               the ten classes of each

The transforms are torchvision.transforms.v2.functional on Pillow's pictures. Parameters are drawn here, shown to torchvision
and stored. Pillow resizes rows, then columns, up to version 12; version 13 begins with the columns where that is faster,
and then a pixel may be a level off. Where it must not be (resize_one_axis, chain) one axis keeps its size. One run gives the files that are committed; gzip without time or name, so that a second run gives the same.
"""
import gzip
import os
import struct

import numpy as np
import PIL.Image
import torch
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

FIELDS = """picture train resize_short resize_h resize_w crop_h crop_w random_box top left height width flip jitters
            order0 order1 order2 order3 factor0 factor1 factor2 factor3 trivial op bin
            erase_top erase_left erase_height erase_width floats out_h out_w""".split()
REAL = {"factor0", "factor1", "factor2", "factor3"}
MEAN = {3: [0.485, 0.456, 0.406], 1: [0.1307]}
STD = {3: [0.229, 0.224, 0.225], 1: [0.3081]}
TRIVIAL = v2.TrivialAugmentWide()
OPS = list(TRIVIAL._AUGMENTATION_SPACE)
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden-transforms")
rng = np.random.default_rng(20240607)

SIZES = [(32, 32, 3), (33, 31, 3), (28, 28, 1), (17, 23, 3), (48, 36, 3), (24, 41, 3), (19, 19, 1), (32, 32, 3), (40, 27, 3),
         (25, 25, 3), (48, 64, 3), (21, 34, 1), (32, 24, 3), (29, 30, 3), (36, 36, 3), (16, 50, 3), (27, 22, 1), (31, 31, 3),
         (20, 20, 3), (39, 26, 3)]


def make_picture(h, w, planes, noise):
    """Smooth waves and some noise; the extremes are reached too."""
    y, x = np.mgrid[0:h, 0:w]
    out = np.zeros((h, w, planes))
    for k in range(planes):
        a, b, c = rng.uniform(-0.25, 0.25, 2).tolist() + [rng.uniform(0, 6.28)]
        out[..., k] = 127 + rng.uniform(60, 170) * np.sin(a * x + b * y + c) + noise * rng.standard_normal((h, w))
    return np.clip(np.rint(out), 0, 255).astype(np.uint8)


PICTURES = [make_picture(h, w, planes, [0, 4, 12][i % 3]) for i, (h, w, planes) in enumerate(SIZES)]


def pil(array):
    return PIL.Image.fromarray(array[..., 0] if array.shape[2] == 1 else array)


def f32(v):
    return float(np.float32(v))


def magnitude(op, step):
    """What TrivialAugmentWide.forward makes of the drawn bin; step as in struct drawn."""
    fn, signed = TRIVIAL._AUGMENTATION_SPACE[OPS[op]]
    all_of = fn(31, 0, 0)
    if all_of is None:
        return 0.0
    m = float(all_of[-1 - step if step < 0 else step])
    return -m if step < 0 and signed else m


def apply(r):
    """The picture (PIL or, with floats, a tensor) that record r asks for."""
    img = pil(PICTURES[r["picture"]])
    out = [r["crop_h"], r["crop_w"]]
    box = [r["top"], r["left"], r["height"], r["width"]]
    if r["train"] and r["random_box"]:
        img = F.resized_crop(img, *box, out)
    else:
        if r["resize_short"]:
            img = F.resize(img, [r["resize_short"]])
        if r["resize_h"]:
            img = F.resize(img, [r["resize_h"], r["resize_w"]])
        if r["crop_h"] and r["train"]:  # padded so far that every box lies inside
            by, mode = (8, "reflect") if r.get("reflect") else (64, "constant")
            img = F.crop(F.pad(img, [by] * 4, padding_mode=mode), box[0] + by, box[1] + by, box[2], box[3])
        elif r["crop_h"]:
            img = F.center_crop(img, out)
    if r["flip"]:
        img = F.horizontal_flip(img)
    for i in range(4):
        k = r["order%d" % i]
        if r["jitters"] >> k & 1:
            fn = [F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue][k]
            img = fn(img, f32(r["factor%d" % k]))
    if r["trivial"]:
        img = TRIVIAL._apply_image_or_video_transform(img, OPS[r["op"]], magnitude(r["op"], r["bin"]), "nearest", TRIVIAL._fill)
    if not r["floats"]:
        return img
    x = F.to_dtype(F.to_image(img), torch.float32, scale=True)
    x = F.normalize(x, MEAN[x.shape[0]], STD[x.shape[0]])
    if r["erase_height"]:
        e = [r["erase_" + k] for k in ("top", "left", "height", "width")]
        x = F.erase(x, *e, v=torch.zeros(1))
    return x


def save(name, data):
    with open(os.path.join(HERE, name + ".bin.gz"), "wb") as f:
        with gzip.GzipFile(filename="", mode="wb", fileobj=f, compresslevel=9, mtime=0) as z:
            z.write(data)


def record(i, **given):
    r = {k: 0 for k in FIELDS}
    r.update(picture=i, **given)
    return r


def write(name, records):
    data = struct.pack("<i", len(records))
    for r in records:
        out = apply(r)
        if r["floats"]:
            body, (h, w) = out.numpy().astype("<f4").tobytes(), out.shape[1:]
        else:
            body, (w, h) = np.asarray(out).tobytes(), out.size
        r["out_h"], r["out_w"] = h, w
        data += b"".join(struct.pack("<f" if k in REAL else "<i", r[k]) for k in FIELDS) + body
    save(name, data)


def between(low, high):
    return int(rng.integers(low, high + 1))


def some_box(h, w):
    bh, bw = between(max(1, h // 4), h), between(max(1, w // 4), w)
    return dict(top=between(0, h - bh), left=between(0, w - bw), height=bh, width=bw)


def some_jitter(ops):
    order = rng.permutation(4)
    low, high = [0.2, 0.2, 0.0, -0.5], [1.8, 1.9, 2.0, 0.5]
    r = {"order%d" % k: int(order[k]) for k in range(4)}
    r.update({"factor%d" % k: f32(rng.uniform(low[k], high[k])) for k in range(4)})
    return dict(r, jitters=sum(1 << k for k in ops))


def some_step(op, i):
    if OPS[op] == "Rotate" and i in (0, 1, 4):  # by right angles, of squares and others; and not at all
        return [20, -21, -21, 0, 20][i]
    step = between(0, 30)
    return step if rng.uniform() < 0.5 else -1 - step


def families():
    all_of = list(enumerate(SIZES))
    yield "resize", [record(i, resize_h=between(9, 2 * h), resize_w=between(9, 50)) for i, (h, w, _) in all_of]
    one = [dict(resize_h=h, resize_w=between(9, 2 * w)) if i % 2 else dict(resize_h=between(9, 2 * h), resize_w=w)
           for i, (h, w, _) in all_of]
    yield "resize_one_axis", [record(i, **one[i]) for i, _ in all_of]
    yield "resize_short", [record(i, resize_short=between(12, 40)) for i, _ in all_of]
    yield "resized_crop", [record(i, train=1, random_box=1, crop_h=between(12, 36), crop_w=between(12, 36), **some_box(h, w))
                           for i, (h, w, _) in all_of]
    pads = []
    for i, (h, w, _) in all_of:
        ch, cw = between(12, h + 4), between(12, w + 4)
        pads.append(record(i, train=1, crop_h=ch, crop_w=cw, height=ch, width=cw, top=between(-4, h + 4 - ch),
                           left=between(-4, w + 4 - cw)))
    yield "pad_crop", pads
    yield "center_crop", [record(i, crop_h=between(12, 40), crop_w=between(12, 40)) for i, _ in all_of]
    yield "resize_center_crop", [record(i, resize_short=between(20, 36), crop_h=20 - i % 3, crop_w=24) for i, _ in all_of]
    yield "flip", [record(i, train=1, flip=1) for i, _ in all_of]
    for k, name in enumerate(("brightness", "contrast", "saturation", "hue")):
        yield name, [record(i, train=1, **some_jitter([k])) for i, _ in all_of]
    yield "jitter", [record(i, train=1, **some_jitter(range(4))) for i, _ in all_of]
    for op, name in enumerate(OPS):
        yield "trivial_" + name.lower(), [record(i, train=1, trivial=1, op=op, bin=some_step(op, i)) for i, _ in all_of]
    yield "normalize", [record(i, crop_h=11, crop_w=10, floats=1) for i, _ in all_of]
    chains, erased = [], []
    for i, (h, w, _) in all_of:
        e = dict(erase_height=between(1, 11), erase_width=between(1, 12))
        e.update(erase_top=between(0, 12 - e["erase_height"]), erase_left=between(0, 13 - e["erase_width"]))
        erased.append(record(i, train=1, crop_h=12, crop_w=13, height=12, width=13, floats=1, **e))
        op = between(0, len(OPS) - 1)
        chains.append(record(i, train=1, random_box=1, crop_h=12, crop_w=13, flip=between(0, 1), floats=1, trivial=1, op=op,
                             bin=some_step(op, 9), **some_jitter(range(4)), **dict(some_box(h, w), top=h - 12, height=12), **e))
    yield "erase", erased
    yield "chain", chains


def write_mix():
    n, planes, h, w, cases = 20, 3, 5, 6, 6
    x = torch.from_numpy(rng.standard_normal((n, planes, h, w)).astype(np.float32))
    y = torch.from_numpy(rng.integers(0, 10, n))
    data = struct.pack("<5i", cases, n, planes, h, w) + x.numpy().astype("<f4").tobytes() + y.numpy().astype("<i4").tobytes()
    for case in range(cases):
        cuts = case % 2
        t = (v2.CutMix if cuts else v2.MixUp)(num_classes=10)
        torch.manual_seed(case)
        params = t.make_params([x])
        box = params.get("box", (0, 0, 0, 0))
        params.update(labels=y, batch_size=n)
        mixed, weights = t.transform(x, params), t.transform(y, params)
        data += struct.pack("<5if", cuts, box[1], box[0], box[3], box[2], params["lam_adjusted" if cuts else "lam"])
        data += mixed.numpy().astype("<f4").tobytes() + weights.numpy().astype("<f4").tobytes()
    save("mix", data)


def mirrored():
    """Crops that leave the picture by up to 8 pixels, where the picture is mirrored; some are resized first."""
    for i, (h, w, _) in enumerate(SIZES):
        sizes = dict(resize_h=24, resize_w=20) if i % 4 == 1 else {}
        h, w = (24, 20) if sizes else (h, w)
        yield record(i, train=1, reflect=1, crop_h=h + 4, crop_w=w - 2, height=h + 4, width=w - 2, top=i % 9 - 8,
                     left=(3 * i) % 9 - 8 if i % 2 else 10 - i % 5, **sizes)


def main():
    os.makedirs(HERE, exist_ok=True)
    save("pictures", struct.pack("<i", len(PICTURES)) +
         b"".join(struct.pack("<3i", *p.shape) + p.tobytes() for p in PICTURES))
    for name, records in families():
        write(name, records)
    write_mix()
    write("pad_crop_reflect", list(mirrored()))


main()
