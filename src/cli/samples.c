/* samples.c -- logger.samples: samples as pictures with the class that was predicted and the right one,
 * and a table of them; here those of the test. Those of the validations are in samples_val.c.
 *
 *     media/sample-STEP-I.png      lines "test/sample_images"
 *     media/table-STEP.json        the line "test/table": image, predicted_label, true_label
 *
 * The classes are those that the test found, so nothing is computed again; the pictures are read once
 * more, when the training is over. A sample has no colours of its own any more once it is normalised: its
 * smallest value becomes black and its largest white. Whatever fails here is one warning.
 */
#include "cli/samples_int.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/hash.h"

enum { WIDEST = 4096 };

/* --- pictures ------------------------------------------------------------------------------------------- */
bool picture_fits(const co_io *io)
{
    const co_shape *x = &io->x;

    return io->task == CO_TASK_CLASSIFY && x->nd == 3 && (x->d[0] == 1 || x->d[0] == 3) &&
           x->d[1] <= WIDEST && x->d[2] <= WIDEST;
}

co_err picture_open(picture *p, const co_io *io)
{
    const int64_t *d = io->x.d;
    size_t size = (size_t)(d[0] * d[1] * d[2]);

    *p = (picture){.channels = (int)d[0], .height = (int)d[1], .width = (int)d[2]};
    p->x = co_array(size, sizeof *p->x);
    p->pixels = co_array(size, 1);
    if (p->x && p->pixels)
        return CO_OK;
    picture_close(p);
    return CO_ENOMEM;
}

void picture_close(picture *p)
{
    co_free(p->x);
    co_free(p->pixels);
    *p = (picture){0};
}

static void paint(const picture *p)
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

co_err picture_write(const training *s, picture *p, co_split split, uint32_t id, const char *file,
                     char sha256[65], bool *written)
{
    const co_dataset *data = co_plan_facts_of(s->plan)->data;
    co_draw draw = {.seed = (uint64_t)s->app.cfg->seed};
    char *bytes, path[4096];
    size_t len;
    int32_t y;

    *written = false;
    if (data->fill(data, split, &id, (co_slice_shape){.n = 1}, &draw, &(co_slice_dst){.x = p->x, .y = &y}) != 0)
        return CO_OK; /* it cannot be read any more */
    paint(p);
    CO_TRY(co_png_write(&bytes, &len, p->pixels, p->width, p->height, p->channels));
    co_sha256_of(bytes, len, sha256);
    snprintf(path, sizeof path, "%s/%s", co_folder_path(s->folder), file);
    co_err err = co_fs_write_lightly(path, bytes, len);
    co_free(bytes);
    *written = !err;
    return err;
}

/* --- lines ---------------------------------------------------------------------------------------------- */
static json_t *label_of(const co_dataset *data, int64_t label)
{
    const char *name = data->class_name ? data->class_name(data, label) : NULL;
    char number[24];

    snprintf(number, sizeof number, "%lld", (long long)label);
    return co_json_string(name ? name : number);
}

void shown_add(training *s, shown *to, uint32_t id, const char *file, const char *sha256, int64_t chosen,
               int64_t right)
{
    const co_dataset *data = co_plan_facts_of(s->plan)->data;
    json_t *prediction = label_of(data, chosen), *truth = label_of(data, right);
    char caption[512], name[64];

    snprintf(name, sizeof name, "%ssample_images", to->prefix);
    snprintf(caption, sizeof caption, "%s (truth %s)", json_string_value(prediction), json_string_value(truth));
    json_t *image = json_pack("{ss ss si si si so sO sO}", "file", file, "sha256", sha256, "width",
                              (int)data->io.x.d[2], "height", (int)data->io.x.d[1], "index", (int)id,
                              "caption", co_json_string(caption), "prediction", prediction, "truth", truth);
    co_event_json(s->folder,
                  json_pack("{sI ss so}", "step", (json_int_t)to->step, "name", name, "image", image));
    json_array_append_new(to->rows, json_pack("[{ss} o o]", "image", file, prediction, truth));
}

co_err shown_table(training *s, const shown *from, const char *name)
{
    char file[128], label[64], path[4096], sha256[65];
    size_t len, n = json_array_size(from->rows);
    json_t *table =
        json_pack("{s[sss] sO}", "columns", "image", "predicted_label", "true_label", "data", from->rows);
    char *text = table ? co_json_file(table, &len) : NULL;

    json_decref(table);
    if (!text)
        return CO_ENOMEM;
    snprintf(file, sizeof file, "media/%s", name);
    snprintf(label, sizeof label, "%stable", from->prefix);
    snprintf(path, sizeof path, "%s/%s", co_folder_path(s->folder), file);
    co_sha256_of(text, len, sha256);
    co_err err = co_fs_write_lightly(path, text, len);
    co_free(text);
    if (!err)
        co_event_json(s->folder, json_pack("{sI ss s{ss ss sI}}", "step", (json_int_t)from->step, "name", label,
                                           "table", "file", file, "sha256", sha256, "rows", (json_int_t)n));
    return err;
}

/* --- of the test ---------------------------------------------------------------------------------------- */
static co_err record_sample(training *s, picture *p, shown *to, uint32_t id)
{
    int64_t chosen, right;
    char file[64], sha256[65];
    bool written;

    if (!co_plan_choice(s->plan, id, &chosen, &right))
        return CO_OK;
    snprintf(file, sizeof file, "media/sample-%06lld-%u.png", (long long)to->step, id);
    CO_TRY(picture_write(s, p, CO_SPLIT_TEST, id, file, sha256, &written));
    if (written)
        shown_add(s, to, id, file, sha256, chosen, right);
    return CO_OK;
}

static co_err record_all(training *s, picture *p, uint32_t n)
{
    char path[4096], table[64];
    shown to = {.prefix = "test/", .step = s->summary.steps, .rows = json_array()};
    co_err err = to.rows ? CO_OK : CO_ENOMEM;

    snprintf(path, sizeof path, "%s/media", co_folder_path(s->folder));
    mkdir(path, 0777); /* if it fails, writing into it says why */
    for (uint32_t id = 0; id < n && !err; id++)
        err = record_sample(s, p, &to, id);
    snprintf(table, sizeof table, "table-%06lld.json", (long long)to.step);
    if (!err && json_array_size(to.rows) > 0)
        err = shown_table(s, &to, table);
    json_decref(to.rows);
    return err;
}

void samples_record(training *s)
{
    const co_dataset *data = co_plan_facts_of(s->plan)->data;
    picture p;
    int64_t n = app_samples(&s->app), chosen, right;

    if (n <= 0 || s->summary.status != CO_STATUS_DONE || !picture_fits(&data->io) ||
        !co_plan_choice(s->plan, 0, &chosen, &right))
        return;
    if (n > data->count[CO_SPLIT_TEST])
        n = data->count[CO_SPLIT_TEST];
    co_err err = picture_open(&p, &data->io);
    if (!err) {
        err = record_all(s, &p, (uint32_t)n);
        picture_close(&p);
    }
    if (err) {
        co_log_say(CO_LOG_WARN, "logger.samples: %s", co_errmsg());
        co_errclear();
    }
}
