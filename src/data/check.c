/* check.c -- from one reading of a set to sentences about what is wrong with it. See check.h. */
#include "data/check_int.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "data/pairs_int.h"

enum { NAMED = 3, TEXT_LEN = 2048 };
static const char *const split_names[] = {"train", "val", "test"};

static void problem(co_data_report *r, const char *kind, uint64_t count, const char *text)
{
    const char *kept = co_pool_str(&r->pool, text);

    r->no_memory |= !kept;
    if (kept && r->n_problems < CO_DATA_PROBLEMS_MAX)
        r->problems[r->n_problems++] = (co_data_problem){kind, count, kept};
}

/* The file of a sample, or its number. */
static const char *shown(const co_data_report *r, co_split s, uint32_t id, char out[512])
{
    const char *file = r->set->file ? r->set->file(r->set, s, id) : NULL;

    if (file)
        snprintf(out, 512, "%s", file);
    else
        snprintf(out, 512, "sample %u of %s in %.400s", id, split_names[s], r->set->place);
    return out;
}

/* --- the findings --------------------------------------------------------------------------------------- */

static void find_unreadable(co_data_report *r, const walk *w)
{
    char text[TEXT_LEN];
    int at = 0, named = 0;
    uint64_t n = 0;

    for (uint64_t i = 0; i < w->n; i++) {
        uint32_t id;
        if (w->label[i] != CO_IGNORE)
            continue;
        co_split s = walk_split(w, i, &id);
        r->unreadable[s]++;
        n++;
        if (named == NAMED || !r->set->check || r->set->check(r->set, s, id) == CO_OK)
            continue;
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%.300s", named++ ? "; " : "", co_errmsg());
        co_errclear();
    }
    if (!n)
        return;
    char all[TEXT_LEN + 128];
    snprintf(all, sizeof all,
             "%" PRIu64 " sample%s cannot be read: %s%s. Fetch %s again, or train with data.on_error=skip", n,
             n == 1 ? "" : "s", at ? text : "no reason is known",
             n > (uint64_t)named && named ? "; and others" : "", n == 1 ? "it" : "them");
    problem(r, "unreadable", n, all);
}

static void find_labels(co_data_report *r, const walk *w)
{
    char text[TEXT_LEN], name[512] = "";
    uint64_t n = 0;
    int32_t first = 0;

    for (uint64_t i = 0; i < w->n; i++) {
        uint32_t id;
        int32_t y = w->label[i];
        if (y == CO_IGNORE)
            continue;
        co_split s = walk_split(w, i, &id);
        if (y >= 0 && y < r->set->io.classes)
            r->per_class[s][y]++;
        else if (n++ == 0)
            first = y, shown(r, s, id, name);
    }
    if (!n)
        return;
    snprintf(text, sizeof text,
             "%" PRIu64 " labels are out of range, the first is %d of %s; 0 to %" PRId64 " are right", n,
             first, name, r->set->io.classes - 1);
    problem(r, "label", n, text);
}

static const char *class_shown(const co_data_report *r, int64_t c, char out[128])
{
    const char *name = r->set->class_name ? r->set->class_name(r->set, c) : NULL;

    if (name)
        snprintf(out, 128, "%.120s", name);
    else
        snprintf(out, 128, "%" PRId64, c);
    return out;
}

/* Classes that a split lacks although it has samples, and train has them. */
static void find_missing(co_data_report *r, co_split s)
{
    char text[TEXT_LEN], name[128];
    int at = 0, named = 0;
    uint64_t n = 0;

    if (!r->set->count[s])
        return;
    for (int64_t c = 0; c < r->set->io.classes; c++) {
        if (r->per_class[s][c] || (s != CO_SPLIT_TRAIN && !r->per_class[CO_SPLIT_TRAIN][c]))
            continue;
        if (n++ < NAMED)
            at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", named++ ? ", " : "",
                           class_shown(r, c, name));
    }
    if (!n)
        return;
    char all[TEXT_LEN + 640];
    snprintf(all, sizeof all, "%s: %s has no sample of %" PRIu64 " of the %" PRId64 " classes: %s%s",
             r->set->place, split_names[s], n, r->set->io.classes, text, n > NAMED ? " and others" : "");
    problem(r, "missing_class", n, all);
}

