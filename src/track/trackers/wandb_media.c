/* wandb_media.c -- pictures, tables, histograms and texts of the record, as wandb writes them.
 *
 * A file of the run's media/ is copied to files/media/images or files/media/table. A table gets wandb's name
 * for it, NAME_STEP_HASH. A picture is named by its hash alone, because the same pictures are shown again at
 * every validation and once more in the table: each is copied and uploaded once. wandb allows any name: the
 * values of the history give the path. A file that is missing, or is not what its line says, is left out: it
 * costs no other value. Tables are run files without an artefact: their pictures are named by path, as
 * wandb's Image does outside of artefacts.
 */
#include "track/wandb_media_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"

enum { FILE_MOST = 64 << 20, HASH_SHOWN = 20, ROWS_MOST = 10000 };

struct copied {
    char path[400]; /* below files/ */
    char sha256[65];
    size_t size;
};

/* Writes the file that out->path names, once: the name has the hash, so the bytes are the same each time. */
static co_err write_once(wandb_media *m, const struct copied *out, const char *kind, const void *bytes)
{
    bool is_new;

    CO_TRY(co_seen_add(&m->written, &is_new, co_fnv1a64(out->path, strlen(out->path))));
    if (!is_new)
        return CO_OK;
    char *folder = co_sprintf("%s/media/%s", co_wandb_files(m->run), kind);
    char *path = co_sprintf("%s/%s", co_wandb_files(m->run), out->path);
    co_err err = folder && path ? co_fs_mkdirs(folder) : CO_ENOMEM;
    if (!err)
        err = co_fs_write_lightly(path, bytes, out->size);
    if (!err)
        err = co_wandb_media(m->run, out->path);
    co_free(folder);
    co_free(path);
    return err;
}

static co_err write_picture(wandb_media *m, struct copied *out, const void *bytes, size_t len)
{
    co_sha256_of(bytes, len, out->sha256);
    out->size = len;
    snprintf(out->path, sizeof out->path, "media/images/%.*s.png", HASH_SHOWN, out->sha256);
    return write_once(m, out, "images", bytes);
}

static co_err write_table(wandb_media *m, struct copied *out, const char *name, int64_t step, const char *text)
{
    char plain[128];

    snprintf(plain, sizeof plain, "%s", name);
    for (char *at = plain; *at; at++)
        *at = strchr("/\\:*?\"<>| ", *at) ? '_' : *at;
    out->size = strlen(text);
    co_sha256_of(text, out->size, out->sha256);
    snprintf(out->path, sizeof out->path, "media/table/%s_%lld_%.*s.table.json", plain, (long long)step,
             HASH_SHOWN, out->sha256);
    return write_once(m, out, "table", text);
}

/* A file of the run folder. CO_EFORMAT: it is not below it, or not there, or has another hash. */
static co_err read_media(wandb_media *m, char **bytes, size_t *len, const char *file, const char *sha256)
{
    char hex[65], *path = NULL;
    bool inside = file && file[0] != '/' && strncmp(file, "../", 3) != 0 && !strstr(file, "/../");

    if (!inside)
        return co_fail(CO_EFORMAT, "a file outside of the run folder");
    path = co_sprintf("%s/%s", m->dir, file);
    if (!path)
        return CO_ENOMEM;
    co_err err = co_fs_read(bytes, len, path, FILE_MOST);
    co_free(path);
    if (err)
        return err == CO_ENOMEM ? err : CO_EFORMAT;
    co_sha256_of(*bytes, *len, hex);
    if (!sha256 || strcmp(sha256, hex) == 0)
        return CO_OK;
    co_free(*bytes);
    *bytes = NULL;
    return co_fail(CO_EFORMAT, "%s has another hash than its line says", file);
}

/* --- pictures --- */
static void forget_waiting(wandb_media *m)
{
    json_decref(m->files);
    json_decref(m->captions);
    m->files = m->captions = NULL;
}

co_err wandb_media_settle(wandb_media *m)
{
    if (!m->files)
        return CO_OK;
    json_t *value = json_pack("{ss si si ss si sO sO}", "_type", "images/separated", "width", m->width,
                              "height", m->height, "format", "png", "count", (int)json_array_size(m->files),
                              "filenames", m->files, "captions", m->captions);
    co_err err = value ? co_wandb_value(m->run, m->step, m->name, value, m->t) : CO_ENOMEM;

    json_decref(value);
    forget_waiting(m);
    return err;
}

void wandb_media_fini(wandb_media *m)
{
    forget_waiting(m);
    co_seen_fini(&m->written);
}

