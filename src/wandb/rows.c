/* rows.c -- which scalars belong to which row of the history.
 *
 * A row has the scalars of one step that follow one another in the record. Its _step is the step, or one
 * more than the row before if that is not enough: wandb's steps must grow, and a step may have a second row
 * (a test that was done after a resume). global_step is always the true one. A scalar that the record has
 * twice, as after a kill, is taken once: the repetition has the same value. So the rows depend on the
 * record alone, and the n-th row is the same in every start.
 */
#include "wandb/wandb_int.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

static size_t slot_of(const row_maker *r, uint64_t hash)
{
    size_t at = (size_t)hash & (r->room - 1);

    while (r->seen[at] && r->seen[at] != hash)
        at = (at + 1) & (r->room - 1);
    return at;
}

static co_err grow(row_maker *r)
{
    row_maker bigger = {.room = r->room ? 2 * r->room : 1024};

    bigger.seen = co_array(bigger.room, sizeof *bigger.seen);
    if (!bigger.seen)
        return CO_ENOMEM;
    for (size_t i = 0; i < r->room; i++)
        if (r->seen[i])
            bigger.seen[slot_of(&bigger, r->seen[i])] = r->seen[i];
    co_free(r->seen);
    r->seen = bigger.seen;
    r->room = bigger.room;
    return CO_OK;
}

co_err rows_is_new(row_maker *r, bool *is_new, int64_t step, const char *name)
{
    uint64_t parts[2] = {co_fnv1a64(name, strlen(name)), (uint64_t)step};
    uint64_t hash = co_fnv1a64(parts, sizeof parts);

    hash += hash == 0;
    if (2 * r->n_seen >= r->room)
        CO_TRY(grow(r));
    size_t at = slot_of(r, hash);
    *is_new = r->seen[at] == 0;
    r->n_seen += *is_new;
    r->seen[at] = hash;
    return CO_OK;
}

int64_t rows_step(const row_maker *r)
{
    return r->step > r->last_step ? r->step : r->last_step + 1;
}

int64_t rows_close(row_maker *r)
{
    r->open = false;
    r->last_step = rows_step(r);
    return r->last_step;
}

void rows_fini(row_maker *r)
{
    items_fini(&r->row);
    co_free(r->seen);
    *r = (row_maker){0};
}
