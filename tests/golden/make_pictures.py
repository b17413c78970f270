"""Small JPEG, PNG, WebP, BMP and GIF files of every kind, with the pixels that Pillow's convert("RGB") gives for them.

    python tests/golden/make_pictures.py        needs pillow and numpy; writes tests/data/pictures/

For each picture NAME.ext there is a NAME.rgb: width and height as two little-endian 16-bit numbers, then the
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


KINDS = {"jpg": "JPEG", "png": "PNG", "webp": "WEBP", "bmp": "BMP", "gif": "GIF"}


def save(name, image, **how):
    out = io.BytesIO()
    image.save(out, KINDS[name.rsplit(".", 1)[1]], **how)
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


def bmp(w, h, bits, rows, head=40, compression=0, after=b"", colours=0):
    """By hand: rows are given in the file's order, each padded already; `after` is masks or palette."""
    body = b"".join(rows)
    if head == 12:
        dib = struct.pack("<IHHHH", 12, w, h, 1, bits)
    else:
        dib = struct.pack("<IiiHHIIiiII", head, w, h, 1, bits, compression, len(body), 2835, 2835, colours, 0)
        if head > 40: # the masks stand in the header
            dib += after + bytes(head - 40 - len(after))
            after = b""
    start = 14 + len(dib) + len(after)
    return struct.pack("<2sIHHI", b"BM", start + len(body), 0, 0, start) + dib + after + body


def bmps(rgb):
    save("bmp-rgb.bmp", rgb)
    save("bmp-grey.bmp", rgb.convert("L"))
    save("bmp-palette.bmp", rgb.quantize(23))
    save("bmp-bits.bmp", rgb.convert("1"))
    four = b"".join(bytes([16 * i, 255 - 16 * i, i, 0]) for i in range(16))
    keep("bmp-palette-4.bmp", bmp(5, 2, 4, [b"\x01\x23\x40\0", b"\xfe\xdc\xb0\0"], after=four))
    keep("bmp-os2.bmp", bmp(3, 2, 8, [b"\0\1\2\0", b"\2\1\0\0"], head=12,
                            after=b"".join(bytes([i, 2 * i % 256, 255 - i]) for i in range(256))))
    keep("bmp-top-down.bmp", bmp(2, -2, 24, [bytes(range(6)) + b"\0\0", bytes(range(90, 96)) + b"\0\0"]))
    words = [struct.pack("<4H", *(v * 7919 % 65536 for v in range(4 * y, 4 * y + 4))) for y in range(3)]
    keep("bmp-555.bmp", bmp(4, 3, 16, words))
    keep("bmp-565.bmp", bmp(4, 3, 16, words, compression=3, after=struct.pack("<3I", 0xF800, 0x7E0, 0x1F)))
    pixels = [struct.pack("<3I", *(v * 2654435761 % 2**32 for v in range(3 * y, 3 * y + 3))) for y in range(2)]
    keep("bmp-32.bmp", bmp(3, 2, 32, pixels))
    keep("bmp-masks-32.bmp", bmp(3, 2, 32, pixels, head=108, compression=3,
                                 after=struct.pack("<4I", 0xFF, 0xFF00, 0xFF0000, 0xFF000000)))


def gifs(rgb):
    save("gif-palette.gif", rgb.quantize(200))
    save("gif-interlaced.gif", rgb.quantize(40), interlace=1)
    save("gif-grey.gif", rgb.convert("L"), interlace=0)
    save("gif-bits.gif", rgb.convert("1"), interlace=0)
    save("gif-clear.gif", rgb.quantize(16), transparency=3, interlace=0)
    noise = np.random.default_rng(1).integers(0, 256, (90, 90), np.uint8) # fills the table of codes
    save("gif-noise.gif", Image.fromarray(noise, "L"), interlace=0)
    second = Image.fromarray(scene(24, 35)[::-1])
    save("gif-frames.gif", rgb.quantize(30), save_all=True, append_images=[second.quantize(30)], interlace=0)
    # A frame that covers a part of the canvas; with a transparent colour, without, and without any palette.
    palette = bytes([10, 20, 30, 200, 100, 50, 1, 2, 3, 250, 240, 230])
    frame = struct.pack("<BHHHHB", 0x2C, 1, 1, 2, 2, 0) + b"\2" + b"\x03\x44\x34\x05" + b"\0;"
    screen = struct.pack("<HHBBB", 4, 3, 0x81, 0, 0)
    clear = b"\x21\xf9\4\1\0\0\2\0"
    keep("gif-part.gif", b"GIF89a" + screen + palette + frame)
    keep("gif-part-clear.gif", b"GIF89a" + screen + palette + clear + frame)
    keep("gif-no-palette.gif", b"GIF89a" + struct.pack("<HHBBB", 4, 3, 1, 0, 0) + frame)


def webps(rgb, rgba):
    save("webp-lossy.webp", rgb, quality=80)
    save("webp-lossless.webp", rgb, lossless=True)
    save("webp-alpha.webp", rgba, quality=90)
    save("webp-alpha-lossless.webp", rgba, lossless=True, exact=True)
    save("webp-64.webp", Image.fromarray(scene(64, 64)), quality=50)


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
    bmps(rgb)
    gifs(rgb)
    webps(rgb, Image.fromarray(alpha, "RGBA"))


main()
