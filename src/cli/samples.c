/* samples.c -- logger.samples: the first test samples as pictures, each with the class that was predicted and
 * the right one, and a table of them.
 *
 *     media/sample-STEP-I.png      lines "sample_images"
 *     media/table-STEP.json        the line "table": image, predicted_label, true_label
 *
 * The classes are those that the test found, so nothing is computed again; the pictures are read once more,
 * when the training is over. A sample has no colours of its own any more once it is normalised: its smallest
 * value becomes black and its largest white. Whatever fails here is one warning.
 */
#include "cli/train_int.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/hash.h"

enum { WIDEST = 4096 };

struct picture {
    int channels, height, width;
    float *x;        /* [channels, height, width] */
    uint8_t *pixels; /* [height, width, channels] */
};

static bool shape_of(const co_io *io, struct picture *p)
{
    const co_shape *x = &io->x;

    if (io->task != CO_TASK_CLASSIFY || x->nd != 3 || (x->d[0] != 1 && x->d[0] != 3) || x->d[1] > WIDEST ||
        x->d[2] > WIDEST)
        return false;
    p->channels = (int)x->d[0];
    p->height = (int)x->d[1];
    p->width = (int)x->d[2];
    return true;
}

static void paint(const struct picture *p)
{
    int area = p->height * p->width, n = area * p->channels;
    float lo = p->x[0], hi = p->x[0];

    for (int i = 1; i < n; i++) {
        lo = p->x[i] < lo ? p->x[i] : lo;
        hi = p->x[i] > hi ? p->x[i] : hi;
    }
    float scale = hi > lo ? 255 / (hi - lo) : 0;
    for (int i = 0; i < n; i++)
        p->pixels[i % area * p->channels + i / area] = (uint8_t)((p->x[i] - lo) * scale + 0.5f);
}

static co_err write_picture(training *s, const struct picture *p, const char *file, char sha256[65])
{
    char *bytes, path[4096];
    size_t len;

    paint(p);
    CO_TRY(co_png_write(&bytes, &len, p->pixels, p->width, p->height, p->channels));
    co_sha256_of(bytes, len, sha256);
    snprintf(path, sizeof path, "%s/%s", co_folder_path(s->folder), file);
    co_err err = co_fs_write_lightly(path, bytes, len);
    co_free(bytes);
    return err;
}

static json_t *label_of(const co_dataset *data, int64_t label)
{
    const char *name = data->class_name ? data->class_name(data, label) : NULL;
    char number[24];

    snprintf(number, sizeof number, "%lld", (long long)label);
    return co_json_string(name ? name : number);
}

/* A picture, its line, and its row of the table. */
static co_err record_sample(training *s, struct picture *p, uint32_t id, json_t *rows)
{
    const co_dataset *data = co_plan_facts_of(s->plan)->data;
    co_draw draw = {.seed = (uint64_t)s->app.cfg->seed};
    int64_t chosen, right;
    int32_t y;
    char file[64], sha256[65], caption[512];

    if (!co_plan_choice(s->plan, id, &chosen, &right))
        return CO_OK;
    if (data->fill(data, CO_SPLIT_TEST, &id, (co_slice_shape){.n = 1}, &draw,
                   &(co_slice_dst){.x = p->x, .y = &y}) != 0)
        return CO_OK; /* it cannot be read any more */
    snprintf(file, sizeof file, "media/sample-%06lld-%u.png", (long long)s->summary.steps, id);
    CO_TRY(write_picture(s, p, file, sha256));
    json_t *prediction = label_of(data, chosen), *truth = label_of(data, right);
    snprintf(caption, sizeof caption, "%s (truth %s)", json_string_value(prediction), json_string_value(truth));
    json_t *image = json_pack("{ss ss si si si so sO sO}", "file", file, "sha256", sha256, "width", p->width,
                              "height", p->height, "index", (int)id, "caption", co_json_string(caption),
                              "prediction", prediction, "truth", truth);
    co_event_json(s->folder, json_pack("{sI ss so}", "step", (json_int_t)s->summary.steps, "name",
                                       "sample_images", "image", image));
    json_array_append_new(rows, json_pack("[{ss} o o]", "image", file, prediction, truth));
    return CO_OK;
}

static co_err record_table(training *s, json_t *rows)
{
    char file[64], path[4096], sha256[65];
    size_t len, n = json_array_size(rows);
    json_t *table = json_pack("{s[sss] sO}", "columns", "image", "predicted_label", "true_label", "data", rows);
    char *text = table ? co_json_file(table, &len) : NULL;

    json_decref(table);
    if (!text)
        return CO_ENOMEM;
    snprintf(file, sizeof file, "media/table-%06lld.json", (long long)s->summary.steps);
    snprintf(path, sizeof path, "%s/%s", co_folder_path(s->folder), file);
    co_sha256_of(text, len, sha256);
    co_err err = co_fs_write_lightly(path, text, len);
    co_free(text);
    if (!err)
        co_event_json(s->folder,
                      json_pack("{sI ss s{ss ss sI}}", "step", (json_int_t)s->summary.steps, "name", "table",
                                "table", "file", file, "sha256", sha256, "rows", (json_int_t)n));
    return err;
}

static co_err record_all(training *s, struct picture *p, uint32_t n)
{
    char path[4096];
    json_t *rows = json_array();
    co_err err = rows ? CO_OK : CO_ENOMEM;

    snprintf(path, sizeof path, "%s/media", co_folder_path(s->folder));
    mkdir(path, 0777); /* if it fails, writing into it says why */
    for (uint32_t id = 0; id < n && !err; id++)
        err = record_sample(s, p, id, rows);
    if (!err && json_array_size(rows) > 0)
        err = record_table(s, rows);
    json_decref(rows);
    return err;
}

void samples_record(training *s)
{
    const co_dataset *data = co_plan_facts_of(s->plan)->data;
    struct picture p = {0};
    int64_t n = app_samples(&s->app), chosen, right;

    if (n <= 0 || s->summary.status != CO_STATUS_DONE || !shape_of(&data->io, &p) ||
        !co_plan_choice(s->plan, 0, &chosen, &right))
        return;
    if (n > data->count[CO_SPLIT_TEST])
        n = data->count[CO_SPLIT_TEST];
    size_t size = (size_t)p.channels * (size_t)p.height * (size_t)p.width;
    p.x = co_array(size, sizeof *p.x);
    p.pixels = co_array(size, 1);
    co_err err = p.x && p.pixels ? record_all(s, &p, (uint32_t)n) : CO_ENOMEM;
    co_free(p.x);
    co_free(p.pixels);
    if (err) {
        shout(s, "warning   logger.samples: %s", co_errmsg());
        co_errclear();
    }
}
