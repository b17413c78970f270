/* recorder.h -- the flight recorder: what each rank did last, kept where its death cannot take it.
 *
 * One per slot in the arena. The rank is its only writer; the supervisor reads it after a death or for a blame report.
 */
#ifndef CO_COMM_RECORDER_H
#define CO_COMM_RECORDER_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/str.h"

/* What a rank is doing. Order matters to nobody; names are printed. */
#define CO_PHASES(X)                                                                                         \
    X(START, "starting")                                                                                     \
    X(LOAD, "loading")                                                                                       \
    X(COMPUTE, "computing")                                                                                  \
    X(SUM, "summing")                                                                                        \
    X(APPLY, "applying")                                                                                     \
    X(EVAL, "evaluating")                                                                                    \
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
    _Atomic uint32_t call; /* executor call + 1, while computing or evaluating */
    _Atomic uint32_t unit, slice;
    _Atomic uint64_t turns;                  /* rises with every piece of work: the heartbeat */
    _Atomic uint64_t ring[CO_RECORD_EVENTS]; /* unit 32 | phase 8 | slice 24 */
    _Atomic uint64_t ring_n;
    /* Written by the crash handler. */
    _Atomic int32_t crash_signal;
    uintptr_t crash_address;
    int32_t n_frames;
    void *frame[CO_RECORD_FRAMES];
} co_record;

void co_record_phase(co_record *r, co_phase phase, uint32_t unit, uint32_t slice);
/* Clears what an earlier incarnation left, for a new one. */
void co_record_begin(co_record *r);

/* SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT of this process are written into r with a backtrace, then take their course. */
void co_record_crashes(co_record *r);

/* "computing (unit 12, item 3)" and, after a crash, the signal and the backtrace with symbols. */
void co_record_print(const co_record *r, co_str *out);

#endif
