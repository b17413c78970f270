/* recommend.c -- ratings: which items a model would recommend to a user, and how high held-out items stand.
 *
 * All items are scored for one user at a time, in this process, by graphs that end at the prediction. Items
 * that the user has rated are left out. Of two items with one score, the one with the lower row stands
 * higher.
 *
 *     co_recommend   the k items that stand highest
 *     co_hit_rates   leave one out: each held-out rating of a split is a case. Its item competes with all items
 *                    that the user has not rated in any split; `place` is how many of those stand higher.
 *                        hit rate at k   the share of cases with place < k
 *                        NDCG at k       the mean of 1 / log2(place + 2) where place < k, and of 0 elsewhere
 *
 * Sums run over users and their items in the order of rows, so a state has one result. Cost: users * items
 * predictions.
 */
#include "train/evaluate_int.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/maths.h"
#include "train/recommend.h"

enum { CHUNK = 1024 }; /* items scored together */

/* The items that each user has rated: item[start[u]] ... item[start[u + 1] - 1]. */
struct history {
    uint32_t *start, *item;
};

struct scorer {
    co_plan *plan;
    exec_set set;
    struct offline offline;
    float *score;             /* [items] of the user in hand */
    float *unrated;           /* [items] the same, but -INFINITY where the user has rated it in some split */
    struct history all, held; /* of all splits; of the split to judge */
};

/* --- what users have rated ------------------------------------------------------------------------------ */
/* Calls `each` for the ratings of a split. A sample with a rating of 0 stands for an item that was not rated.
 * */
static void walk(const co_plan *plan, co_split split,
                 void (*each)(struct history *h, int32_t user, int32_t item), struct history *h)
{
    int32_t user[CHUNK], item[CHUNK];
    float stars[CHUNK];
    uint32_t id[CHUNK], n;

    for (uint32_t at = 0; at < plan->data->count[split]; at += n) {
        n = plan->data->count[split] - at < CHUNK ? plan->data->count[split] - at : CHUNK;
        for (uint32_t i = 0; i < n; i++)
            id[i] = at + i;
        plan->data->fill(plan->data, split, id, (co_slice_shape){.n = (int)n},
                         &(co_draw){.seed = (uint64_t)plan->cfg.seed},
                         &(co_slice_dst){.x = user, .items = item, .y = stars});
        for (uint32_t i = 0; i < n; i++)
            if (stars[i] != 0)
                each(h, user[i], item[i]);
    }
}

/* start[u + 2] counts the ratings of user u; then start[u + 1] is where the next one goes. */
static void count(struct history *h, int32_t user, int32_t item)
{
    (void)item;
    h->start[user + 2]++;
}

static void put(struct history *h, int32_t user, int32_t item)
{
    h->item[h->start[user + 1]++] = (uint32_t)item;
}

static co_err list_history(struct history *h, const co_plan *plan, co_split first, co_split last)
{
    size_t users = (size_t)plan->data->io.users, n = 0;

    for (int s = (int)first; s <= (int)last; s++)
        n += plan->data->count[s];
    h->start = co_array(users + 2, sizeof *h->start);
    h->item = co_array(n + 1, sizeof *h->item);
    if (!h->start || !h->item)
        return CO_ENOMEM;
    for (int s = (int)first; s <= (int)last; s++)
        walk(plan, (co_split)s, count, h);
    for (size_t u = 0; u < users; u++)
        h->start[u + 2] += h->start[u + 1];
    for (int s = (int)first; s <= (int)last; s++)
        walk(plan, (co_split)s, put, h);
    return CO_OK;
}

/* --- scores --------------------------------------------------------------------------------------------- */
static int chunk_at(const struct scorer *s, uint32_t at)
{
    uint32_t items = (uint32_t)s->plan->data->io.items;

    return items - at < CHUNK ? (int)(items - at) : CHUNK;
}

/* After a training the weights are in the arena. */
static void take_trained(co_plan *plan, float *state)
{
    const struct regions *regions = plan->regions;
    const float *from = plan->ema >= 0 ? regions->moment[plan->ema] : regions->state;

    for (int i = 0; i < plan->layout->n; i++) {
        const co_entry *entry = &plan->layout->entry[i];
        if (entry->kind != CO_KIND_COUNTER)
            memcpy(state + entry->offset, from + entry->offset, entry->count * sizeof *state);
    }
}

static co_err scorer_open(struct scorer *s, co_plan *plan, co_split split)
{
    const co_io *io = &plan->data->io;

    *s = (struct scorer){.plan = plan};
    if (!io->users)
        return co_fail(CO_EINPUT, "data=%s has no ratings: nothing can be recommended", plan->spec.data->name);
    for (uint32_t at = 0; at < (uint32_t)io->items; at += CHUNK)
        CO_TRY(exec_set_add(&s->set, plan, (co_slice_shape){.n = chunk_at(s, at)}, CO_MODE_PREDICT));
    CO_TRY(offline_open(&s->offline, plan, &s->set));
    if (plan->regions)
        take_trained(plan, s->offline.state);
    s->score = co_array((size_t)io->items, sizeof *s->score);
    s->unrated = co_array((size_t)io->items, sizeof *s->unrated);
    if (!s->score || !s->unrated)
        return CO_ENOMEM;
    CO_TRY(list_history(&s->all, plan, CO_SPLIT_TRAIN, CO_SPLIT_TEST));
    return split == CO_SPLIT_TRAIN ? CO_OK : list_history(&s->held, plan, split, split);
}

