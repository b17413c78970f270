/* deaths.c -- a rank is gone: replace it, let it go, or end the run with a report of who, where, how and what to do. */
#include "train/train_int.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"

enum { SAME_PLACE_LIMIT = 3 }; /* deaths in a row of one slot at one place that end the run */

/* How far the slot has come. The phase is no part of it: a loader's thread may crash while the rank starts, loads or
 * computes. */
static uint64_t place_of(const super *s, int slot, uint32_t u)
{
    const rank_slot *me = &s->r->slots[slot];
    uint32_t phase = atomic_load(&me->record.phase);
    bool items = phase == CO_PHASE_SUM || phase == CO_PHASE_APPLY || phase == CO_PHASE_EVAL;
    uint32_t item = items ? atomic_load(&me->record.slice) & 0xfffff : 0;

    return (uint64_t)u << 32 | (uint64_t)(co_mark_get(&me->progress, u) & 0xfff) << 20 | item;
}

static void how_it_died(const co_death *d, char *out, size_t size)
{
    if (d->fenced)
        snprintf(out, size, "made no progress for %.1f s (state %c) and was replaced", d->still_s, d->state);
    else if (WIFSIGNALED(d->status))
        snprintf(out, size, "killed by signal %d (%s)", WTERMSIG(d->status), strsignal(WTERMSIG(d->status)));
    else
        snprintf(out, size, "exited with status %d", WEXITSTATUS(d->status));
}

static const char *advice(const co_death *d)
{
    if (d->fenced)
        return "look for what it waited for: a stopped process, a hung disk; trainer.stall_s sets the "
               "deadline";
    if (!WIFSIGNALED(d->status))
        return "its log is in the run folder under ranks/";
    switch (WTERMSIG(d->status)) {
    case SIGKILL:
        return "SIGKILL comes from outside: most often the out-of-memory killer (dmesg tells); try a smaller "
               "data.batch_size or fewer trainer.devices";
    case SIGBUS:
        return "SIGBUS means memory that could not be had: is the machine, or its container's memory limit, "
               "full?";
    case SIGILL:
        return "an instruction this CPU lacks: try trainer.kernels=ref";
    default:
        return "a bug in cohort: please report it with this text and the command line";
    }
}

static void what_it_did(const super *s, int slot, co_str *out)
{
    const co_record *r = &s->r->slots[slot].record;
    uint32_t call = atomic_load(&r->call), phase = atomic_load(&r->phase);
    const exec_set *set = phase == CO_PHASE_COMPUTE ? &s->p->train
                          : phase == CO_PHASE_EVAL  ? &s->p->eval
                                                    : NULL;
    co_str record = {0};

    co_record_print(r, &record);
    const char *text = co_str_text(&record);
    int line = (int)strcspn(text, "\n"); /* the backtrace follows */
    co_str_addf(out, "%.*s", line, text);
    if (call > 0 && set && call <= (uint32_t)co_exec_info_of(set->e[0].exec)->calls)
        co_str_addf(out, ", %s", co_exec_call_name(set->e[0].exec, (int)call - 1));
    co_str_addf(out, "%s", text + line);
    co_str_fini(&record);
}

static void blame(super *s, const co_death *d, const char *how, const char *doing, int64_t step)
{
    int line = (int)strcspn(doing, "\n");

    snprintf(s->out->blame, sizeof s->out->blame,
             "rank %d (pid %d) died %d times in a row at step %lld: %s, while %.*s. %s.%s", d->slot,
             (int)d->pid, s->death_count[d->slot], (long long)step, how, line, doing, advice(d), doing + line);
}

/* Deaths that a rehearsal caused are no sign of trouble. */
static bool rehearsed(const super *s, const co_death *d)
{
    return s->p->cfg.fault_phase != CO_FAULT_NONE &&
           (d->fenced || (WIFSIGNALED(d->status) && WTERMSIG(d->status) == SIGKILL));
}

co_verdict rank_died(void *ctx, const co_death *d)
{
    super *s = ctx;
    uint64_t pc = atomic_load(&s->r->ctl->pc);
    unit u = unit_now(s->p, s->r->ctl, (uint32_t)(pc >> 8));
    char how[160];
    co_str doing = {0};

    if (WIFEXITED(d->status) && WEXITSTATUS(d->status) == 0 && (pc & (PC_STOP | PC_END | PC_FAIL)))
        return CO_CREW_LET_GO;
    how_it_died(d, how, sizeof how);
    what_it_did(s, d->slot, &doing);
    uint64_t place = place_of(s, d->slot, (uint32_t)(pc >> 8));
    s->death_count[d->slot] =
        place == s->death_key[d->slot] && !rehearsed(s, d) ? s->death_count[d->slot] + 1 : 1;
    s->death_key[d->slot] = place;
    co_verdict verdict = s->death_count[d->slot] >= SAME_PLACE_LIMIT ? CO_CREW_END : CO_CREW_REPLACE;
    uint64_t struck = atomic_exchange(&s->r->ctl->fault_at_ns, 0);
    if (struck && s->n_open_kills < CO_MAX_SLOTS)
        s->open_kill_ns[s->n_open_kills++] = struck;
    if (verdict == CO_CREW_END)
        blame(s, d, how, co_str_text(&doing), u.step);
    s->out->recoveries += verdict == CO_CREW_REPLACE;
    if (s->hooks->recovery)
        s->hooks->recovery(s->hooks->ctx, &(co_recovery){.slot = d->slot,
                                                         .pid = (int)d->pid,
                                                         .inc = d->inc,
                                                         .step = u.step,
                                                         .how = how,
                                                         .doing = co_str_text(&doing)});
    co_str_fini(&doing);
    /* A successor that dies before its first act did nothing. */
    co_record_begin(&s->r->slots[d->slot].record);
    return verdict;
}
