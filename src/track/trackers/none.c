/* none.c -- the silent tracker: takes every line and writes nothing. */
#include "track/track_int.h"

static co_err none_open(void **out, const co_run_facts *run, const void *cfg)
{
    (void)run, (void)cfg;
    *out = NULL;
    return CO_OK;
}

static co_err none_take(void *self, const co_record_line *line)
{
    (void)self, (void)line;
    return CO_OK;
}

static co_err none_flush(void *self)
{
    (void)self;
    return CO_OK;
}

static void none_close(void *self)
{
    (void)self;
}

const co_tracker_def none_def = {"none",    "nothing beside events.jsonl", none_open, none_take, none_flush,
                                 none_close};
