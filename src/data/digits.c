/* digits.c -- 1,797 handwritten digits of 8x8 pixels, inside the program: something to train on anywhere.
 *
 * Source: E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository,
 * 1998, https://doi.org/10.24432/C50P49, its test part. Licence: CC BY 4.0. Changed by us: packed as
 * digits.csv.gz; pixels normalised as below.
 *
 * A row is 64 pixels of 0..16, row by row, and the digit. Over the whole set pixel/16 has mean 0.305260 and
 * standard deviation 0.376049; both, rounded to four places, take x near mean 0 and variance 1. Splits of a
 * fixed permutation: 1,437 to train, 180 to validate, 180 to test.
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/hash.h"

enum { ROWS = 1797, PIXELS = 64, WIDTH = PIXELS + 1, HELD_OUT = 180, LEVELS = 17 };

static const uint8_t rows[] = {
#include "digits.inc"
};
_Static_assert(sizeof rows == ROWS * WIDTH, "digits.csv.gz has 1,797 rows of 65 numbers");

struct digits {
    co_dataset base;
    float value[LEVELS];  /* of a pixel */
    uint32_t place[ROWS]; /* which row: see split_permute */
};

static int fill(const co_dataset *d, co_split s, const uint32_t *id, co_slice_shape shape,
                const co_draw *draw, const co_slice_dst *dst)
{
    const struct digits *set = (const struct digits *)d;
    uint32_t start = split_start(d, s);
    float *x = dst->x;   /* [n,1,8,8] */
    int32_t *y = dst->y; /* [n] */

    for (int i = 0; i < shape.n; i++) {
        const uint8_t *row = rows + (size_t)set->place[start + id[i]] * WIDTH;
        for (int p = 0; x && p < PIXELS; p++)
            x[(size_t)i * PIXELS + (size_t)p] = set->value[row[p]];
        if (y)
            y[i] = row[PIXELS];
        if (dst->ids)
            dst->ids[i] = id[i];
    }
    return 0;
}

static void shut(co_dataset *d)
{
    co_free(d);
}

static co_err open_digits(co_dataset **out, const void *cfg)
{
    struct digits *set = co_zalloc(sizeof *set);

    if (!set)
        return CO_ENOMEM;
    set->base = (co_dataset){
        .io = {.task = CO_TASK_CLASSIFY, .x = CO_SHAPE(1, 8, 8), .classes = 10},
        .count = {ROWS - 2 * HELD_OUT, HELD_OUT, HELD_OUT},
        .fill = fill,
        .close = shut,
    };
    for (int v = 0; v < LEVELS; v++)
        set->value[v] = ((float)v / 16.0f - 0.3053f) / 0.3760f;
    split_permute(set->place, ROWS);
    co_sha256_of(rows, sizeof rows, set->base.fingerprint);
    *out = &set->base;
    return CO_OK;
}

static const co_option options[] = {{0}};

const co_dataset_def digits_def = {
    .name = "digits",
    .help = "1,797 handwritten digits of 8x8 pixels, inside the program",
    .options = options,
    .open = open_digits,
};
