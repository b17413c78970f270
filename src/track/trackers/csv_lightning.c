/* csv_lightning.c -- logger.csv.style=lightning: the table as Lightning's CSVLogger writes it.
 *
 *     epoch,lr,step,train/acc_epoch,train/acc_step,...     columns in the order of their names
 *     0,0.002,49,,0.75,...                                 a row for what was logged together
 *
 * Steps and epochs count from 0: the row of the 50th step says 49. A step has a row for its training values, one for a
 * validation, one for the means of the epoch, one for the test and one for the figures of the machine, each if there
 * are any.
 */
#include "track/trackers/csv_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

int csv_row_of(const char *name)
{
    static const char *const marks[] = {"system/", "test", "val", "_epoch"}; /* the first that a name has */
    static const int rows[] = {4, 3, 1, 2};

    for (size_t i = 0; i < CO_COUNT(marks); i++)
        if (strstr(name, marks[i]))
            return rows[i];
    return 0;
}

enum { EPOCH = -1, STEP = -2 }; /* columns that are no scalars */

struct column {
    const char *name;
    int of; /* index of the name, or one of the two above */
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct column *)a)->name, ((const struct column *)b)->name);
}

static void add_value(co_str *out, const struct csv_table *t, int column, int64_t step,
                      const struct csv_cell **last)
{
    int64_t before = step > 0 ? step - 1 : 0;

    if (column == STEP)
        co_str_addf(out, "%lld", (long long)before);
    else if (column == EPOCH)
        co_str_addf(out, "%lld", (long long)(t->steps_per_epoch > 0 ? before / t->steps_per_epoch : 0));
    else if (last[column])
        co_str_addf64(out, last[column]->value);
}

static void add_rows(co_str *out, const struct csv_table *t, const struct column *columns, size_t n,
                     const struct csv_cell **last)
{
    for (size_t i = 0, end; i < t->n; i = end) {
        const struct csv_cell *first = &t->cells[i];
        memset(last, 0, t->names.n * sizeof(const struct csv_cell *));
        for (end = i; end < t->n && t->cells[end].step == first->step && t->cells[end].row == first->row; end++)
            last[t->cells[end].name] = &t->cells[end];
        for (size_t k = 0; k < n; k++) {
            co_str_add(out, k ? "," : "");
            add_value(out, t, columns[k].of, first->step, last);
        }
        co_str_add(out, "\n");
    }
}

co_err csv_print_lightning(co_str *out, const struct csv_table *t)
{
    const struct csv_cell **last = co_array(t->names.n + 1, sizeof(const struct csv_cell *));
    struct column *columns = co_array(t->names.n + 2, sizeof *columns);
    size_t n = 0;

    if (last && columns) {
        columns[n++] = (struct column){"epoch", EPOCH};
        columns[n++] = (struct column){"step", STEP};
        for (size_t i = 0; i < t->names.n; i++)
            if (strcmp(t->names.name[i], "epoch") != 0 && strcmp(t->names.name[i], "step") != 0)
                columns[n++] = (struct column){t->names.name[i], (int)i};
        qsort(columns, n, sizeof *columns, by_name);
        for (size_t k = 0; k < n; k++) {
            co_str_add(out, k ? "," : "");
            csv_add_text(out, columns[k].name);
        }
        co_str_add(out, "\n");
        add_rows(out, t, columns, n, last);
    }
    co_err err = last && columns ? co_str_err(out) : CO_ENOMEM;
    co_free(last);
    co_free(columns);
    return err;
}
