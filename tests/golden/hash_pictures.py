"""SHA-256 of the pixels of every picture of Tiny ImageNet's 20 classes, in torchvision's order, by Pillow.

    python tests/golden/hash_pictures.py FOLDER        needs torchvision; FOLDER is the unpacked tiny-imagenet-20

Prints the hash of the training pictures (torchvision.datasets.ImageFolder: path order, RGB, row by row), then that of
the validation pictures by (class, file name): the two constants in tests/data/test_imagefolder_real.c.
"""
import hashlib, os, sys
from PIL import Image
from torchvision.datasets import ImageFolder

root = sys.argv[1]
train = ImageFolder(os.path.join(root, "train"))
h = hashlib.sha256()
for path, label in train.samples:
    h.update(bytes([label]) + Image.open(path).convert("RGB").tobytes())
print("train", len(train.samples), h.hexdigest())

rows = [line.split("\t") for line in open(os.path.join(root, "val", "val_annotations.txt"))]
h = hashlib.sha256()
for label, name in sorted((train.class_to_idx[r[1]], r[0]) for r in rows):
    h.update(bytes([label]) + Image.open(os.path.join(root, "val", "images", name)).convert("RGB").tobytes())
print("val", len(rows), h.hexdigest())
