/* dice_int.h -- the words of one stream of purpose AUGMENT, one after the other. */
#ifndef CO_DATA_DICE_INT_H
#define CO_DATA_DICE_INT_H

#include "base/rng.h"
#include "data/data.h"

typedef struct dice {
    co_rng_key key;
    uint32_t stream, epoch, id, next;
    uint32_t word[4];
} dice;

static inline dice dice_of(const co_draw *draw, const char *stream, uint32_t id)
{
    return (dice){.key = co_rng_key_make(draw->seed, CO_RNG_AUGMENT),
                  .stream = co_rng_stream(stream),
                  .epoch = draw->epoch,
                  .id = id};
}

static inline uint32_t dice_word(dice *d)
{
    if (d->next % 4 == 0)
        co_rng_draw(d->word, d->key, d->stream, d->epoch, d->id, d->next / 4);
    return d->word[d->next++ % 4];
}

static inline float dice_unit(dice *d) /* [0, 1) */
{
    return co_rng_unit(dice_word(d));
}

static inline uint32_t dice_below(dice *d, uint32_t n) /* 0..n-1 */
{
    return (uint32_t)((uint64_t)dice_word(d) * n >> 32);
}

#endif
