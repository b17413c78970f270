/* own_model.c -- a program with its own model and data set, and all of `cohort train`.
 *
 *     make
 *     ./own_model train model=residual data=spirals                     a few seconds
 *     ./own_model train model=residual data=spirals model.width=128 data.turns=2 trainer.devices=2
 *     ./own_model train -m model=residual data=spirals model.blocks=1,2,4 seed=1,2        a sweep
 *     ./own_model train --help model                                    the keys below are in it
 *
 * The weights are the same to the last bit for any number of ranks, and for runs that were killed or
 * continued.
 */
#include <cohort.h>
#include <stdio.h>

/* --- the data set: arms of a spiral, a class each ------------------------------------------------------- */
struct spirals {
    int64_t n, arms, seed;
    double turns, noise;
};

static const cohort_option spiral_options[] = {
    {"n", COHORT_INT, offsetof(struct spirals, n), "2000", "points to train on", 8, 1e8, NULL},
    {"arms", COHORT_INT, offsetof(struct spirals, arms), "3", "arms: classes", 2, 100, NULL},
    {"seed", COHORT_INT, offsetof(struct spirals, seed), "0", "of the noise", 0, 1e15, NULL},
    {"turns", COHORT_FLOAT, offsetof(struct spirals, turns), "1", "how often an arm goes round", 0, 20, NULL},
    {"noise", COHORT_FLOAT, offsetof(struct spirals, noise), "0.02", "how far points stray from it", 0, 1, NULL},
    {0}};

/* Says what a sample is and how many there are. Later calls need only the settings, which live longer than
 * the data set. */
static cohort_err spirals_open(cohort_samples *out, const void *cfg)
{
    const struct spirals *s = cfg;

    out->task = COHORT_CLASSIFY;
    out->x = COHORT_SHAPE(2);
    out->classes = s->arms;
    out->count[COHORT_TRAIN] = s->n;
    out->count[COHORT_VAL] = out->count[COHORT_TEST] = s->n / 8;
    out->self = (void *)(uintptr_t)cfg;
    return COHORT_OK;
}

/* Makes one point. It depends on its number alone, so every rank on every machine makes the same point. */
static int spirals_fill(void *self, cohort_split split, uint32_t id, const cohort_draw *draw, void *x, void *y)
{
    const struct spirals *s = self;
    static const char *const streams[] = {"spirals.train", "spirals.val", "spirals.test"};
    float where, stray[2], *point = x;
    int32_t arm = (int32_t)(id % s->arms);

    (void)draw; /* nothing to vary from epoch to epoch */
    cohort_uniform(&where, 1, 0.1f, 1, (uint64_t)s->seed, streams[split], 0, id);
    cohort_normal(stray, 2, 0, (float)s->noise, (uint64_t)s->seed, streams[split], 1, id);
    double angle = 6.283185307179586 * (s->turns * where + (double)arm / (double)s->arms);
    point[0] = 3 * ((float)(where * cohort_cos(angle)) + stray[0]);
    point[1] = 3 * ((float)(where * cohort_sin(angle)) + stray[1]);
    *(int32_t *)y = arm;
    return 0;
}

static const cohort_dataset spirals = {.name = "spirals",
                                       .help = "points on the arms of a spiral",
                                       .options = spiral_options,
                                       .cfg_size = sizeof(struct spirals),
                                       .open = spirals_open,
                                       .fill = spirals_fill};

/* --- the model: residual blocks of two layers ----------------------------------------------------------- */
struct residual {
    int64_t width, blocks;
    int activation;
};

static const cohort_option residual_options[] = {
    {"width", COHORT_INT, offsetof(struct residual, width), "64", "numbers in a layer", 1, 65536, NULL},
    {"blocks", COHORT_INT, offsetof(struct residual, blocks), "2", "blocks of two layers", 0, 100, NULL},
    {"activation", COHORT_ENUM, offsetof(struct residual, activation), "gelu", "between layers", 0, 0,
     "relu|gelu"},
    {0}};

static cohort_node *act(const cohort_build *b, const struct residual *c, cohort_node *x)
{
    return c->activation == 0 ? cohort_relu(b->g, x) : cohort_gelu(b->g, x);
}

static cohort_node *residual_build(const cohort_build *b, const void *cfg)
{
    const struct residual *c = cfg;
    char name[32];

    if (b->task == COHORT_TOKENS)
        return cohort_graph_fail(b->g, "needs samples of numbers; the data is text");
    cohort_node *x = cohort_reshape(b->g, b->x, COHORT_SHAPE(b->n, -1)); /* [n, numbers of a sample] */
    cohort_node *h = cohort_nn_linear(b->g, x, c->width, true, "stem");  /* [n, width] */
    for (int64_t i = 0; i < c->blocks; i++) {
        snprintf(name, sizeof name, "block%d.fc1", (int)i);
        cohort_node *up = cohort_nn_linear(b->g, act(b, c, h), c->width, true, name);
        snprintf(name, sizeof name, "block%d.fc2", (int)i);
        cohort_node *down = cohort_nn_linear(b->g, act(b, c, up), c->width, true, name);
        h = cohort_add(b->g, h, down); /* [n, width] */
    }
    return cohort_nn_linear(b->g, act(b, c, h), b->outputs, true, "head"); /* [n, outputs] */
}

static const cohort_model residual = {.name = "residual",
                                      .help = "fully connected layers with shortcuts around them",
                                      .options = residual_options,
                                      .cfg_size = sizeof(struct residual),
                                      .build = residual_build};

int main(int argc, char **argv)
{
    static const cohort_model *const models[] = {&residual, NULL};
    static const cohort_dataset *const datasets[] = {&spirals, NULL};

    return cohort_main(argc, argv, &(cohort_parts){.models = models, .datasets = datasets});
}
