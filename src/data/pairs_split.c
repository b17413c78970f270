/* pairs_split.c -- which pairs are trained on, which are held out. See pairs_int.h. */
#include "data/pairs_int.h"

#include <stdlib.h>
#include <string.h>

struct place {
    uint64_t hash;
    const pair_list *list;
    uint32_t pair;
};

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static int by_source(const void *a, const void *b)
{
    const struct place *p = a, *q = b;

    if (p->hash != q->hash)
        return p->hash < q->hash ? -1 : 1;
    int c = strcmp(pair_text(p->list, p->pair, CO_SIDE_SOURCE), pair_text(q->list, q->pair, CO_SIDE_SOURCE));
    return c ? c : (p->pair > q->pair) - (p->pair < q->pair);
}

static bool same_source(const struct place *p, const struct place *q)
{
    return p->hash == q->hash && strcmp(pair_text(p->list, p->pair, CO_SIDE_SOURCE),
                                        pair_text(q->list, q->pair, CO_SIDE_SOURCE)) == 0;
}

static uint32_t share(double fraction, uint32_t n)
{
    uint32_t part = (uint32_t)((double)n * fraction);

    return fraction > 0 && part == 0 ? 1 : part;
}

static co_err give_parts(uint8_t *part, const struct place *p, uint32_t n, const pair_shares *s,
                         uint32_t *sources)
{
    uint32_t groups = 0, group = 0;

    for (uint32_t i = 0; i < n; i++)
        groups += i == 0 || !same_source(&p[i], &p[i - 1]);
    uint32_t val = share(s->val, groups), test = share(s->test, groups);
    if ((uint64_t)val + test >= groups)
        return co_fail(
            CO_EINPUT,
            "data.val_fraction=%g and data.test_fraction=%g leave none of %u source sentences to train on",
            s->val, s->test, groups);
    for (uint32_t i = 0; i < n; i++) {
        group += i > 0 && !same_source(&p[i], &p[i - 1]);
        part[p[i].pair] = (uint8_t)(group < val          ? CO_SPLIT_VAL
                                    : group < val + test ? CO_SPLIT_TEST
                                                         : CO_SPLIT_TRAIN);
    }
    *sources = groups;
    return CO_OK;
}

co_err pairs_split(uint8_t *part, const pair_list *list, const pair_shares *shares, uint32_t *sources)
{
    struct place *p = co_array(list->n, sizeof *p);

    if (!p)
        return CO_ENOMEM;
    for (uint32_t i = 0; i < list->n; i++) {
        uint64_t of_text =
            co_fnv1a64(pair_text(list, i, CO_SIDE_SOURCE), list->pair[i].side[CO_SIDE_SOURCE].len);
        p[i] = (struct place){mix(of_text ^ mix(shares->seed + 1)), list, i};
    }
    qsort(p, list->n, sizeof *p, by_source);
    co_err err = give_parts(part, p, list->n, shares, sources);
    co_free(p);
    return err;
}
