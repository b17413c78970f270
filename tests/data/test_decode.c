/* Pictures of every kind against Pillow's pixels (golden/make_pictures.py), and files that are none. */
#include "data/pictures.h"

#include <ctype.h>
#include <strings.h>

#include "data/decode_int.h"

static uint8_t *slurp(const char *name, size_t *len)
{
    char *bytes, path[256];

    snprintf(path, sizeof path, "tests/data/pictures/%s", name);
    CHECK_OK(co_fs_read(&bytes, len, test_repo(path), 1 << 20));
    return (uint8_t *)bytes;
}

/* The largest difference from the golden pixels. */
static int apart(const char *name)
{
    char gold[256], why[WHY_LEN] = "";
    size_t len, gold_len;
    uint8_t *bytes = slurp(name, &len);
    picture p;
    uint32_t h, w;
    int worst = 0;

    snprintf(gold, sizeof gold, "%.*s.rgb", (int)(strrchr(name, '.') - name), name);
    uint8_t *want = slurp(gold, &gold_len);
    CHECK(picture_decode(&p, bytes, len, MOST_PIXELS, why), "%s: %s", name, why);
    CHECK(p.planes == 3 && p.width == want[0] + 256u * want[1] && p.height == want[2] + 256u * want[3],
          "%s: %ux%u", name, p.width, p.height);
    CHECK(gold_len == 4 + (size_t)p.height * p.width * 3, "%s: %zu bytes", gold, gold_len);
    CHECK(picture_size(bytes, len, &h, &w) && h == p.height && w == p.width, "%s: its head says %ux%u", name,
          w, h);
    for (uint32_t y = 0; y < p.height; y++)
        for (uint32_t x = 0; x < p.width * 3; x++) {
            int d = abs(p.bytes[y * p.stride + x] - want[4 + y * p.width * 3 + x]);
            worst = d > worst ? d : worst;
        }
    free(bytes);
    free(want);
    return worst;
}

/* FORMAT-*.EXT in tests/data/pictures; `each` is called with each name. Returns how many there were. */
static int for_each_golden(const picture_format *format, void (*each)(const char *name))
{
    char **names;
    size_t n, len = strlen(format->name);
    int found = 0;

    CHECK_OK(co_fs_list(&names, &n, test_repo("tests/data/pictures")));
    for (size_t i = 0; i < n; i++) {
        if (strncasecmp(names[i], format->name, len) != 0 || names[i][len] != '-' || !picture_named(names[i]))
            continue;
        each(names[i]);
        found++;
    }
    co_fs_list_free(names, n);
    return found;
}

static void check_golden(const char *name)
{
    CHECK(apart(name) == 0, "%s: %d apart", name, apart(name));
}

/* A new row of the table fails here until it has golden pictures, a fuzz target and seeds. */
TEST(every_picture_format_has_the_pixels_that_pillow_gives)
{
    char path[1024], lower[32];

    for (int i = 0; picture_formats[i]; i++) {
        const picture_format *format = picture_formats[i];
        int n = for_each_golden(format, check_golden);
        CHECK(n >= 5, "%s has %d pictures in tests/data/pictures", format->name, n);
        CHECK(strstr(PICTURE_ENDINGS, format->endings), "PICTURE_ENDINGS lacks %s", format->endings);
        for (size_t c = 0; c <= strlen(format->name); c++)
            lower[c] = (char)tolower(format->name[c]);
        snprintf(path, sizeof path, "grep -q '{\"%s\", &' %s", lower, test_repo("tests/fuzz/fuzz_picture.c"));
        test_run row = test_sh("%s", path);
        CHECK(row.status == 0, "tests/fuzz/fuzz_picture.c has no row for %s", lower);
        free(row.out);
        snprintf(path, sizeof path, "tests/fuzz/seeds/%s", lower);
        CHECK(co_fs_is_dir(test_repo(path)), "%s is not there", path);
    }
}

/* One byte of the head changed to anything: refused with a reason, or a picture within bounds. */
static void check_altered_heads(const char *name)
{
    size_t len;
    uint8_t *bytes = slurp(name, &len);
    uint8_t *copy = malloc(len); /* exact, so that a sanitizer sees one byte too many */
    char why[WHY_LEN];
    picture p;

    for (size_t at = 0; at < len && at < 64; at++)
        for (int to = 0; to < 256; to += 15) {
            memcpy(copy, bytes, len);
            copy[at] = (uint8_t)to;
            why[0] = 0;
            if (!picture_decode(&p, copy, len, 1 << 16, why))
                CHECK(why[0], "%s with byte %zu = %d: no reason", name, at, to);
            else
                CHECK((uint64_t)p.height * p.width <= 1 << 16 && p.stride == p.width * 3, "%s, byte %zu = %d",
                      name, at, to);
        }
    free(copy);
    free(bytes);
}

