/* stage.h -- runs inside a test: a spec put together from words, and the course of a run to compare others
 * with. */
#ifndef TESTS_TRAIN_STAGE_H
#define TESTS_TRAIN_STAGE_H

#include "train/rank_int.h"
#include "train/save_int.h"

typedef struct stage {
    co_train_cfg cfg;
    co_train_spec spec;
    void *model_cfg, *data_cfg, *optim_cfg, *schedule_cfg;
} stage;

/* Words are "key=value", NULL-terminated: model=, data=, optim= first. */
void stage_open(stage *g, const char *const *words);
void stage_set(stage *g, const char *word);
void stage_close(stage *g);
co_plan *stage_plan(const stage *g); /* planned, with its arena open: see open_state */

/* The states and results of a run by one rank, step by step. */
enum { COURSE_STEPS = 64, COURSE_UNITS = 96 };
typedef struct course {
    int64_t steps;
    size_t count; /* floats of a state: weights and moments */
    float *state[COURSE_STEPS + 1];
    int units;
    double loss[COURSE_UNITS + 1], metric[COURSE_UNITS + 1]; /* by unit */
} course;
void course_open(course *c, const stage *g);
void course_close(course *c);
/* The plan's state as it is now, or the result of a unit, is that of the course. */
void course_check_state(const course *c, const co_plan *p, int64_t step, const char *what);
void course_check_unit(const course *c, const co_plan *p, uint32_t u, const char *what);

/* What a supervisor does for the ranks, in a test: takes results, saves (here: checks) snapshots and lets
 * them go. */
void stage_attend(const course *c, const co_plan *p, const char *what);

#endif