static void find_one_class(co_data_report *r)
{
    char text[TEXT_LEN], name[128];
    int64_t top = one_class(r->per_class[CO_SPLIT_TRAIN], r->per_class[CO_SPLIT_VAL], r->set->io.classes);

    if (top < 0)
        return;
    snprintf(text, sizeof text,
             "%s: val looks like one class: %u of its %u samples are of %s. Accuracy on it means nothing; is "
             "val in class folders?",
             r->set->place, r->per_class[CO_SPLIT_VAL][top], r->set->count[CO_SPLIT_VAL],
             class_shown(r, top, name));
    problem(r, "one_class", r->per_class[CO_SPLIT_VAL][top], text);
}

struct place {
    uint64_t hash, at;
};

static int by_hash(const void *a, const void *b)
{
    const struct place *p = a, *q = b;

    return p->hash != q->hash ? (p->hash < q->hash ? -1 : 1) : (p->at > q->at) - (p->at < q->at);
}

/* Samples of `s` whose pixels are those of a sample to train on. Within a run of one hash, train comes
 * first. */
static void tell_duplicates(co_data_report *r, const walk *w, const struct place *p, uint64_t n, co_split s)
{
    char text[TEXT_LEN], one[512], two[512];
    uint64_t found = 0, first = 0;
    int at = 0;

    for (uint64_t i = 0; i < n; i++) {
        uint32_t id, other;
        first = i && p[i].hash == p[i - 1].hash ? first : i;
        if (walk_split(w, p[i].at, &id) != s || walk_split(w, p[first].at, &other) != CO_SPLIT_TRAIN)
            continue;
        if (found++ < NAMED)
            at += snprintf(text + at, sizeof text - (size_t)at, "%s%.250s = %.250s", at ? "; " : "",
                           shown(r, s, id, one), shown(r, CO_SPLIT_TRAIN, other, two));
    }
    if (!found)
        return;
    char all[TEXT_LEN + 128];
    snprintf(all, sizeof all,
             "%" PRIu64
             " pictures of %s are in train too, pixel by pixel: %s%s. Take them out of one of the two",
             found, split_names[s], text, found > NAMED ? "; and others" : "");
    problem(r, "duplicate", found, all);
}

static co_err find_duplicates(co_data_report *r, const walk *w)
{
    uint64_t n = 0;
    struct place *p = co_array(w->n, sizeof *p);

    if (!p)
        return CO_ENOMEM;
    for (uint64_t i = 0; i < w->n; i++)
        if (w->hash[i])
            p[n++] = (struct place){w->hash[i], i};
    qsort(p, n, sizeof *p, by_hash);
    tell_duplicates(r, w, p, n, CO_SPLIT_VAL);
    tell_duplicates(r, w, p, n, CO_SPLIT_TEST);
    co_free(p);
    return CO_OK;
}

static void find_moments(co_data_report *r, const walk *w)
{
    r->has_pixels = w->planes && w->pixels;
    for (uint32_t c = 0; r->has_pixels && c < w->planes; c++) {
        double n = (double)w->pixels, mean = (double)w->sum[c] / n;
        r->mean[c] = mean / 255;
        r->std[c] = sqrt((double)w->squares[c] / n - mean * mean) / 255;
    }
}

/* --- the whole ------------------------------------------------------------------------------------------ */

static co_err set_key(const co_dataset_def *def, void *cfg, const char *key, const char *value)
{
    const co_option *row = co_option_find(def->options, key);

    return row ? co_option_set(row, cfg, key, value) : CO_OK;
}

/* The languages that the name of the file of pairs tells, if it tells any; or else the defaults. */
static co_err set_languages(const co_dataset_def *def, void *cfg, const char *dir)
{
    pair_ask ask = {.lang = {"en", "it"}};
    pair_files files;

    if (pairs_find(&files, dir, "*", &ask) != CO_OK) {
        co_errclear(); /* opening the set says it */
        return CO_OK;
    }
    pairs_name(&ask, files.path[0]);
    if (files.format == PAIRS_TWO_FILES || !ask.named[0][0])
        return CO_OK;
    CO_TRY(set_key(def, cfg, "lang_src", ask.named[0]));
    return set_key(def, cfg, "lang_tgt", ask.named[1]);
}