TEST(pictures_with_an_altered_head_are_refused_or_stay_in_bounds)
{
    for (int i = 0; picture_formats[i]; i++)
        for_each_golden(picture_formats[i], check_altered_heads);
}

/* Cut anywhere before its last row is through, a file is refused; never half a picture. */
TEST(a_picture_cut_short_at_any_byte_is_refused_or_whole)
{
    static const char *const names[] = {"jpeg-420.jpg",       "jpeg-progressive.jpg", "png-rgb.png",
                                        "png-interlaced.png", "webp-lossy.webp",      "webp-lossless.webp",
                                        "webp-alpha.webp",    "bmp-rgb.bmp",          "bmp-palette.bmp",
                                        "gif-interlaced.gif"};

    for (size_t k = 0; k < CO_COUNT(names); k++) {
        size_t len, accepted = 0;
        uint8_t *bytes = slurp(names[k], &len);
        char why[WHY_LEN];
        picture p;
        CHECK(picture_decode(&p, bytes, len, MOST_PIXELS, why), "%s", why);
        uint8_t *whole = malloc(p.height * p.stride);
        memcpy(whole, p.bytes, p.height * p.stride);
        for (size_t cut = 0; cut < len; cut++) {
            uint8_t *part = malloc(cut + 1); /* so that a sanitizer sees one byte too many */
            memcpy(part, bytes, cut);
            why[0] = 0;
            if (picture_decode(&p, part, cut, MOST_PIXELS, why)) {
                CHECK(memcmp(p.bytes, whole, p.height * p.stride) == 0, "%s cut at %zu is another picture",
                      names[k], cut);
                accepted++;
            } else {
                CHECK(why[0], "%s cut at %zu: no reason", names[k], cut);
            }
            free(part);
        }
        CHECK(accepted < 40, "%s: %zu cuts of %zu were taken", names[k], accepted, len);
        free(whole);
        free(bytes);
    }
}

static void check_refused(const void *bytes, size_t len, const char *words)
{
    char why[WHY_LEN] = "";
    picture p;

    CHECK(!picture_decode(&p, bytes, len, 1 << 20, why), "taken: %s", words);
    CHECK(test_contains(why, words), "\"%s\", wanted \"%s\"", why, words);
}

TEST(what_is_no_picture_is_refused_with_what_it_is)
{
    uint8_t noise[300];
    uint64_t state = 7;
    size_t len;

    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)test_u32(&state);
    check_refused("", 0, "the file is empty");
    check_refused("GIF89a......", 12, "unsupported format");
    check_refused("GIF89a.......", 13, "no whole frame");
    check_refused("RIFF....WEBPVP8 ", 16, "cut short");
    check_refused("II*\0....", 8, "unsupported format: it is a TIFF file");
    check_refused("<!DOCTYPE html>", 15, "an HTML page");
    check_refused("\x12", 1, "it begins with 0x1200");
    memcpy(noise, "\xff\xd8\xff\xe0", 4);
    check_refused(noise, sizeof noise, "");
    memcpy(noise, "\x89PNG\r\n\x1a\n", 8);
    check_refused(noise, sizeof noise, "");
    uint8_t *png = slurp("png-rgb.png", &len);
    png[60] ^= 1;
    check_refused(png, len, "IDAT");
    free(png);
}

/* The size is refused before there is memory for it: the head alone claims 65,500 x 65,500. */
TEST(a_picture_that_claims_too_many_pixels_is_refused_by_its_head)
{
    size_t len, at = 0;
    uint8_t *jpeg = slurp("jpeg-444.jpg", &len);

    while (at + 9 < len && !(jpeg[at] == 0xff && jpeg[at + 1] == 0xc0))
        at++;
    memcpy(jpeg + at + 5, "\xff\xdc\xff\xdc", 4);
    check_refused(jpeg, len, "65500 x 65500 pixels; at most 1048576 in all, 65535 a side, are read");
    free(jpeg);
}

/* A decoder kept from the file before would have lent it its tables. */
TEST(a_jpeg_without_tables_is_refused_whatever_was_decoded_before)
{
    size_t len;
    uint8_t *jpeg = slurp("jpeg-444.jpg", &len), bare[2048];
    size_t at = 2, to = 2;

    memcpy(bare, jpeg, 2);
    while (jpeg[at + 1] != 0xda) { /* all segments before the scan, but for the quantisation tables */
        size_t n = 2 + ((size_t)jpeg[at + 2] << 8 | jpeg[at + 3]);
        if (jpeg[at + 1] != 0xdb) {
            memcpy(bare + to, jpeg + at, n);
            to += n;
        }
        at += n;
    }
    memcpy(bare + to, jpeg + at, len - at);
    check_refused(bare, to + len - at, "Quantization table");
    CHECK(apart("jpeg-444.jpg") == 0, "the whole file");
    check_refused(bare, to + len - at, "Quantization table");
    free(jpeg);
}