static co_err take_image(wandb_media *m, const json_t *image, int64_t step, const char *name, double t)
{
    const char *caption = co_json_str(image, "caption");
    struct copied file;
    char *bytes = NULL;
    size_t len;
    long long width = 0, height = 0;

    if (m->files && (m->step != step || strcmp(m->name, name) != 0))
        CO_TRY(wandb_media_settle(m));
    co_err err = read_media(m, &bytes, &len, co_json_str(image, "file"), co_json_str(image, "sha256"));
    if (err)
        return err == CO_ENOMEM ? err : CO_OK;
    err = write_picture(m, &file, bytes, len);
    co_free(bytes);
    if (err)
        return err;
    if (!m->files) {
        m->files = json_array();
        m->captions = json_array();
        snprintf(m->name, sizeof m->name, "%s", name);
        m->step = step;
    }
    m->t = t;
    co_json_i64(image, "width", &width);
    co_json_i64(image, "height", &height);
    m->width = (int)width;
    m->height = (int)height;
    bool ok = m->files && m->captions && json_array_append_new(m->files, json_string(file.path)) == 0 &&
              json_array_append_new(m->captions, json_string(caption ? caption : "")) == 0;
    return ok ? CO_OK : CO_ENOMEM;
}

/* --- tables --- */
/* {"image": FILE} becomes what wandb writes for a picture; other cells stay. */
static co_err change_cell(wandb_media *m, json_t *row, size_t at)
{
    const char *file = co_json_str(json_array_get(row, at), "image");
    struct copied copy;
    char *bytes = NULL;
    size_t len;

    if (!file)
        return CO_OK;
    co_err err = read_media(m, &bytes, &len, file, NULL);
    if (!err)
        err = write_picture(m, &copy, bytes, len);
    co_free(bytes);
    if (err)
        return err == CO_EFORMAT && json_array_set_new(row, at, json_null()) == 0 ? CO_OK : err;
    json_t *picture = json_pack("{ss ss ss sI ss}", "_type", "image-file", "path", copy.path, "sha256",
                                copy.sha256, "size", (json_int_t)copy.size, "format", "png");
    return json_array_set_new(row, at, picture) == 0 ? CO_OK : CO_ENOMEM;
}

static co_err send_table(wandb_media *m, json_t *table, const char *name, int64_t step, double t)
{
    json_t *rows = json_object_get(table, "data"), *columns = json_object_get(table, "columns"), *row;
    struct copied copy;
    size_t i;

    json_array_foreach(rows, i, row) for (size_t k = 0; k < json_array_size(row) && i < ROWS_MOST; k++)
        CO_TRY(change_cell(m, row, k));
    char *text = co_json_text(table);
    co_err err = text ? write_table(m, &copy, name, step, text) : CO_ENOMEM;
    co_free(text);
    if (err)
        return err;
    json_t *value =
        json_pack("{ss ss ss sI sI sI ss}", "_type", "table-file", "path", copy.path, "sha256", copy.sha256,
                  "size", (json_int_t)copy.size, "ncols", (json_int_t)json_array_size(columns), "nrows",
                  (json_int_t)json_array_size(rows), "log_mode", "IMMUTABLE");
    err = value ? co_wandb_value(m->run, step, name, value, t) : CO_ENOMEM;
    json_decref(value);
    return err;
}

static co_err take_table(wandb_media *m, const json_t *line, int64_t step, const char *name, double t)
{
    json_t *table = NULL;
    char *bytes = NULL;
    size_t len;
    co_err err = read_media(m, &bytes, &len, co_json_str(line, "file"), co_json_str(line, "sha256"));

    if (!err)
        err = co_json_parse(&table, bytes, len, "a table");
    if (!err)
        err = json_is_object(table) ? send_table(m, table, name, step, t) : CO_OK;
    json_decref(table);
    co_free(bytes);
    return err == CO_EFORMAT ? CO_OK : err;
}

/* --- the rest --- */
static co_err take_histogram(wandb_media *m, const json_t *h, int64_t step, const char *name, double t)
{
    json_t *edges = json_object_get(h, "edges"), *counts = json_object_get(h, "counts");

    if (!json_is_array(edges) || !json_is_array(counts))
        return CO_OK;
    json_t *value = json_pack("{ss sO sO}", "_type", "histogram", "values", counts, "bins", edges);
    co_err err = value ? co_wandb_value(m->run, step, name, value, t) : CO_ENOMEM;

    json_decref(value);
    return err;
}

co_err wandb_media_take(wandb_media *m, const json_t *line, int64_t step, const char *name, double t)
{
    const json_t *image = json_object_get(line, "image"), *text = json_object_get(line, "text");
    const json_t *histogram = json_object_get(line, "histogram"), *table = json_object_get(line, "table");

    if (!co_wandb_files(m->run))
        return CO_OK; /* disabled */
    if (json_is_object(image))
        return take_image(m, image, step, name, t);
    CO_TRY(wandb_media_settle(m));
    if (json_is_object(histogram))
        return take_histogram(m, histogram, step, name, t);
    if (json_is_object(table))
        return take_table(m, table, step, name, t);
    return json_is_string(text) ? co_wandb_value(m->run, step, name, text, t) : CO_OK;
}
