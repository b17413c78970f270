/* tune_int.h -- the curve of a search for a learning rate, and what it suggests. */
#ifndef CO_CLI_TUNE_INT_H
#define CO_CLI_TUNE_INT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Points at either end that are not used: at first the average has not settled, and the last losses may have
 * diverged. */
enum { LR_SKIP_FIRST = 10, LR_SKIP_LAST = 1, LR_LEAST_STEPS = 20 };

typedef struct lr_curve {
    double *lr, *loss, *smooth; /* [n] of [room] */
    size_t n, room;
    double mean, weight, best; /* of the average so far */
    bool over;                 /* the loss diverged or is not finite: later points are ignored */
    size_t at;                 /* the point that lr_curve_suggest chose */
} lr_curve;

co_err lr_curve_init(lr_curve *c, size_t room);
void lr_curve_fini(lr_curve *c);
/* The next step's rate and loss. Nothing happens once the curve is over or full. */
void lr_curve_add(lr_curve *c, double lr, double loss);
/* Sets c->at to where the smoothed loss falls fastest over log(lr). CO_EINPUT, with what to try, if it falls
 * nowhere or too few points are left. */
co_err lr_curve_suggest(lr_curve *c);

#endif
