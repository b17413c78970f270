/* rows.c -- which scalars belong to which row of the history.
 *
 * A row has the scalars of one step that follow one another in the record. Its _step is the step, or one
 * more than the row before if that is not enough: wandb's steps must grow, and a step may have a second row
 * (a test that was done after a resume). global_step is always the true one. A scalar that the record has
 * twice, as after a kill, is taken once: the repetition has the same value. So the rows depend on the
 * record alone, and the n-th row is the same in every start.
 */
#include "wandb/wandb_int.h"

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
    co_seen_fini(&r->seen);
    *r = (row_maker){0};
}
