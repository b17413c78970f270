/* deaths.c -- what happens when a rank dies: it is replaced, or let go because the run is over, or the run
 * ends with a report of which rank died, where, how, and what to do. */
#include "train/super_int.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "train/remedy_int.h"

/* How far the slot has come, as one number. The phase is not part of it, because a loader thread may crash
 * while the rank starts, loads or computes. */
static uint64_t place_of(const struct run *run, int slot, uint32_t u)
{
    const rank_slot *me = &run->regions->slots[slot];
    uint32_t phase = atomic_load(&me->record.phase);
    bool items = phase == CO_PHASE_SUM || phase == CO_PHASE_APPLY || phase == CO_PHASE_EVAL ||
                 phase == CO_PHASE_TRANSLATE;
    uint32_t item = items ? atomic_load(&me->record.slice) & 0xfffff : 0;

    return (uint64_t)u << 32 | (uint64_t)(co_mark_get(&me->progress, u) & 0xfff) << 20 | item;
}

/* Deaths that fault.* caused are not looked into: there may be hundreds a second. */
static void how_it_died(struct deaths *deaths, const co_death *death, bool staged, co_death_cause *out)
{
    if (!staged)
        co_death_tell(out, death->status, death->pid, &deaths->traces);
    else
        snprintf(out->how, sizeof out->how, "killed by SIGKILL (%d)", SIGKILL);
    if (death->fenced)
        snprintf(out->how, sizeof out->how, "made no progress for %.1f s (state %c) and was replaced",
                 death->still_s, death->state);
}

static const char *advice(const co_death *death, const co_death_cause *cause)
{
    if (death->fenced)
        return "look for what it waited for: a stopped process, a hung disk; trainer.stall_s sets the "
               "deadline";
    if (cause->out_of_memory)
        return "memory is full: try a smaller data.batch_size or fewer trainer.devices, or raise the limit";
    switch (cause->sig) {
    case 0:
        return "its log is in the run folder under ranks/";
    case SIGILL:
        return "an instruction this CPU lacks: try trainer.kernels=ref";
    case SIGSEGV:
    case SIGABRT:
    case SIGFPE:
        return "a bug in cohort: please report it with this text and the command line";
    default:
        return cause->advice;
    }
}

static void what_it_did(const struct run *run, int slot, co_str *out)
{
    const co_record *record = &run->regions->slots[slot].record;
    uint32_t call = atomic_load(&record->call), phase = atomic_load(&record->phase);
    const exec_set *set = phase == CO_PHASE_COMPUTE ? &run->plan->train
                          : phase == CO_PHASE_EVAL  ? &run->plan->eval
                                                    : NULL;
    co_str text_of = {0};

    co_record_print(record, &text_of);
    const char *text = co_str_text(&text_of);
    int line = (int)strcspn(text, "\n"); /* the backtrace follows */
    co_str_addf(out, "%.*s", line, text);
    if (call > 0 && set && call <= (uint32_t)co_exec_info_of(set->e[0].exec)->calls)
        co_str_addf(out, ", %s", co_exec_call_name(set->e[0].exec, (int)call - 1));
    co_str_addf(out, "%s", text + line);
    co_str_fini(&text_of);
}

static void blame(const struct run *run, const co_death *death, int times, const co_death_cause *cause,
                  const char *doing, int64_t step)
{
    int line = (int)strcspn(doing, "\n");

    snprintf(run->out->blame, sizeof run->out->blame,
             "rank %d (pid %d) died %d times in a row at step %lld: %s, while %.*s. %s.%s", death->slot,
             (int)death->pid, times, (long long)step, cause->how, line, doing, advice(death, cause),
             doing + line);
}

/* A death that fault.* caused does not count towards SAME_PLACE_LIMIT. */
static bool rehearsed(const struct run *run, const co_death *death)
{
    return run->plan->cfg.fault_phase != CO_FAULT_NONE &&
           (death->fenced || (WIFSIGNALED(death->status) && WTERMSIG(death->status) == SIGKILL));
}

/* How often in a row the slot has died at this place. */
static int count_death(struct deaths *deaths, int slot, uint64_t place, bool no_matter)
{
    bool again = place == deaths->place[slot] && !no_matter;

    deaths->place[slot] = place;
    deaths->count[slot] = again ? deaths->count[slot] + 1 : 1;
    return deaths->count[slot];
}

/* It had done its work: however it ended, nobody has to take its place. */
static bool was_done(const struct run *run, const co_death *death)
{
    bool at_end = atomic_load(&run->regions->slots[death->slot].record.phase) == CO_PHASE_END;
    char text[200];

    if (at_end && death->fenced) {
        snprintf(text, sizeof text,
                 "rank %d (pid %d) was done and did not exit for %.1f s: killed; does its data's disk hang?",
                 death->slot, (int)death->pid, death->still_s);
        run_notice(run, text);
    }
    return at_end || (WIFEXITED(death->status) && WEXITSTATUS(death->status) == 0);
}

co_verdict rank_died(void *ctx, const co_death *death)
{
    struct supervisor *super = ctx;
    const struct run *run = &super->run;
    control *ctl = run->regions->ctl;
    uint64_t pc = atomic_load(&ctl->pc);
    unit open = unit_now(run->plan, ctl, pc_unit(pc));
    bool staged = rehearsed(run, death);
    co_death_cause cause = {0};
    co_str doing = {0};

    if ((pc & (PC_STOP | PC_END | PC_FAIL)) && was_done(run, death))
        return CO_CREW_LET_GO;
    how_it_died(&super->deaths, death, staged, &cause);
    what_it_did(run, death->slot, &doing);
    int times = count_death(&super->deaths, death->slot, place_of(run, death->slot, pc_unit(pc)), staged);
    uint64_t struck = atomic_exchange(&ctl->fault_at_ns, 0);
    if (struck)
        accident_struck(&super->accidents, struck);
    remedy what = remedy_for(&(trouble){.hosts = run->regions->deal->hosts, .in_a_row = times});
    /* Whether this host leaves or the run ends: its own ranks end, with the same report. */
    co_verdict verdict = what == REMEDY_REPLACE ? CO_CREW_REPLACE : CO_CREW_END;
    if (verdict == CO_CREW_END)
        blame(run, death, times, &cause, co_str_text(&doing), open.step);
    run->out->recoveries += verdict == CO_CREW_REPLACE;
    if (run->hooks->recovery)
        run->hooks->recovery(run->hooks->ctx, &(co_recovery){.slot = death->slot,
                                                             .pid = (int)death->pid,
                                                             .inc = death->inc,
                                                             .step = open.step,
                                                             .how = cause.how,
                                                             .doing = co_str_text(&doing)});
    co_str_fini(&doing);
    /* So that a successor that dies at once is not blamed for what its predecessor did. */
    co_record_begin(&run->regions->slots[death->slot].record);
    return verdict;
}
