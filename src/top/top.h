/* top.h -- `cohort top`: runs and launches of this machine, or one run folder, on a terminal or as text.
 *
 *     gather.c    what there is: live runs, their progress, the figures of their hosts, their records
 *     lines.c     a state to lines of text; knows no terminal
 *     keys.c      a state and a key to a state
 *     draw.c      lines to a terminal, with ncurses
 *
 *     co_top_ask ask = {.word = "logs/train/runs/DATE", .every_s = 2};
 *     CO_TRY(co_top_show(&ask));                // until the user leaves
 *     CO_TRY(co_top_once(&ask, stdout, true));  // once, as JSON
 */
#ifndef CO_TOP_TOP_H
#define CO_TOP_TOP_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "track/track.h"

typedef struct co_top_ask {
    const char *word; /* a pid, a run folder or a run's id; NULL: all runs and launches of this machine */
    double every_s;   /* between two looks */
    int cols;         /* of the text of co_top_once */
    /* Asks a run to save and end. CO_EFAIL has the reason why it cannot. */
    co_err (*stop)(const co_live_run *run);
    const co_live_run *(*find)(const co_live_run *runs, int n, const char *word);
} co_top_ask;

/* CO_EINPUT: the word is no run, or this is no terminal that can be drawn on (the message names --once). */
co_err co_top_show(const co_top_ask *ask);
co_err co_top_once(const co_top_ask *ask, FILE *to, bool json);

#endif
