/* histograms.c -- logger.histograms: the distribution of each weight, from checkpoints; logger.gradients:
 * that of each gradient, as the ranks counted it (train/gradients.c).
 *
 * For weights a process of its own (scribe.c) reads the checkpoint that was just saved, so neither the
 * ranks nor the supervisor compute anything. A checkpoint that comes while it is busy, or too soon after
 * the last one, is passed over. There are 64 buckets of one width from the smallest to the largest value.
 */
#include "cli/train_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tensor/safetensors.h"

enum { TENSORS_MOST = 2000, READ = 16384 };

struct spread {
    co_histogram h;
    double from, width; /* of the buckets */
};

static void see_range(struct spread *s, const float *x, size_t n)
{
    co_histogram *h = &s->h;

    for (size_t i = 0; i < n; i++) {
        double v = (double)x[i];
        if (!isfinite(v)) {
            h->not_finite++;
            continue;
        }
        h->least = h->num == 0 || v < h->least ? v : h->least;
        h->most = h->num == 0 || v > h->most ? v : h->most;
        h->sum += v;
        h->squares += v * v;
        h->num++;
    }
}

static void count(struct spread *s, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            continue;
        double at = ((double)x[i] - s->from) / s->width;
        s->h.count[at < 0 ? 0 : at >= CO_BUCKETS ? CO_BUCKETS - 1 : (int)at]++;
    }
}

/* Passes over the tensor's numbers. */
static co_err each_part(co_st_file *file, const co_st_tensor *t, struct spread *s,
                        void (*use)(struct spread *, const float *, size_t))
{
    static float part[READ];
    size_t n = (size_t)co_shape_count(&t->shape);

    for (size_t at = 0; at < n; at += READ) {
        size_t some = n - at < READ ? n - at : READ;
        CO_TRY(co_st_read(file, t, at * sizeof *part, part, some * sizeof *part));
        use(s, part, some);
    }
    return CO_OK;
}

static bool is_finite(const co_histogram *h)
{
    return isfinite(h->edge[0]) && isfinite(h->edge[CO_BUCKETS]) && isfinite(h->least) && isfinite(h->most) &&
           isfinite(h->sum) && isfinite(h->squares);
}

static void print_name(co_str *out, const char *prefix, const char *name)
{
    char *full = co_sprintf("%s/%s", prefix, name);
    json_t *value = full ? co_json_string(full) : NULL;
    char *quoted = value ? co_json_text(value) : NULL;

    if (quoted)
        co_str_add(out, quoted);
    out->failed = out->failed || !quoted;
    co_free(quoted);
    json_decref(value);
    co_free(full);
}

/* One event of the record, finished but for its time. The supervisor copies it there and parses nothing. */
static void print(co_str *out, int64_t step, const char *prefix, const co_histogram *h)
{
    const struct {
        const char *key;
        double value;
    } reals[] = {{"sum", h->sum}, {"sum_squares", h->squares}, {"min", h->least}, {"max", h->most}};

    co_str_addf(out, "{\"step\":%lld,\"name\":", (long long)step);
    print_name(out, prefix, h->name);
    co_str_add(out, ",\"histogram\":{\"edges\":[");
    for (int i = 0; i <= CO_BUCKETS; i++) {
        co_str_add(out, i ? "," : "");
        co_str_addf64(out, h->edge[i]);
    }
    co_str_add(out, "],\"counts\":[");
    for (int i = 0; i < CO_BUCKETS; i++)
        co_str_addf(out, "%s%lld", i ? "," : "", (long long)h->count[i]);
    co_str_addf(out, "],\"num\":%lld", (long long)h->num);
    for (size_t i = 0; i < CO_COUNT(reals); i++) {
        co_str_addf(out, ",\"%s\":", reals[i].key);
        co_str_addf64(out, reals[i].value);
    }
    if (h->not_finite)
        co_str_addf(out, ",\"not_finite\":%lld", (long long)h->not_finite);
    co_str_add(out, "}}");
}

static void record_line(void *ctx, const char *text, size_t len)
{
    co_event_text(((training *)ctx)->folder, text, len);
}

void histograms_gradient(void *ctx, int64_t step, const co_histogram *h)
{
    co_str text = {0};

    if (!is_finite(h))
        return;
    print(&text, step, "gradients", h);
    if (co_str_err(&text) == CO_OK)
        record_line(ctx, co_str_text(&text), text.len);
    else
        co_errclear();
    co_str_fini(&text);
}

/* --- weights -------------------------------------------------------------------------------------------- */
static co_err add_tensor(co_str *out, co_st_file *file, const co_st_tensor *t, int64_t step)
{
    struct spread s = {.h.name = t->name};
    co_histogram *h = &s.h;

    if (t->dtype != CO_F32)
        return CO_OK;
    CO_TRY(each_part(file, t, &s, see_range));
    if (h->num == 0)
        return CO_OK;
    double room = h->most > h->least ? 0
                  : h->most != 0     ? fabs(h->most) / 2
                                     : 0.5; /* all the same: around it */
    s.from = h->least - room;
    s.width = (h->most + room - s.from) / CO_BUCKETS;
    for (int i = 0; i <= CO_BUCKETS; i++)
        h->edge[i] = s.from + s.width * i;
    CO_TRY(each_part(file, t, &s, count));
    if (!is_finite(h))
        return CO_OK;
    print(out, step, "weights", h);
    co_str_add(out, "\n");
    return co_str_err(out);
}

/* In a process of its own. */
static co_err print_weights(void *ctx, co_str *out)
{
    const training *s = ctx;
    char path[1100];
    co_st_file *file;
    co_err err = CO_OK;

    snprintf(path, sizeof path, "%s/model.safetensors", s->histogram.path);
    CO_TRY(co_st_open(&file, path)); /* it may be pruned already */
    for (int i = 0; i < co_st_count(file) && i < TENSORS_MOST && !err; i++)
        err = add_tensor(out, file, co_st_at(file, i), s->histogram.step);
    return err;
}

void histograms_begin(training *s, int64_t step, const char *checkpoint)
{
    int64_t every = app_histograms(&s->app);

    if (every <= 0 || s->histogram.by.pid || (s->histogram.last && step - s->histogram.last < every))
        return;
    s->histogram.step = step;
    snprintf(s->histogram.path, sizeof s->histogram.path, "%s", checkpoint);
    if (scribe_start(&s->histogram.by, print_weights, s, NULL) == CO_OK)
        s->histogram.last = step;
    else
        co_errclear();
}

void histograms_turn(training *s)
{
    scribe_ended(&s->histogram.by, 0, record_line, s);
}

void histograms_end(training *s)
{
    scribe_stop(&s->histogram.by, record_line, s);
}
