/* material.c -- generates text and pictures to train on, the same on every machine. */
#include "bench/bench_int.h"

#include <png.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/rng.h"

enum { LEAST = 36, SIDE = 52, CLASSES = 3, OF_EACH = 12 };

/* Writes lines of words of varying length. */
static co_err write_text(const char *path)
{
    co_rng_key key = co_rng_key_make(7, CO_RNG_DATA);
    co_str s = {0};

    for (uint32_t i = 0; i < 220; i++) {
        uint32_t u[4];
        co_rng_draw(u, key, 1, 0, i, 0);
        for (uint32_t w = 0; w < 1 + u[0] % 9; w++) {
            uint32_t v[4];
            co_rng_draw(v, key, 2, w, i, 0);
            for (uint32_t k = 0; k < 1 + v[0] % 8; k++)
                co_str_addf(&s, "%c", (char)('a' + (v[1] >> k) % 7 + (v[2] >> k) % 13));
            co_str_add(&s, " ");
        }
        co_str_add(&s, "\n");
    }
    co_err err = co_str_err(&s);
    if (!err)
        err = co_fs_write_atomic(path, co_str_text(&s), strlen(co_str_text(&s)));
    co_str_fini(&s);
    return err;
}

/* Writes a picture whose size depends on its number and whose stripes depend on its class, with noise. */
static co_err write_picture(const char *path, co_rng_key key, uint32_t class, uint32_t i)
{
    static uint8_t rgb[SIDE * SIDE * 3]; /* [height,width,3] */
    uint32_t u[4];

    co_rng_draw(u, key, 3, class, i, 0);
    uint32_t height = LEAST + u[0] % (SIDE - LEAST + 1), width = LEAST + u[1] % (SIDE - LEAST + 1);
    for (uint32_t p = 0; p < height * width; p++) {
        uint32_t v[4], row = p / width, col = p % width;
        co_rng_draw(v, key, 4, class, i, p);
        for (uint32_t c = 0; c < 3; c++)
            rgb[3 * p + c] = (uint8_t)((class == c ? row * 5 : col * 3) % 192 + v[c] % 64);
    }
    png_image image = {.version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_RGB};
    if (!png_image_write_to_file(&image, path, 0, rgb, 0, NULL))
        return co_fail(CO_EIO, "write %s: %s", path, image.message);
    return CO_OK;
}

/* Pairs of a number and an adjective, in two languages and two orders, some with a word more. */
static co_err write_pairs(const char *path)
{
    static const char *const numbers[][2] = {{"one", "uno"},      {"two", "due"},     {"three", "tre"},
                                             {"four", "quattro"}, {"five", "cinque"}, {"six", "sei"}};
    static const char *const words[][2] = {{"red", "rosso"},    {"green", "verde"}, {"blue", "blu"},
                                           {"white", "bianco"}, {"black", "nero"},  {"big", "grande"}};
    co_str text = {0};

    for (size_t a = 0; a < CO_COUNT(numbers); a++)
        for (size_t b = 0; b < CO_COUNT(words); b++)
            co_str_addf(&text, "%s%s %s\t%s %s%s\n", (a + b) % 3 ? "" : "the very ", numbers[a][0],
                        words[b][0], words[b][1], numbers[a][1], (a * b) % 4 ? "" : " davvero molto");
    co_err err = co_str_err(&text);
    if (!err)
        err = co_fs_write_atomic(path, text.p, text.len);
    co_str_fini(&text);
    return err;
}

static co_err write_pictures(const char *root)
{
    co_rng_key key = co_rng_key_make(7, CO_RNG_DATA);
    char path[128];

    for (uint32_t class = 0; class < CLASSES; class ++) {
        snprintf(path, sizeof path, "%s/pictures/class%u", root, class);
        CO_TRY(co_fs_mkdirs(path));
        for (uint32_t i = 0; i < OF_EACH; i++) {
            snprintf(path, sizeof path, "%s/pictures/class%u/%02u.png", root, class, i);
            CO_TRY(write_picture(path, key, class, i));
        }
    }
    return CO_OK;
}

co_err material_make(const char *root)
{
    char path[96];

    snprintf(path, sizeof path, "%s/text", root);
    CO_TRY(write_text(path));
    snprintf(path, sizeof path, "%s/pairs.tsv", root);
    CO_TRY(write_pairs(path));
    return write_pictures(root);
}