static co_err open_set(co_dataset **out, const char *data, const char *dir)
{
    const co_dataset_def *def = co_dataset_find(data);
    void *cfg = co_zalloc(def->cfg_size + 1);

    if (!cfg)
        return CO_ENOMEM;
    co_err err = co_options_default(def->options, cfg);
    err = err ? err : set_key(def, cfg, strcmp(data, "text") == 0 ? "path" : "dir", dir);
    err = err || strcmp(data, "pairs") != 0 ? err : set_languages(def, cfg, dir);
    err = err ? err : set_key(def, cfg, "on_error", "skip");
    err = err ? err : set_key(def, cfg, "normalize", "none");
    err = err ? err : co_dataset_open(out, def, cfg);
    co_options_fini(def->options, cfg);
    co_free(cfg);
    return err;
}

static co_err look(co_data_report *r, const walk *w)
{
    for (int s = 0; s < CO_SPLIT_COUNT; s++)
        if (!(r->per_class[s] = co_array((size_t)r->set->io.classes, sizeof *r->per_class[s])))
            return CO_ENOMEM;
    find_unreadable(r, w);
    find_labels(r, w);
    for (int s = 0; s < CO_SPLIT_COUNT; s++)
        find_missing(r, (co_split)s);
    find_one_class(r);
    find_moments(r, w);
    return w->planes ? find_duplicates(r, w) : CO_OK;
}

static co_err check_set(co_data_report *r, void (*tell)(void *ctx, uint64_t done, uint64_t of), void *ctx)
{
    walk w;

    if (r->set->io.users) {
        r->has_ratings = true;
        return count_ratings(&r->ratings, r->set);
    }
    if (r->set->io.task != CO_TASK_CLASSIFY)
        return CO_OK; /* ratings and text are checked whole when they are opened */
    CO_TRY(walk_samples(&w, r->set, tell, ctx));
    co_err err = look(r, &w);
    walk_fini(&w);
    return err;
}

static co_err nothing_known(const char *dir)
{
    co_str found = {0};
    char names[256];

    pairs_tell_other_json(dir, &found);
    if (found.len)
        co_fail(
            CO_EINPUT,
            "%s: %s. Those are an object a line: {\"en\": \"Hello.\", \"it\": \"Ciao.\"}, or the same "
            "inside \"translation\" (docs/data.md). Text to be learned as it is: a file that ends in .txt",
            dir, co_str_text(&found));
    else
        co_fail(CO_EINPUT, "%s: its file names are those of no data set that is known (%s)", dir,
                co_data_layouts(names));
    co_str_fini(&found);
    return CO_EINPUT;
}

co_err co_data_check(co_data_report *out, const char *dir,
                     void (*tell)(void *ctx, uint64_t done, uint64_t of), void *ctx)
{
    co_data_report r = {.layout = co_data_recognise(dir)};

    if (!co_fs_exists(dir))
        return co_fail(CO_EINPUT, "%s: no such file or folder", dir);
    if (!r.layout)
        return nothing_known(dir);
    co_err err = open_set(&r.set, r.layout->data, dir);
    if (err == CO_EINPUT) {
        problem(&r, "open", 1, co_errmsg());
        co_errclear();
        err = CO_OK;
    } else if (!err) {
        err = check_set(&r, tell, ctx);
    }
    if (!err && r.no_memory)
        err = CO_ENOMEM;
    if (err)
        co_data_report_fini(&r);
    else
        *out = r;
    return err;
}

void co_data_report_fini(co_data_report *r)
{
    for (int s = 0; s < CO_SPLIT_COUNT; s++)
        co_free(r->per_class[s]);
    co_dataset_close(r->set);
    co_pool_fini(&r->pool);
    *r = (co_data_report){0};
}
