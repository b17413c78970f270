"""Small JPEG and PNG files of every kind, with the pixels that Pillow's convert("RGB") gives for them.

    python tests/golden/make_pictures.py        needs pillow and numpy; writes tests/data/pictures/

For each NAME.jpg or NAME.png there is a NAME.rgb: width and height as two little-endian 16-bit numbers, then the
pixels, row by row. The files are a few hundred bytes each.
"""
import io, os, struct, zlib
import numpy as np
from PIL import Image

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "pictures")


def scene(h, w):
    """Colour ramps with a disc and a diagonal: smooth parts and edges."""
    y, x = np.mgrid[0:h, 0:w].astype(np.float64)
    r = 255 * x / max(w - 1, 1)
    g = 255 * y / max(h - 1, 1)
    b = 128 + 127 * np.sin(x / 3 + y / 5)
    disc = (x - w / 2) ** 2 + (y - h / 2) ** 2 < (min(h, w) / 3) ** 2
    r[disc], b[disc] = 220, 20
    g[np.abs(x - y) < 1.5] = 255
    return np.stack([r, g, b], -1).clip(0, 255).astype(np.uint8)


def keep(name, data):
    path = os.path.join(HERE, name)
    with open(path, "wb") as f:
        f.write(data)
    rgb = Image.open(io.BytesIO(data)).convert("RGB")
    with open(os.path.splitext(path)[0] + ".rgb", "wb") as f:
        f.write(struct.pack("<HH", *rgb.size) + rgb.tobytes())


def save(name, image, **how):
    out = io.BytesIO()
    image.save(out, "JPEG" if name.endswith(".jpg") else "PNG", **how)
    keep(name, out.getvalue())


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(w, h, depth, colour, rows, extra=b""):
    """By hand, for the kinds that Pillow does not write."""
    head = struct.pack(">IIBBBBB", w, h, depth, colour, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + r for r in rows), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def interlaced(w, h, pixels):
    """8-bit RGB by Adam7."""
    body = b""
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        part = pixels[y0::dy, x0::dx]
        if part.size:
            body += b"".join(b"\0" + r.tobytes() for r in part)
    head = struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(body, 9)) + chunk(b"IEND", b"")


def main():
    os.makedirs(HERE, exist_ok=True)
    rgb = Image.fromarray(scene(24, 35))
    for name, sampling in (("444", 0), ("422", 1), ("420", 2)):
        save(f"jpeg-{name}.jpg", rgb, quality=85, subsampling=sampling)
    save("jpeg-progressive.jpg", rgb, quality=80, progressive=True)
    save("jpeg-restart.jpg", rgb, quality=70, restart_marker_blocks=2)
    save("jpeg-grey.jpg", rgb.convert("L"), quality=85)
    save("jpeg-one-pixel.jpg", Image.fromarray(scene(1, 1)), quality=85)
    save("jpeg-cmyk.jpg", rgb.convert("CMYK"), quality=90)
    save("jpeg-64.jpg", Image.fromarray(scene(64, 64)), quality=75)
    save("png-rgb.png", rgb)
    keep("png-interlaced.png", interlaced(35, 24, scene(24, 35)))
    alpha = np.dstack([scene(12, 17), np.arange(204, dtype=np.uint8).reshape(12, 17)])
    save("png-rgba.png", Image.fromarray(alpha, "RGBA"))
    save("png-grey.png", rgb.convert("L"))
    save("png-grey-alpha.png", Image.fromarray(alpha, "RGBA").convert("LA"))
    save("png-palette.png", rgb.quantize(23))
    save("png-palette-4.png", rgb.quantize(9), bits=4)
    save("png-palette-clear.png", rgb.quantize(16), transparency=3)
    save("png-bits.png", rgb.convert("1"))
    ramp = bytes(range(0, 256, 17))
    keep("png-grey-2.png", png(16, 2, 2, 0, [bytes([0x1b] * 4), bytes([0xe4] * 4)]))
    keep("png-grey-4.png", png(16, 2, 4, 0, [bytes(i << 4 | i + 1 for i in range(0, 16, 2)), ramp[:8]]))
    wide = [(np.arange(48, dtype=np.uint32).reshape(16, 3) * 1361 + 7 * y) % 65536 for y in range(4)]
    keep("png-rgb-16.png", png(16, 4, 16, 2, [r.astype(">u2").tobytes() for r in wide]))
    grey = [np.array([0, 1, 100, 254, 255, 256, 1000, 65535], ">u2"), np.arange(248, 264, 2).astype(">u2")]
    keep("png-grey-16.png", png(8, 2, 16, 0, [r.tobytes() for r in grey]))
    both = [np.array([[v, 65535 - v] for v in range(0, 65536, 9000)], ">u2") for _ in range(2)]
    keep("png-grey-alpha-16.png", png(8, 2, 16, 4, [r.tobytes() for r in both]))
    key = chunk(b"tRNS", struct.pack(">HHH", 10, 20, 30))
    keep("png-rgb-key.png", png(2, 1, 8, 2, [bytes([10, 20, 30, 1, 2, 3])], key))


main()
