/* accidents.c -- the supervisor's side of rehearsed accidents (fault.*): when the next one strikes whom, and how long
 * until a step was applied again. */
#include "train/train_int.h"

#include <signal.h>

#include "base/clock.h"
#include "base/maths.h"

static uint32_t draw(super *s)
{
    uint64_t z = (s->kill_rng += 0x9E3779B97F4A7C15u);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

/* Exponential waiting times around the mean. */
static void plan_next(super *s)
{
    double u = ((double)draw(s) + 1) * 0x1p-32;

    s->next_kill_ns = co_now_ns() + (uint64_t)(-co_log(u) * s->p->cfg.fault_mean_ms * 1e6);
}

static void note_kill(super *s, uint64_t at_ns)
{
    if (s->n_open_kills < CO_MAX_SLOTS)
        s->open_kill_ns[s->n_open_kills++] = at_ns;
}

void accident_recovered(super *s, uint64_t t_ns)
{
    int left = 0;

    for (int i = 0; i < s->n_open_kills; i++) {
        uint64_t at = s->open_kill_ns[i];
        if (at > t_ns)
            s->open_kill_ns[left++] = at;
        else if (s->n_recoveries < KILLS_KEPT)
            s->recovery_ms[s->n_recoveries++] = (float)(t_ns - at) * 1e-6f;
    }
    s->n_open_kills = left;
}

static void strike(super *s, int slot, int sig)
{
    pid_t pid = co_crew_pid(s->crew, slot);

    if (!pid || pid == s->struck[slot])
        return; /* dying already: another time */
    s->struck[slot] = pid;
    s->kills_left--;
    note_kill(s, co_now_ns());
    kill(pid, sig); /* ours and not reaped: the pid is still its own */
}

void accidents(super *s)
{
    co_fault phase = (co_fault)s->p->cfg.fault_phase;
    control *ctl = s->r->ctl;
    int slot;

    if (phase == CO_FAULT_NONE || s->kills_left <= 0 || co_now_ns() < s->next_kill_ns || !s->out->first_step_ns)
        return;
    slot = (int)(draw(s) % (unsigned)s->p->ranks);
    if (phase == CO_FAULT_RANDOM || phase == CO_FAULT_STOPPED) {
        strike(s, slot, phase == CO_FAULT_STOPPED ? SIGSTOP : SIGKILL);
    } else if (phase == CO_FAULT_CHECKPOINT) {
        if (!s->saver)
            return; /* the next one comes */
        if (draw(s) % 2)
            strike(s, slot, SIGKILL);
        else
            kill(s->saver, SIGKILL), s->kills_left--;
    } else if (atomic_load(&ctl->fault) == 0) {
        atomic_store(&ctl->fault, fault_word(phase, slot, draw(s)));
        s->kills_left--;
    } else {
        return; /* still armed: its phase has not come */
    }
    plan_next(s);
}

int accident_timeout_ms(const super *s)
{
    if (s->p->cfg.fault_phase == CO_FAULT_NONE || s->kills_left <= 0)
        return CO_TURN_MS;
    uint64_t now = co_now_ns();
    uint64_t ms = s->next_kill_ns > now ? (s->next_kill_ns - now) / 1000000 + 1 : 1;
    return ms < CO_TURN_MS ? (int)ms : CO_TURN_MS;
}
