/* test_recommend.c -- recommendations and hit rates against the plain way: the predictions of a split, one by
 * one, and the whole list of what each user has not rated. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/movielens.h"
#include "harness.h"
#include "train/stage.h"
#include "train/predict.h"
#include "train/recommend.h"

enum { USERS = 30, ITEMS = 1500, K = 200, SAMPLES = 400 + 50 + 50 }; /* items: more than are scored at once */

static const char *const words[] = {
    "model=factors",   "data=fake_ratings", "optim=adamw",        "model.spread=1",     "data.users=30",
    "data.items=1500", "data.count=400",    "data.batch_size=16", "data.eval_slice=16", NULL};

static struct scene {
    co_plan *plan;
    struct rated all[SAMPLES];
    bool rated[USERS][ITEMS];
    co_recommended list[USERS][ITEMS]; /* all that the user has not rated, best first */
    int n[USERS];
    double hit_rate, ndcg;
} * scene;

static void open_scene(stage *g)
{
    scene = calloc(1, sizeof *scene);
    stage_open(g, words);
    CHECK_OK(co_plan_to_look(&scene->plan, &g->spec));
    rated_all(scene->plan->data, scene->all);
    for (int i = 0; i < SAMPLES; i++)
        scene->rated[scene->all[i].user][scene->all[i].item] = true;
    for (uint32_t u = 0; u < USERS; u++)
        CHECK_OK(co_recommend(scene->plan, u, ITEMS, scene->list[u], &scene->n[u]));
}

static void close_scene(stage *g)
{
    co_plan_free(scene->plan);
    stage_close(g);
    free(scene);
}

TEST(recommended_are_all_items_that_a_user_has_not_rated_best_first)
{
    stage g;
    co_recommended few[K];
    int n;

    open_scene(&g);
    for (int u = 0; u < USERS; u++) {
        int unrated = 0;
        for (int i = 0; i < ITEMS; i++)
            unrated += !scene->rated[u][i];
        CHECK(scene->n[u] == unrated, "%d recommended of %d", scene->n[u], unrated);
        for (int i = 0; i < scene->n[u]; i++) {
            const co_recommended *at = &scene->list[u][i];
            CHECK(!scene->rated[u][at->item], "user %d has rated item %u", u, at->item);
            CHECK(i == 0 || at->score <= at[-1].score, "place %d stands too low", i);
        }
        CHECK_OK(co_recommend(scene->plan, (uint32_t)u, K, few, &n));
        CHECK(n == K && memcmp(few, scene->list[u], sizeof few) == 0, "the first %d are others", K);
    }
    close_scene(&g);
}

static void judge(void *ctx, const co_prediction *p)
{
    const struct rated *own = &scene->all[400 + p->id]; /* a sample of val */
    int place = 0;

    (void)ctx;
    while (place < scene->n[own->user] && scene->list[own->user][place].score > p->values[0])
        place++;
    scene->hit_rate += place < K;
    scene->ndcg += place < K ? 1 / log2(place + 2) : 0;
}

TEST(hit_rate_and_ndcg_are_those_of_the_predictions_one_by_one)
{
    stage g;
    co_hits hits;

    open_scene(&g);
    CHECK_OK(co_predict(scene->plan, CO_SPLIT_VAL, -1, judge, NULL));
    CHECK_OK(co_hit_rates(scene->plan, CO_SPLIT_VAL, K, 0, &hits));
    test_note("hit rate %.4f, ndcg %.4f", hits.hit_rate, hits.ndcg);
    CHECK(scene->hit_rate > 0 && scene->hit_rate < 50, "%g hits: too easy or too hard", scene->hit_rate);
    CHECK(hits.cases == 50 && hits.users <= USERS, "%d cases of %d users", (int)hits.cases, (int)hits.users);
    CHECK(hits.hit_rate == scene->hit_rate / 50, "%g, not %g", hits.hit_rate, scene->hit_rate / 50);
    CHECK(fabs(hits.ndcg - scene->ndcg / 50) < 1e-12, "%g, not %g", hits.ndcg, scene->ndcg / 50);
    CHECK_OK(co_hit_rates(scene->plan, CO_SPLIT_VAL, ITEMS, 0, &hits));
    CHECK(hits.hit_rate == 1, "with a list of all items %g are hits", hits.hit_rate);
    CHECK_OK(co_hit_rates(scene->plan, CO_SPLIT_VAL, K, 5 * ITEMS, &hits));
    CHECK(hits.users > 0 && hits.users <= 6, "%d users for five times %d predictions", (int)hits.users, ITEMS);
    close_scene(&g);
}

static co_err try_hits(void *plan)
{
    co_hits hits;

    return co_hit_rates(plan, CO_SPLIT_TEST, K, 0, &hits);
}

TEST(recommending_says_so_when_memory_is_out)
{
    stage g;

    open_scene(&g);
    test_each_alloc_fails(try_hits, scene->plan);
    close_scene(&g);
}

TEST(nothing_is_recommended_without_ratings)
{
    static const char *const digits[] = {"model=mlp", "data=digits", "optim=adamw", NULL};
    stage g;
    co_plan *plan;
    co_recommended one;
    int n;

    stage_open(&g, digits);
    CHECK_OK(co_plan_to_look(&plan, &g.spec));
    CHECK_FAILS(co_recommend(plan, 0, 1, &one, &n), CO_EINPUT, "data=digits has no ratings");
    co_plan_free(plan);
    stage_close(&g);
}
