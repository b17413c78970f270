/* accidents.c -- the supervisor's side of rehearsed accidents (fault.*): it picks a rank and a time, kills
 * it, and measures how long it takes until the next step is applied. */
#include "train/rank_int.h"
#include "train/super_int.h"

#include <signal.h>

#include "base/clock.h"
#include "base/maths.h"

static uint32_t draw(struct accidents *state)
{
    uint64_t z = (state->rng += 0x9E3779B97F4A7C15u);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

/* The time to the next kill is drawn from an exponential distribution with the mean fault.mean_ms. */
static void plan_next(struct accidents *state)
{
    double u = ((double)draw(state) + 1) * 0x1p-32;

    state->next_kill_ns = co_now_ns() + (uint64_t)(-co_log(u) * state->run->plan->cfg.fault_mean_ms * 1e6);
}

void accident_struck(struct accidents *state, uint64_t at_ns)
{
    if (state->n_open < CO_MAX_SLOTS)
        state->open_ns[state->n_open++] = at_ns;
}

void accident_recovered(struct accidents *state, uint64_t t_ns)
{
    int left = 0;

    for (int i = 0; i < state->n_open; i++) {
        uint64_t at = state->open_ns[i];
        if (at > t_ns)
            state->open_ns[left++] = at;
        else if (state->n_recoveries < KILLS_KEPT)
            state->recovery_ms[state->n_recoveries++] = (float)(t_ns - at) * 1e-6f;
    }
    state->n_open = left;
}

static void strike(struct accidents *state, const co_crew *crew, int slot, int sig)
{
    pid_t pid = co_crew_pid(crew, slot);

    if (!pid || pid == state->struck[slot])
        return; /* it is already dying: try again later */
    state->struck[slot] = pid;
    state->kills_left--;
    accident_struck(state, co_now_ns());
    kill(pid, sig); /* ours and not reaped: the pid is still its own */
}

void accidents_turn(struct accidents *state, const co_crew *crew, pid_t saver)
{
    const struct run *run = state->run;
    co_fault phase = (co_fault)run->plan->cfg.fault_phase;
    control *ctl = run->regions->ctl;
    int slot;

    if (phase == CO_FAULT_NONE || state->kills_left <= 0 || co_now_ns() < state->next_kill_ns ||
        !run->out->first_step_ns)
        return;
    slot = (int)(draw(state) % (unsigned)run->plan->ranks);
    if (phase == CO_FAULT_RANDOM || phase == CO_FAULT_STOPPED) {
        strike(state, crew, slot, phase == CO_FAULT_STOPPED ? SIGSTOP : SIGKILL);
    } else if (phase == CO_FAULT_CHECKPOINT) {
        if (!saver)
            return; /* wait for the next saver */
        if (draw(state) % 2)
            strike(state, crew, slot, SIGKILL);
        else
            kill(saver, SIGKILL), state->kills_left--;
    } else if (atomic_load(&ctl->fault) == 0) {
        atomic_store(&ctl->fault, fault_word(phase, slot, draw(state)));
        state->kills_left--;
    } else {
        return; /* the last one is still armed: no rank has reached its phase yet */
    }
    plan_next(state);
}

int accidents_timeout_ms(const struct accidents *state)
{
    if (state->run->plan->cfg.fault_phase == CO_FAULT_NONE || state->kills_left <= 0)
        return CO_TURN_MS;
    uint64_t now = co_now_ns();
    uint64_t ms = state->next_kill_ns > now ? (state->next_kill_ns - now) / 1000000 + 1 : 1;
    return ms < CO_TURN_MS ? (int)ms : CO_TURN_MS;
}
