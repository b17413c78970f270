/* test_token_cut.c -- how a batch of text is cut into slices: by tokens, a function of lengths and S. */
#include <string.h>

#include "harness.h"
#include "train/plan_int.h"

enum { MOST = 64 };

static int lengths[MOST];

static int length(const co_dataset *d, co_split s, uint32_t id)
{
    return lengths[id];
}

static co_plan plan_of(co_dataset *data, uint32_t n, int slices)
{
    co_plan plan = {.data = data, .batch = n, .slices = slices};

    *data = (co_dataset){.io = {.task = CO_TASK_LM}, .count = {n}, .length = length};
    plan.units.steps_per_epoch = 1;
    for (int i = 0; i < CUTS; i++)
        plan.cut[i] = co_cut_make(n, n, slices, false);
    return plan;
}

/* The slices as "9|2 2 2 5|5 5". */
static void slices_are(const int *of, uint32_t n, int slices, const char *want)
{
    co_dataset data;
    co_plan plan = plan_of(&data, n, slices);
    uint32_t ids[MOST], lo, hi;
    char text[512] = "";

    memcpy(lengths, of, n * sizeof *of);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = i;
    for (int leaf = 0; leaf < slices; leaf++) {
        slice_range(&plan, ids, 1, leaf, &lo, &hi);
        if (leaf)
            strcat(text, "|");
        for (uint32_t i = lo; i < hi; i++)
            sprintf(text + strlen(text), i > lo ? " %d" : "%d", lengths[i]);
    }
    CHECK(strcmp(text, want) == 0, "\"%s\", not \"%s\"", text, want);
}
#define SLICES(slices, want, ...)                                                                            \
    slices_are((int[]){__VA_ARGS__}, (uint32_t)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), slices, want)

TEST(a_batch_of_text_is_cut_by_tokens_as_the_order_page_says)
{
    SLICES(4, "9|2 2 2 5|5 5|7 1", 9, 2, 2, 2, 5, 5, 5, 7, 1);
    SLICES(2, "5 5|5 5", 5, 5, 5, 5);
    SLICES(2, "1 1 1 1|9", 1, 1, 1, 1, 9);
    SLICES(1, "3 1 4", 3, 1, 4);
    SLICES(4, "90|1|1|1", 90, 1, 1, 1); /* every slice has a sample */
    SLICES(4, "1|1|1|90", 1, 1, 1, 90);
    SLICES(4, "1|90|1|1 1", 1, 90, 1, 1, 1);
    SLICES(4, "|7||8", 7, 8); /* fewer samples than slices: as by samples */
}

/* The same samples as a cut by samples has, in order; no slice heavier than its share and a sample; none
 * empty. */
TEST(every_sample_of_a_batch_of_text_is_in_one_slice_and_slices_weigh_the_same)
{
    uint64_t rng = 5;

    for (int round = 0; round < 2000; round++) {
        co_dataset data;
        uint32_t n = 1 + test_u32(&rng) % (MOST - 1), ids[MOST], next = 0, lo, hi;
        int slices = 1 << test_u32(&rng) % 6, total = 0, most = 0;
        co_plan plan = plan_of(&data, n, slices);
        for (uint32_t i = 0; i < n; i++) {
            ids[i] = i;
            lengths[i] = 1 + (int)(test_u32(&rng) % (test_u32(&rng) % 50 + 1));
            total += lengths[i];
            most = lengths[i] > most ? lengths[i] : most;
        }
        for (int leaf = 0; leaf < slices; leaf++) {
            int weight = 0;
            slice_range(&plan, ids, 1, leaf, &lo, &hi);
            CHECK((lo == hi) == co_cut_is_empty(&plan.cut[0], leaf, leaf + 1), "leaf %d of %d, n %u", leaf,
                  slices, n);
            CHECK(lo == hi || lo == next, "leaf %d begins at %u, not %u", leaf, lo, next);
            next = lo < hi ? hi : next;
            for (uint32_t i = lo; i < hi; i++)
                weight += lengths[i];
            CHECK(weight <= total / slices + 1 + most, "leaf %d of %d weighs %d of %d", leaf, slices, weight,
                  total);
        }
        CHECK(next == n, "%u of %u samples", next, n);
        CHECK_OK(room_for_training(&plan));
        for (int leaf = 0; leaf < slices; leaf++) {
            slice_range(&plan, ids, 1, leaf, &lo, &hi);
            co_slice_shape shape = co_slice_of(&data, CO_SPLIT_TRAIN, ids + lo, (int)(hi - lo));
            CHECK(shape.n <= plan.room.n && shape.tokens <= plan.room.tokens,
                  "%d samples, %d tokens in a room of %d, %d", shape.n, shape.tokens, plan.room.n,
                  plan.room.tokens);
        }
    }
}