static void scorer_close(struct scorer *s)
{
    offline_close(&s->offline);
    exec_set_fini(&s->set);
    co_free(s->score);
    co_free(s->unrated);
    co_free(s->all.start);
    co_free(s->all.item);
    co_free(s->held.start);
    co_free(s->held.item);
}

/* The predictions of all items for this user, and those of items that the user has not rated. */
static void score_items(struct scorer *s, uint32_t user)
{
    uint32_t items = (uint32_t)s->plan->data->io.items;

    for (uint32_t at = 0; at < items; at += CHUNK) {
        const shape_exec *shaped = exec_for(&s->set, (co_slice_shape){chunk_at(s, at), 0});
        co_slice_dst dst;
        slice_dst(shaped, s->offline.bases.input, &dst);
        for (int i = 0; i < shaped->shape.n; i++) {
            ((int32_t *)dst.x)[i] = (int32_t)user;
            dst.items[i] = (int32_t)at + i;
        }
        if (dst.ids)
            memset(dst.ids, 0, (size_t)shaped->shape.n * sizeof *dst.ids);
        co_exec_run(shaped->exec, &s->offline.bases, &(co_run){.seed = (uint64_t)s->plan->cfg.seed}, NULL);
        memcpy(s->score + at, s->offline.bases.output, (size_t)shaped->shape.n * sizeof *s->score);
    }
    memcpy(s->unrated, s->score, items * sizeof *s->score);
    for (uint32_t i = s->all.start[user]; i < s->all.start[user + 1]; i++)
        s->unrated[s->all.item[i]] = -INFINITY;
}

/* --- held-out items ------------------------------------------------------------------------------------- */
/* How many items that the user has not rated stand higher than this one. */
static uint32_t place_of(const struct scorer *s, uint32_t item)
{
    uint32_t items = (uint32_t)s->plan->data->io.items, place = 0;
    float own = s->score[item];

    for (uint32_t i = 0; i < item; i++)
        place += s->unrated[i] >= own;
    for (uint32_t i = item + 1; i < items; i++)
        place += s->unrated[i] > own;
    return place;
}

static double log2_of(uint32_t n)
{
    return co_log((double)n) / co_log(2);
}

static void judge_user(struct scorer *s, uint32_t user, int k, co_hits *out)
{
    if (s->held.start[user] == s->held.start[user + 1])
        return;
    score_items(s, user);
    out->users++;
    for (uint32_t i = s->held.start[user]; i < s->held.start[user + 1]; i++) {
        uint32_t place = place_of(s, s->held.item[i]);
        out->cases++;
        out->hit_rate += place < (uint32_t)k;
        out->ndcg += place < (uint32_t)k ? 1 / log2_of(place + 2) : 0;
    }
}

co_err co_hit_rates(co_plan *plan, co_split split, int k, int64_t most, co_hits *out)
{
    struct scorer s;
    co_hits hits = {.k = k};
    co_err err = plan->data->count[split] ? scorer_open(&s, plan, split) : no_samples(plan, split);

    if (plan->data->count[split] == 0)
        return err;
    int64_t users = plan->data->io.users, room = most / plan->data->io.items + 1;
    int64_t step = most > 0 && users > room ? (users + room - 1) / room : 1;
    for (int64_t u = 0; u < users && !err; u += step)
        judge_user(&s, (uint32_t)u, k, &hits);
    scorer_close(&s);
    if (err)
        return err;
    hits.hit_rate = hits.cases ? hits.hit_rate / (double)hits.cases : 0;
    hits.ndcg = hits.cases ? hits.ndcg / (double)hits.cases : 0;
    *out = hits;
    return CO_OK;
}

/* --- recommendations ------------------------------------------------------------------------------------ */
/* Puts the item into the sorted list of at most k; returns its new length. */
static int insert(co_recommended *list, int n, int k, co_recommended one)
{
    int at = n;

    while (at > 0 && one.score > list[at - 1].score)
        at--;
    if (at == k)
        return n;
    n += n < k;
    memmove(list + at + 1, list + at, (size_t)(n - 1 - at) * sizeof *list);
    list[at] = one;
    return n;
}

co_err co_recommend(co_plan *plan, uint32_t user, int k, co_recommended *out, int *n)
{
    struct scorer s;
    co_err err = scorer_open(&s, plan, CO_SPLIT_TRAIN);

    if (!err) {
        CO_ASSERT(user < (uint32_t)plan->data->io.users, "the caller found the user's row");
        score_items(&s, user);
        *n = 0;
        for (uint32_t i = 0; i < (uint32_t)plan->data->io.items; i++)
            if (s.unrated[i] != -INFINITY)
                *n = insert(out, *n, k, (co_recommended){i, s.score[i]});
    }
    scorer_close(&s);
    return err;
}
