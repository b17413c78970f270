/* differ.c -- how a run differs from the base of a comparison, in sentences: first the weights, then what was
 * run, then what came out of it. */
#include "book/book_int.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { KEYS_SHOWN = 12 };

struct telling {
    differ_say say;
    void *ctx;
};

static void say(const struct telling *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(const struct telling *t, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    t->say(t->ctx, text);
}

/* "doubled (64 to 128)", "unchanged (0.002)". */
static void changed(char out[96], double from, double to)
{
    static const struct {
        double ratio;
        const char *name;
    } known[] = {{2, "doubled"}, {3, "tripled"}, {4, "quadrupled"}, {0.5, "halved"}};
    double ratio = to / from;

    if (from == to) {
        snprintf(out, 96, "unchanged (%.6g)", from);
        return;
    }
    for (size_t i = 0; i < CO_COUNT(known); i++)
        if (fabs(ratio - known[i].ratio) < 1e-9) {
            snprintf(out, 96, "%s (%.6g to %.6g)", known[i].name, from, to);
            return;
        }
    snprintf(out, 96, "%s from %.6g to %.6g", to > from ? "raised" : "lowered", from, to);
}

static void weights(const struct telling *t, const facts *a, const facts *b)
{
    const facts *without = !a->weights ? a : !b->weights ? b : NULL;

    if (without)
        say(t, "The weights cannot be compared: %s recorded no hash of them.", without->name);
    else if (strcmp(a->weights, b->weights) == 0)
        say(t, "Same weights to the bit (sha256 %.12s...).", a->weights);
    else
        say(t, "Other weights: sha256 %.12s... instead of %.12s....", b->weights, a->weights);
}

static void place(const struct telling *t, const facts *a, const facts *b)
{
    if (!isnan(a->ranks) && !isnan(b->ranks) && a->ranks != b->ranks)
        say(t, "%s rank%s instead of %s.", words_int(b->ranks).text, b->ranks == 1 ? "" : "s",
            words_int(a->ranks).text);
    if (!isnan(a->threads) && !isnan(b->threads) && a->threads != b->threads)
        say(t, "%s thread%s a rank instead of %s.", words_int(b->threads).text, b->threads == 1 ? "" : "s",
            words_int(a->threads).text);
    if (!isnan(a->hosts) && !isnan(b->hosts) && a->hosts != b->hosts)
        say(t, "%s host%s instead of %s.", words_int(b->hosts).text, b->hosts == 1 ? "" : "s",
            words_int(a->hosts).text);
}

/* Batch and rate belong together: whoever changes one should think of the other. */
static void batch_and_rate(const struct telling *t, const facts *a, const facts *b)
{
    char batch[96], rate[96];
    bool batch_known = a->batch > 0 && b->batch > 0, rate_known = a->lr > 0 && b->lr > 0;

    if (!batch_known || !rate_known || (a->batch == b->batch && a->lr == b->lr))
        return;
    changed(batch, a->batch, b->batch);
    changed(rate, a->lr, b->lr);
    say(t, "Batch %s, learning rate %s.", batch, rate);
}

/* --- other keys --------------------------------------------------------------------------------------- */
/* Keys that say where a run is or how it is watched, and those that have a sentence of their own. */
static bool is_passed_over(const char *key)
{
    static const char *const keys[] = {
        "run.",     "task_name",       "ckpt_path",       "console",           "logger.",         "log_every",
        "optim.lr", "data.batch_size", "trainer.devices", "trainer.num_nodes", "trainer.threads", "defaults",
        "fault.",   "trainer.pin"};

    for (size_t i = 0; i < CO_COUNT(keys); i++) {
        size_t n = strlen(keys[i]);
        if (strncmp(key, keys[i], n) == 0 && (keys[i][n - 1] == '.' || key[n] == '\0' || key[n] == '.'))
            return true;
    }
    return strchr(key, '/') != NULL || co_book_is_secret(key);
}

static void keys(const struct telling *t, const facts *a, const facts *b)
{
    int n = 0;

    for (size_t i = 0; i < b->n_config; i++) {
        const char *key = b->config[i].key, *mine = b->config[i].value, *theirs = facts_config(a, key);
        if (is_passed_over(key))
            continue;
        if (!theirs || strcmp(mine, theirs) == 0 || facts_config(b, key) != mine)
            continue;
        if (n++ < KEYS_SHOWN)
            say(t, "%s is %.200s instead of %.200s.", key, mine, theirs);
    }
    if (n > KEYS_SHOWN)
        say(t, "%d more keys differ.", n - KEYS_SHOWN);
}

static const char *fingerprint(const facts *f)
{
    const json_t *segments = json_object_get(f->header, "segments");
    size_t n = json_array_size(segments);

    return n ? co_json_str(json_array_get(segments, n - 1), "data_sha256") : NULL;
}

static void sources(const struct telling *t, const facts *a, const facts *b)
{
    const char *mine = fingerprint(b), *theirs = fingerprint(a);

    if (mine && theirs && strcmp(mine, theirs) != 0)
        say(t, "Other data: their fingerprints differ (%.12s... and %.12s...).", mine, theirs);
    mine = co_json_str(b->header, "kernels");
    theirs = co_json_str(a->header, "kernels");
    if (mine && theirs && strcmp(mine, theirs) != 0)
        say(t, "Kernels %.40s instead of %.40s: the bits may differ.", mine, theirs);
    mine = co_json_str(b->header, "cohort");
    theirs = co_json_str(a->header, "cohort");
    if (mine && theirs && strcmp(mine, theirs) != 0)
        say(t, "Made by cohort %.40s instead of %.40s.", mine, theirs);
}

/* --- results ------------------------------------------------------------------------------------------ */
static void steps(const struct telling *t, const facts *a, const facts *b)
{
    if (!isnan(a->steps) && !isnan(b->steps) && a->steps != b->steps)
        say(t, "%s steps instead of %s.", words_int(b->steps).text, words_int(a->steps).text);
}

static void results(const struct telling *t, const facts *a, const facts *b)
{
    char name[96], label[96];

    if (!*a->metric || strcmp(a->metric, b->metric) != 0)
        return;
    snprintf(name, sizeof name, "val/%.80s", a->metric);
    double x = facts_last(a, name), y = facts_last(b, name);
    if (isnan(x) || isnan(y))
        return;
    words_label(name, label);
    if (x == y)
        say(t, "The same %s: %s.", label, words_metric(name, y).text);
    else if (words_is_share(name))
        say(t, "%s is %.2f points %s: %s instead of %s.", label, 100 * fabs(y - x),
            y < x ? "lower" : "higher", words_metric(name, y).text, words_metric(name, x).text);
    else
        say(t, "%s is %s: %s instead of %s.", label, y < x ? "lower" : "higher", words_metric(name, y).text,
            words_metric(name, x).text);
}

static void speed(const struct telling *t, const facts *a, const facts *b)
{
    double up = facts_speed_up(a, b), each = facts_efficiency(a, b), size = facts_size(a, b);
    bool threads = a->threads != b->threads && !isnan(a->threads) && !isnan(b->threads);

    if (isnan(up))
        return;
    if (isnan(each) || size == 1)
        say(t, "%.2f times as fast.", up);
    else
        say(t, "%.2f times as fast with %.4g times the %s: efficiency %.0f %%.", up, size,
            threads ? "threads of all ranks" : "ranks", 100 * each);
}

void differ_runs(const facts *base, const facts *other, differ_say tell, void *ctx)
{
    const struct telling t = {tell, ctx};

    weights(&t, base, other);
    place(&t, base, other);
    batch_and_rate(&t, base, other);
    keys(&t, base, other);
    sources(&t, base, other);
    steps(&t, base, other);
    results(&t, base, other);
    speed(&t, base, other);
}
