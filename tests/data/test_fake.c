#include "data/sets.h"

#include <math.h>

enum { INPUTS = 4 };

static co_dataset *open_fake(const char *noise, const char *seed)
{
    co_dataset *d = NULL;
    CHECK_OK(set_try(&d, "fake", "n", "64", "inputs", "4", "noise", noise, "seed", seed, (char *)NULL));
    return d;
}

/* Solves for w, b by Gaussian elimination over five samples, then predicts the others. */
static void fit(const co_dataset *d, double w[INPUTS + 1])
{
    uint32_t ids[INPUTS + 1] = {3, 14, 15, 9, 26};
    float x[(INPUTS + 1) * INPUTS], y[INPUTS + 1];
    double a[INPUTS + 1][INPUTS + 2];

    d->fill(d, CO_SPLIT_TRAIN, ids, (co_slice_shape){INPUTS + 1, 0}, &(co_draw){0},
            &(co_slice_dst){.x = x, .y = y});
    for (int r = 0; r <= INPUTS; r++) {
        for (int c = 0; c < INPUTS; c++)
            a[r][c] = x[r * INPUTS + c];
        a[r][INPUTS] = 1;
        a[r][INPUTS + 1] = y[r];
    }
    for (int p = 0; p <= INPUTS; p++)
        for (int r = 0; r <= INPUTS; r++) {
            double f = a[r][p] / a[p][p];
            for (int c = 0; r != p && c <= INPUTS + 1; c++)
                a[r][c] -= f * a[p][c];
        }
    for (int p = 0; p <= INPUTS; p++)
        w[p] = a[p][INPUTS + 1] / a[p][p];
}

TEST(without_noise_fake_data_are_a_line_through_all_splits)
{
    co_dataset *d = open_fake("0", "5");
    double w[INPUTS + 1];

    CHECK(d->count[0] == 64 && d->count[1] == 8 && d->count[2] == 8, "%u %u %u", d->count[0], d->count[1],
          d->count[2]);
    CHECK(d->io.task == CO_TASK_REGRESS && d->io.y_width == 1, "task %d", (int)d->io.task);
    fit(d, w);
    for (int s = 0; s < CO_SPLIT_COUNT; s++)
        for (uint32_t id = 0; id < d->count[s]; id++) {
            float x[INPUTS], y;
            double sum = w[INPUTS];
            d->fill(d, (co_split)s, &id, (co_slice_shape){1, 0}, &(co_draw){0},
                    &(co_slice_dst){.x = x, .y = &y});
            for (int k = 0; k < INPUTS; k++) {
                CHECK(x[k] >= -1 && x[k] < 1, "x = %g", (double)x[k]);
                sum += w[k] * (double)x[k];
            }
            CHECK(fabs(sum - (double)y) < 1e-4, "split %d sample %u: %g, not %g", s, id, (double)y, sum);
        }
    co_dataset_close(d);
}

TEST(noise_on_fake_data_has_the_spread_asked_for)
{
    co_dataset *clean = NULL, *noisy = NULL;
    double squares = 0;

    CHECK_OK(set_try(&clean, "fake", "noise", "0", (char *)NULL));
    CHECK_OK(set_try(&noisy, "fake", "noise", "0.5", (char *)NULL));
    for (uint32_t id = 0; id < 2048; id++) {
        float x[20], a, b;
        clean->fill(clean, CO_SPLIT_TRAIN, &id, (co_slice_shape){1, 0}, &(co_draw){0},
                    &(co_slice_dst){.x = x, .y = &a});
        noisy->fill(noisy, CO_SPLIT_TRAIN, &id, (co_slice_shape){1, 0}, &(co_draw){0},
                    &(co_slice_dst){.x = x, .y = &b});
        squares += (double)(b - a) * (double)(b - a);
    }
    CHECK(fabs(sqrt(squares / 2048) - 0.5) < 0.04, "spread %g", sqrt(squares / 2048));
    CHECK(strcmp(clean->fingerprint, noisy->fingerprint) != 0, "one fingerprint for two sets");
    co_dataset_close(clean);
    co_dataset_close(noisy);
}

TEST(a_fake_sample_depends_on_its_id_and_the_seed_and_not_on_its_neighbours)
{
    co_dataset *d = open_fake("0.01", "5"), *e = open_fake("0.01", "6");
    uint32_t ids[3] = {7, 0, 7}, other = 1;
    float x[3 * INPUTS], y[3], x1[INPUTS], y1;

    d->fill(d, CO_SPLIT_TRAIN, ids, (co_slice_shape){3, 0}, &(co_draw){0}, &(co_slice_dst){.x = x, .y = y});
    CHECK(memcmp(x, x + 2 * INPUTS, sizeof x1) == 0 && y[0] == y[2], "7 is not 7");
    d->fill(d, CO_SPLIT_VAL, ids, (co_slice_shape){1, 0}, &(co_draw){0}, &(co_slice_dst){.x = x1, .y = &y1});
    CHECK(memcmp(x, x1, sizeof x1) != 0, "7 of val is 7 of train");
    d->fill(d, CO_SPLIT_TRAIN, &other, (co_slice_shape){1, 0}, &(co_draw){0},
            &(co_slice_dst){.x = x1, .y = &y1});
    CHECK(memcmp(x, x1, sizeof x1) != 0, "1 is 7");
    e->fill(e, CO_SPLIT_TRAIN, ids, (co_slice_shape){1, 0}, &(co_draw){0}, &(co_slice_dst){.x = x1, .y = &y1});
    CHECK(memcmp(x, x1, sizeof x1) != 0, "seed 6 is seed 5");
    CHECK(strcmp(d->fingerprint, e->fingerprint) != 0, "one fingerprint for two seeds");
    co_dataset_close(d);
    co_dataset_close(e);
}

static co_err try_fake(void *ctx)
{
    co_dataset *d = NULL;
    co_err err = set_try(&d, "fake", (char *)NULL);
    co_dataset_close(d);
    return err;
}

TEST(fake_data_say_so_when_memory_is_out)
{
    test_each_alloc_fails(try_fake, NULL);
}
