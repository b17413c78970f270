/* spike.c -- is this loss out of the ordinary?
 *
 * The mean and deviation of the losses so far are kept; each new loss has a weight of 1/25. A loss many
 * deviations above the mean is a spike. Two rules keep ordinary noise out. A deviation is never taken as less
 * than 4 % of the loss at the beginning of the run, because small losses scatter with a long tail. And there
 * is no report in the first 20 steps, nor within 50 steps of the last one. A spike enters the mean reduced to
 * the limit: so it does not hide the next one, and a rise that lasts becomes the new normal.
 */
#include "track/track.h"

#include <math.h>

enum { LEAST_SEEN = 20, PAUSE = 50 };
#define SHARE 0.04
#define FLOOR 0.04

static void learn(co_spikes *s, double loss)
{
    /* Until 1/SHARE are seen, all weigh the same. */
    double share = s->seen < 1 / SHARE ? 1 / (double)(s->seen + 1) : SHARE, off = loss - s->mean;

    s->mean += share * off;
    s->variance = (1 - share) * (s->variance + share * off * off);
    s->seen++;
    if (s->seen == LEAST_SEEN)
        s->level = fabs(s->mean);
}

double co_spikes_see(co_spikes *s, int64_t step, double loss, double limit)
{
    if (!isfinite(loss) || limit <= 0)
        return 0;
    double deviation = sqrt(s->variance), least = FLOOR * s->level;
    deviation = deviation > least ? deviation : least;
    double above = s->seen >= LEAST_SEEN && deviation > 0 ? (loss - s->mean) / deviation : 0;
    bool spike = above > limit;

    s->was_mean = s->mean;
    learn(s, spike ? s->mean + limit * deviation : loss);
    if (!spike || (s->told && step - s->told < PAUSE))
        return 0;
    s->told = step;
    return above;
}
