/* tensorboard_summary.c -- one line of the record as a Summary: scalar, histogram, text, image, or a table as text.
 *
 * Scalars are `simple_value`, histograms `histo` and images `image`: the older forms, which every reader takes. A
 * scalar is the float that is nearest to the record's double.
 */
#include "track/trackers/tensorboard_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"

enum { SUMMARY_VALUE = 1 };
enum {
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
    VALUE_IMAGE = 4,
    VALUE_HISTO = 5,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9
};
enum { IMAGE_MOST = 16 << 20, BUCKETS_MOST = 10000, TABLE_MOST = 8 << 20 };

size_t tb_value_begin(co_str *summary, const char *tag)
{
    size_t value = co_proto_begin(summary, SUMMARY_VALUE);

    co_proto_text(summary, VALUE_TAG, tag);
    return value;
}

static void add_scalar(co_str *summary, const char *tag, double x)
{
    size_t value = tb_value_begin(summary, tag);

    co_proto_f32(summary, VALUE_SIMPLE, (float)x);
    co_proto_end(summary, value);
}

void summary_add_text(co_str *summary, const char *tag, const char *text)
{
    size_t value = tb_value_begin(summary, tag);
    size_t tensor = co_proto_begin(summary, VALUE_TENSOR);

    co_proto_int(summary, 1, 7); /* TensorProto.dtype: STRING; no shape: rank 0 */
    co_proto_text_n(summary, 8, text, strlen(text));
    co_proto_end(summary, tensor);
    size_t metadata = co_proto_begin(summary, VALUE_METADATA);
    size_t plugin = co_proto_begin(summary, 1);
    co_proto_text(summary, 1, "text"); /* SummaryMetadata.plugin_data.plugin_name */
    co_proto_end(summary, plugin);
    co_proto_end(summary, metadata);
    co_proto_end(summary, value);
}

static double number(const json_t *object, const char *key)
{
    double x = 0;

    co_json_f64(object, key, &x);
    return x;
}

static double item(const json_t *array, size_t i)
{
    return json_number_value(json_array_get(array, i));
}

/* HistogramProto: the right edge of each bucket, and its count. */
static co_err add_histogram(co_str *summary, const char *tag, const json_t *h)
{
    static const char *const heads[] = {"min", "max", "num", "sum", "sum_squares"};
    const json_t *edges = json_object_get(h, "edges"), *counts = json_object_get(h, "counts");
    size_t n = json_array_size(counts);

    if (n == 0 || n > BUCKETS_MOST || json_array_size(edges) != n + 1)
        return CO_OK;
    double *x = co_array(2 * n, sizeof *x); /* limits, then counts */
    if (!x)
        return CO_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        x[i] = item(edges, i + 1);
        x[n + i] = item(counts, i);
    }
    size_t value = tb_value_begin(summary, tag), histo = co_proto_begin(summary, VALUE_HISTO);
    for (size_t i = 0; i < CO_COUNT(heads); i++)
        co_proto_f64(summary, (int)i + 1, number(h, heads[i]));
    co_proto_f64s(summary, 6, x, n);
    co_proto_f64s(summary, 7, x + n, n);
    co_proto_end(summary, histo);
    co_proto_end(summary, value);
    co_free(x);
    return CO_OK;
}

/* A file that a line of the record names; it must lie below the run folder. *bytes is NULL if it cannot be read:
 * somebody may have removed it. */
static co_err read_media(char **bytes, size_t *len, const json_t *from, const char *dir, size_t most)
{
    const char *file = co_json_str(from, "file");

    *bytes = NULL;
    if (!file || file[0] == '/' || strstr(file, ".."))
        return CO_OK;
    char *path = co_sprintf("%s/%s", dir, file);
    if (!path)
        return CO_ENOMEM;
    co_err err = co_fs_read(bytes, len, path, most);
    co_free(path);
    if (err == CO_ENOMEM)
        return err;
    if (err) {
        *bytes = NULL;
        co_errclear();
    }
    return CO_OK;
}

static co_err add_image(co_str *summary, const char *name, const json_t *from, const char *dir)
{
    char *bytes, *tag;
    size_t len;
    long long index = 0;

    CO_TRY(read_media(&bytes, &len, from, dir, IMAGE_MOST));
    if (!bytes)
        return CO_OK;
    co_json_i64(from, "index", &index);
    tag = co_sprintf("%s/%lld", name, index);
    if (tag) {
        size_t value = tb_value_begin(summary, tag), image = co_proto_begin(summary, VALUE_IMAGE);
        co_proto_int(summary, 1, (int64_t)number(from, "height"));
        co_proto_int(summary, 2, (int64_t)number(from, "width"));
        co_proto_int(summary, 3, 3); /* colorspace: RGB */
        co_proto_text_n(summary, 4, bytes, len);
        co_proto_end(summary, image);
        co_proto_end(summary, value);
    }
    co_free(bytes);
    co_err err = tag ? CO_OK : CO_ENOMEM;
    co_free(tag);
    return err;
}

static void add_cell(co_str *text, const json_t *cell)
{
    const char *string = json_string_value(cell);

    if (json_is_object(cell)) {
        co_str_add(text, co_json_str(cell, "image") ? co_json_str(cell, "image") : "");
    } else if (string) {
        for (; *string; string++)
            co_str_addf(text, *string == '|' ? "\\%c" : "%c", *string == '\n' ? ' ' : *string);
    } else {
        char *plain = co_json_text(cell);
        co_str_add(text, plain ? plain : "");
        co_free(plain);
    }
}

static void add_row(co_str *text, const json_t *row)
{
    for (size_t i = 0; i < json_array_size(row); i++) {
        co_str_add(text, i ? " | " : "| ");
        add_cell(text, json_array_get(row, i));
    }
    co_str_add(text, " |\n");
}

/* As a table in Markdown. */
static co_err add_table(co_str *summary, const char *tag, const json_t *from, const char *dir)
{
    char *bytes;
    size_t len;
    json_t *table = NULL;
    co_str text = {0};

    CO_TRY(read_media(&bytes, &len, from, dir, TABLE_MOST));
    if (!bytes)
        return CO_OK;
    co_err err = co_json_parse(&table, bytes, len, "table");
    co_free(bytes);
    if (err)
        return err == CO_ENOMEM ? err : CO_OK;
    const json_t *columns = json_object_get(table, "columns"), *data = json_object_get(table, "data");
    add_row(&text, columns);
    for (size_t i = 0; i < json_array_size(columns); i++)
        co_str_add(&text, "|---");
    co_str_add(&text, "|\n");
    for (size_t i = 0; i < json_array_size(data); i++)
        add_row(&text, json_array_get(data, i));
    err = co_str_err(&text);
    if (!err)
        summary_add_text(summary, tag, co_str_text(&text));
    co_str_fini(&text);
    json_decref(table);
    return err;
}

co_err summary_of_line(co_str *summary, bool *made, const json_t *line, const char *dir)
{
    const char *name = co_json_str(line, "name"), *text = co_json_str(line, "text");
    const json_t *histogram = json_object_get(line, "histogram"), *image = json_object_get(line, "image");
    const json_t *table = json_object_get(line, "table");
    double value;
    co_err err = CO_OK;

    if (!name)
        return CO_OK;
    if (co_json_f64(line, "value", &value))
        add_scalar(summary, name, value);
    else if (text)
        summary_add_text(summary, name, text);
    else if (histogram)
        err = add_histogram(summary, name, histogram);
    else if (image)
        err = add_image(summary, name, image, dir);
    else if (table)
        err = add_table(summary, name, table, dir);
    *made = summary->len > 0;
    return err;
}
