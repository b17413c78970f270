/* notice.c -- messages during a run: a loss that jumps, ranks that wait for data, the expected time. Each is
 * printed once, or rarely. */
#include "cli/train_int.h"

#include <math.h>

enum { TIMED_STEPS = 20, WAIT_STEPS = 50 };
#define WORTH_SAYING_S 10.0 /* of expected time */
#define WAIT_LEAST     0.05 /* share of the time */

static void notice_spike(training *s, const co_step_result *r)
{
    double above = co_spikes_see(&s->spikes, r->step, r->loss, s->app.cfg->spike);

    if (above <= 0)
        return;
    tell(s, "notice    loss %.4g at step %lld (epoch %lld) is %.0f deviations above its recent mean %.4g",
         r->loss, (long long)r->step, (long long)r->epoch + 1, above, s->spikes.was_mean);
    co_event_json(s->folder, json_pack("{s:s, s:I, s:o, s:o, s:f}", "name", "loss_spike", "step",
                                       (json_int_t)r->step, "loss", co_json_num(r->loss), "mean",
                                       co_json_num(s->spikes.was_mean), "deviations", above));
}

/* Prints the expected time once the first steps are timed. A short run needs no forecast. */
static void notice_time(training *s, const co_step_result *r)
{
    int64_t done = r->step - s->first_step;
    char left[32];

    if (done == 1)
        s->first_ns = r->t_ns;
    if (done != TIMED_STEPS || r->t_ns <= s->first_ns)
        return;
    double step_s = (double)(r->t_ns - s->first_ns) * 1e-9 / (TIMED_STEPS - 1);
    const co_plan_facts *f = co_plan_facts_of(s->plan);
    double secs = step_s * (double)(f->steps - r->step);
    /* samples of a step, on average */
    double samples = (double)f->samples_per_epoch / (double)f->steps_per_epoch;
    if (!f->endless && secs >= WORTH_SAYING_S)
        tell(s, "time      about %s left: %.1f ms per step, %.0f samples/s (evaluation comes on top)",
             co_time_text(left, secs), step_s * 1e3, samples / step_s);
}

static void notice_wait(training *s, const co_step_result *r)
{
    double share = r->step - s->first_step < WAIT_STEPS ? 1 / (double)(r->step - s->first_step) : 0.02;
    double read = (double)r->fill.read_ns, decode = (double)r->fill.decode_ns,
           augment = (double)r->fill.augment_ns, all = read + decode + augment;

    s->data_wait += share * (r->data_wait - s->data_wait);
    if (s->wait_told || r->step - s->first_step < WAIT_STEPS || s->data_wait <= WAIT_LEAST)
        return;
    s->wait_told = true;
    if (all > 0)
        tell(s,
             "notice    data wait %.0f %%: read %.0f decode %.0f augment %.0f; more data.workers? (now %lld)",
             100 * s->data_wait, 100 * read / all, 100 * decode / all, 100 * augment / all,
             (long long)s->app.cfg->workers);
    else
        tell(s, "notice    data wait %.0f %%; more data.workers? (now %lld)", 100 * s->data_wait,
             (long long)s->app.cfg->workers);
}

void notice_step(training *s, const co_step_result *r)
{
    notice_spike(s, r);
    notice_time(s, r);
    notice_wait(s, r);
}
