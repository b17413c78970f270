/* recorder.h -- the flight recorder: what each rank did last, in memory that outlives the rank.
 *
 * There is one per slot in the arena. Only the rank writes it; the supervisor reads it after a death or for a
 * blame report.
 */
#ifndef CO_COMM_RECORDER_H
#define CO_COMM_RECORDER_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/str.h"

/* What a rank is doing. The order has no meaning; the names are printed. */
#define CO_PHASES(X)                                                                                         \
    X(START, "starting")                                                                                     \
    X(LOAD, "loading")                                                                                       \
    X(COMPUTE, "computing")                                                                                  \
    X(SUM, "summing")                                                                                        \
    X(APPLY, "applying")                                                                                     \
    X(EVAL, "evaluating")                                                                                    \
    X(TRANSLATE, "translating")                                                                              \
    X(SNAPSHOT, "waiting for a checkpoint")                                                                  \
    X(WAIT, "waiting for other ranks")                                                                       \
    X(END, "done")
typedef enum {
#define X(id, text) CO_PHASE_##id,
    CO_PHASES(X)
#undef X
        CO_PHASE_COUNT
} co_phase;
const char *co_phase_name(co_phase p);

enum { CO_RECORD_EVENTS = 64, CO_RECORD_FRAMES = 32 };

typedef struct co_record {
    _Alignas(64) _Atomic uint32_t phase;
    _Atomic uint32_t call; /* index of the executor's call + 1, while computing or evaluating */
    _Atomic uint32_t unit, slice;
    _Atomic uint64_t turns;                  /* the heartbeat: rises with every piece of work */
    _Atomic uint64_t ring[CO_RECORD_EVENTS]; /* unit 32 | phase 8 | slice 24 */
    _Atomic uint64_t ring_n;
    /* The crash handler writes these. */
    _Atomic int32_t crash_signal;
    uintptr_t crash_address;
    int32_t n_frames;
    void *frame[CO_RECORD_FRAMES];
} co_record;

void co_record_phase(co_record *r, co_phase phase, uint32_t unit, uint32_t slice);
/* A new incarnation clears what its predecessor left. */
void co_record_begin(co_record *r);

/* From now on SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT are recorded in r with a backtrace. The signal then
 * has its default effect. */
void co_record_crashes(co_record *r);

/* Appends "computing (unit 12, item 3)" and, after a crash, the signal and the backtrace with symbols. */
void co_record_print(const co_record *r, co_str *out);

#endif
