/* growth_axes.c -- the axes of `cohort bench growth`: a row each. */
#include "bench/growth_int.h"

#include <string.h>

enum { SIDE = 64, BATCH = 16, TOKENS = 4096 /* in a step, whatever the length of its sequences */ };

static co_err set_pictures(versus *v, const char *model, int batch, int size)
{
    v->batch = batch;
    v->size = size;
    return versus_find_task(&v->task, model);
}

static co_err set_batch(versus *v, int point)
{
    return set_pictures(v, "resnet18", point, SIDE);
}

static co_err set_size(versus *v, int point)
{
    return set_pictures(v, "resnet18", BATCH, point);
}

static co_err set_depth(versus *v, int point)
{
    static const int depths[] = {18, 34, 50, 101, 152};
    char model[32];

    for (size_t i = 0; i < CO_COUNT(depths); i++)
        if (depths[i] == point) {
            snprintf(model, sizeof model, "resnet%d", point);
            return set_pictures(v, model, BATCH, SIDE);
        }
    return co_fail(CO_EINPUT,
                   "bench growth: --points: no resnet has %d layers; there are 18, 34, 50, 101, 152", point);
}

static co_err set_length(versus *v, int point)
{
    v->batch = TOKENS / point;
    v->size = point;
    return versus_find_task(&v->task, "lm");
}

static const growth_axis axes[] = {
    {"batch",
     "samples of a batch: resnet18, pictures of 64x64",
     "samples in a batch",
     {16, 32, 64, 128, 256, 512},
     1,
     2048,
     set_batch,
     .doubles = true},
    {"size",
     "height and width of pictures: resnet18, batch 16",
     "height and width of a picture",
     {32, 64, 96, 128, 160, 192, 224},
     1,
     1024,
     set_size},
    {"depth",
     "layers: resnet18, 34, 50, 101 and 152, pictures of 64x64, batch 16",
     "layers of the resnet",
     {18, 34, 50, 101, 152},
     18,
     152,
     set_depth},
    {"length",
     "tokens of a sequence: a causal transformer of width 256 with 2 layers, 4096 tokens a step",
     "tokens in a sequence",
     {16, 32, 64, 128, 256, 512},
     2,
     TOKENS,
     set_length,
     .doubles = true,
     .by_token = true},
};

co_err growth_find_axis(const growth_axis **out, const char *name)
{
    co_str all = {0};

    for (size_t i = 0; i < CO_COUNT(axes); i++) {
        if (name && strcmp(axes[i].name, name) == 0) {
            *out = &axes[i];
            co_str_fini(&all);
            return CO_OK;
        }
        co_str_addf(&all, "%s%s", i ? ", " : "", axes[i].name);
    }
    co_err err =
        name ? co_fail(CO_EINPUT, "bench growth: no axis \"%s\"; there are %s", name, co_str_text(&all))
             : co_fail(CO_EINPUT, "bench growth needs --axis: one of %s", co_str_text(&all));
    co_str_fini(&all);
    return err;
}

void growth_help(co_str *out)
{
    co_str_add(out, "\n  --axis NAME, what grows:\n");
    for (size_t i = 0; i < CO_COUNT(axes); i++) {
        co_str_addf(out, "  %-6s  %s; --points ", axes[i].name, axes[i].help);
        for (int k = 0; axes[i].point[k]; k++)
            co_str_addf(out, "%s%d", k ? "," : "", axes[i].point[k]);
        co_str_add(out, "\n");
    }
    co_str_add(out, "\n  A line of JSON for each point, then one for the axis: the largest rise of the\n"
                    "  cost of a useful FLOP between neighbours, here and in PyTorch, and the cliffs:\n"
                    "  rises of more than a quarter. --plots DIR: also writes DIR/growth-AXIS.svg.\n"
                    "  --steps N: so many are timed at each point, not as many as 100 GFLOP are worth\n"
                    "  (3 to 40). An axis takes 3 to 5 minutes on two cores, all four some 15.\n");
}

/* --- points --------------------------------------------------------------------------------------------- */
/* The number that begins at `text` and ends before a comma or with the text, and how long it is. */
static bool read_point(const char *text, size_t *len, long long *out)
{
    char one[24];

    *len = strcspn(text, ",");
    if (*len >= sizeof one)
        return false;
    memcpy(one, text, *len);
    one[*len] = '\0';
    return co_str_to_i64(one, out);
}

static co_err add_point(growth *g, const char *text, size_t len, long long point)
{
    if (point < g->axis->least || point > g->axis->most)
        return co_fail(CO_EINPUT, "bench growth: --points: \"%.*s\" is not a number from %d to %d", (int)len,
                       text, g->axis->least, g->axis->most);
    if (g->n && point <= g->want[g->n - 1])
        return co_fail(CO_EINPUT, "bench growth: --points: %lld follows %d; give them rising", point,
                       g->want[g->n - 1]);
    if (g->n == GROWTH_POINTS)
        return co_fail(CO_EINPUT, "bench growth: --points: more than %d", GROWTH_POINTS);
    g->want[g->n++] = (int)point;
    return g->axis->set(&g->v, (int)point);
}

co_err growth_read_points(growth *g, const char *text)
{
    for (; !text && g->axis->point[g->n]; g->n++)
        g->want[g->n] = g->axis->point[g->n];
    while (text) {
        long long point = 0;
        size_t len;
        if (!read_point(text, &len, &point))
            point = 0; /* below the least */
        CO_TRY(add_point(g, text, len, point));
        text = text[len] ? text + len + 1 : NULL;
    }
    return g->n >= 2
               ? CO_OK
               : co_fail(CO_EINPUT, "bench growth: --points: one point does not grow; give two or more");
}
