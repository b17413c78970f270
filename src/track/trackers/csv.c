/* csv.c -- csv/metrics.csv: a row per step, a column per name in the order in which names first appear. With
 * logger.csv.style=lightning it is the table that Lightning writes (csv_lightning.c).
 *
 * An event belongs to (step, name) and the last one wins. So a continued run, which records some steps again,
 * gives the table of a run that never stopped. `epoch`, where there is one, is the second column. Lines that
 * are not scalars are passed over. A new name is a new column of every row, so a flush writes the whole
 * table, to a temporary name first. Memory: 24 bytes per scalar, and during a flush the text.
 */
#include "track/trackers/csv_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"

struct csv_cfg {
    int style; /* table or lightning */
};

static const co_option options[] = {
    {"style", CO_OPT_ENUM, offsetof(struct csv_cfg, style), "table",
     "table: csv/metrics.csv, a row per step; lightning: csv/version_0/metrics.csv as Lightning writes it",
     .choices = "table|lightning"},
    {0}};

static co_err add_cell(struct csv_table *t, int64_t step, const char *name, double value)
{
    if (t->n == UINT32_MAX)
        return co_fail(CO_EFORMAT, "events.jsonl has more than %u scalars", UINT32_MAX);
    if (t->n == t->room) {
        size_t room = t->room ? 2 * t->room : 1024;
        struct csv_cell *more = co_realloc(t->cells, room * sizeof *more);
        if (!more)
            return CO_ENOMEM;
        t->cells = more;
        t->room = room;
    }
    struct csv_cell *c = &t->cells[t->n];
    *c = (struct csv_cell){.step = step, .turn = (uint32_t)t->n, .value = value};
    uint32_t index = 0;
    CO_TRY(name_list_index(&t->names, name, &index));
    c->name = index & 0xffffff;
    c->row = t->lightning ? (uint32_t)csv_row_of(name) & 0xff : 0;
    t->n++;
    return CO_OK;
}

static co_err csv_take(void *self, const co_record_line *line)
{
    const char *name = co_json_str(line->json, "name");
    long long step;
    double value;

    if (name && strcmp(name, "run_start") == 0 && co_json_i64(line->json, "steps_per_epoch", &step))
        ((struct csv_table *)self)->steps_per_epoch = step;
    if (!name || !co_json_i64(line->json, "step", &step) || !co_json_f64(line->json, "value", &value))
        return CO_OK;
    return add_cell(self, step, name, value);
}

static int by_step(const void *a, const void *b)
{
    const struct csv_cell *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return x->turn < y->turn ? -1 : x->turn > y->turn;
}

void csv_add_text(co_str *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        co_str_add(out, text);
        return;
    }
    co_str_add(out, "\"");
    for (; *text; text++)
        co_str_addf(out, *text == '"' ? "\"%c" : "%c", *text);
    co_str_add(out, "\"");
}

/* Column k of the file: epoch first, then the others in order. */
static size_t column(const struct csv_table *t, size_t k)
{
    size_t epoch = 0;
    while (epoch < t->names.n && strcmp(t->names.name[epoch], "epoch") != 0)
        epoch++;
    if (epoch == t->names.n || k > epoch)
        return k;
    return k == 0 ? epoch : k - 1;
}

static void add_row(co_str *out, const struct csv_table *t, const struct csv_cell *cells, size_t n,
                    const struct csv_cell **last)
{
    memset(last, 0, t->names.n * sizeof(const struct csv_cell *));
    for (size_t i = 0; i < n; i++)
        last[cells[i].name] = &cells[i];
    co_str_addf(out, "%lld", (long long)cells[0].step);
    for (size_t k = 0; k < t->names.n; k++) {
        const struct csv_cell *c = last[column(t, k)];
        co_str_add(out, ",");
        if (c)
            co_str_addf64(out, c->value);
    }
    co_str_add(out, "\n");
}

static co_err print(co_str *out, struct csv_table *t)
{
    if (t->n)
        qsort(t->cells, t->n, sizeof *t->cells, by_step);
    if (t->lightning)
        return csv_print_lightning(out, t);
    const struct csv_cell **last = co_array(t->names.n + 1, sizeof(const struct csv_cell *));
    if (!last)
        return CO_ENOMEM;
    co_str_add(out, "step");
    for (size_t k = 0; k < t->names.n; k++) {
        co_str_add(out, ",");
        csv_add_text(out, t->names.name[column(t, k)]);
    }
    co_str_add(out, "\n");
    for (size_t i = 0, end; i < t->n; i = end) {
        for (end = i; end < t->n && t->cells[end].step == t->cells[i].step;)
            end++;
        add_row(out, t, t->cells + i, end - i, last);
    }
    co_free(last);
    return co_str_err(out);
}

static void csv_close(void *self)
{
    struct csv_table *t = self;

    name_list_fini(&t->names);
    co_free(t->cells);
    co_free(t->folder);
    co_free(t->path);
    co_free(t);
}

static co_err csv_open(void **out, const co_run_facts *run, const void *cfg)
{
    struct csv_table *t = co_zalloc(sizeof *t);

    if (!t)
        return CO_ENOMEM;
    t->lightning = ((const struct csv_cfg *)cfg)->style == 1;
    t->folder = co_sprintf("%s/csv", run->dir);
    t->path = co_sprintf("%s/csv/%smetrics.csv", run->dir, t->lightning ? "version_0/" : "");
    if (!t->folder || !t->path) {
        csv_close(t);
        return CO_ENOMEM;
    }
    *out = t;
    return CO_OK;
}

/* Not its parents: a run folder that was removed is not made again. */
static co_err make_folder(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ? CO_OK : co_fail(CO_EIO, "mkdir %s: %m", path);
}

static co_err csv_flush(void *self)
{
    struct csv_table *t = self;
    co_str out = {0};
    co_err err = print(&out, t);

    if (!err)
        err = make_folder(t->folder);
    if (!err && t->lightning) {
        char *folder = co_sprintf("%s/version_0", t->folder);
        err = folder ? make_folder(folder) : CO_ENOMEM;
        co_free(folder);
    }
    if (!err)
        err = co_fs_write_atomic(t->path, co_str_text(&out), out.len);
    co_str_fini(&out);
    return err;
}

const co_tracker_def csv_def = {.name = "csv",
                                .help = "csv/metrics.csv: a row per step, a column per scalar",
                                .open = csv_open,
                                .take = csv_take,
                                .flush = csv_flush,
                                .close = csv_close,
                                .options = options,
                                .cfg_size = sizeof(struct csv_cfg)};
