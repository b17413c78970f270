/* samples_val.c -- logger.samples: the first samples of the validation after each one, with prediction
 * and truth.
 *
 *     media/val-sample-I.png        lines "sample_images": the same files each time
 *     media/val-table-STEP.json     the line "table": image, predicted_label, true_label
 *
 * The ranks keep the classes that the validation found for these samples, so nothing is computed again.
 * The pictures are always the same: a process of its own (scribe.c) makes them at the first validation,
 * and answers with a line "ID SHA256" for each. Validations that come before it is done wait for it. From
 * then on a validation costs the supervisor a line for each sample and one small file.
 */
#include "cli/samples_int.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { SAMPLES_MOST = 128 };

/* What a validation found. */
struct round {
    int64_t step;
    int64_t chosen[SAMPLES_MOST], right[SAMPLES_MOST]; /* right < 0: not known */
};

struct val_pictures {
    scribe by;
    uint32_t n;
    bool made;                     /* the process has ended */
    char sha256[SAMPLES_MOST][65]; /* "": there is no picture */
    struct round *waits;
    size_t n_waits;
};

static void file_of(char out[64], uint32_t id)
{
    snprintf(out, 64, "media/val-sample-%u.png", id);
}

/* --- the pictures --------------------------------------------------------------------------------------- */
static co_err make_pictures(void *ctx, co_str *out)
{
    const training *s = ctx;
    picture p;
    co_err err = picture_open(&p, &co_plan_facts_of(s->plan)->data->io);

    if (err)
        return err;
    for (uint32_t id = 0; id < s->val_pictures->n && !err; id++) {
        char file[64], sha256[65];
        bool written;
        file_of(file, id);
        err = picture_write(s, &p, CO_SPLIT_VAL, id, file, sha256, &written);
        if (!err && written)
            co_str_addf(out, "%u %s\n", id, sha256);
    }
    picture_close(&p);
    return err;
}

static void take_picture(void *ctx, const char *given, size_t len)
{
    struct val_pictures *v = ((training *)ctx)->val_pictures;
    char text[100], sha256[65];
    uint32_t id;

    snprintf(text, sizeof text, "%.*s", (int)len, given);
    if (sscanf(text, "%u %64s", &id, sha256) == 2 && id < v->n)
        memcpy(v->sha256[id], sha256, sizeof sha256);
}

static void start(training *s)
{
    const co_dataset *data = co_plan_facts_of(s->plan)->data;
    int64_t n = app_samples(&s->app), most = data->count[CO_SPLIT_VAL];
    char path[4096];

    s->val_pictures = co_zalloc(sizeof *s->val_pictures);
    if (!s->val_pictures)
        return;
    n = n < SAMPLES_MOST ? n : SAMPLES_MOST;
    s->val_pictures->n = (uint32_t)(n < most ? n : most);
    snprintf(path, sizeof path, "%s/media", co_folder_path(s->folder));
    mkdir(path, 0777); /* if it fails, writing into it says why */
    if (scribe_start(&s->val_pictures->by, make_pictures, s, &data->fds) != CO_OK) {
        s->val_pictures->made = true; /* there will be none */
        co_log_say(CO_LOG_WARN, "logger.samples: %s", co_errmsg());
        co_errclear();
    }
}

/* --- the lines ------------------------------------------------------------------------------------------ */
static void record_round(training *s, const struct round *found)
{
    const struct val_pictures *v = s->val_pictures;
    shown to = {.prefix = "", .step = found->step, .rows = json_array()};
    char name[64];

    snprintf(name, sizeof name, "val-table-%06lld.json", (long long)found->step);
    for (uint32_t id = 0; id < v->n; id++) {
        char file[64];
        file_of(file, id);
        if (v->sha256[id][0] && found->right[id] >= 0)
            shown_add(s, &to, id, file, v->sha256[id], found->chosen[id], found->right[id]);
    }
    if (json_array_size(to.rows) > 0 && shown_table(s, &to, name) != CO_OK) {
        co_log_say(CO_LOG_WARN, "logger.samples: %s", co_errmsg());
        co_errclear();
    }
    json_decref(to.rows);
}

static void record_waiting(training *s)
{
    struct val_pictures *v = s->val_pictures;

    for (size_t i = 0; i < v->n_waits; i++)
        record_round(s, &v->waits[i]);
    co_free(v->waits);
    v->waits = NULL;
    v->n_waits = 0;
}

void samples_eval(training *s, const co_eval_result *r)
{
    const co_io *io = &co_plan_facts_of(s->plan)->data->io;

    if (app_samples(&s->app) <= 0 || r->split != CO_SPLIT_VAL || !picture_fits(io))
        return;
    if (!s->val_pictures)
        start(s);
    struct val_pictures *v = s->val_pictures;
    struct round *more = v ? co_realloc(v->waits, (v->n_waits + 1) * sizeof *more) : NULL;
    if (!more)
        return;
    v->waits = more;
    struct round *found = &more[v->n_waits++];
    found->step = r->step;
    for (uint32_t id = 0; id < v->n; id++)
        if (!co_plan_val_choice(s->plan, r, id, &found->chosen[id], &found->right[id]))
            found->right[id] = -1;
    if (v->made)
        record_waiting(s);
}

/* The pictures are there, or never will be. */
static void finish(training *s)
{
    struct val_pictures *v = s->val_pictures;

    if (v->by.why[0] && !v->made)
        shout(s, "warning   logger.samples: the validation has no pictures in this run: %s", v->by.why);
    v->made = true;
    record_waiting(s);
}

void samples_turn(training *s)
{
    struct val_pictures *v = s->val_pictures;

    if (v && !v->made && scribe_ended(&v->by, 0, take_picture, s))
        finish(s);
}

void samples_end(training *s)
{
    struct val_pictures *v = s->val_pictures;

    if (!v)
        return;
    scribe_stop(&v->by, take_picture, s);
    finish(s);
    co_free(v);
    s->val_pictures = NULL;
}
