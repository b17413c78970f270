/* attention.c -- a model of one's own with attention, on samples of different lengths.
 *
 *     make
 *     ./attention train model=reader data=recall                        a few seconds
 *     ./attention train model=reader data=recall model.heads=1 data.longest=30 trainer.devices=2
 *
 * A sample of `recall` is a row of random tokens; at each place the model must say the first one. Only
 * attention can look that far back. The samples of a slice lie end to end, without padding: b->x has a row
 * per token, and b->samples says where each sample begins.
 */
#include <cohort.h>

/* --- the data set --------------------------------------------------------------------------------------- */
struct recall {
    int64_t n, tokens, longest;
};

static const cohort_option recall_options[] = {
    {"n", COHORT_INT, offsetof(struct recall, n), "600", "samples to train on", 8, 1e8, NULL},
    {"tokens", COHORT_INT, offsetof(struct recall, tokens), "5", "different tokens", 2, 1000, NULL},
    {"longest", COHORT_INT, offsetof(struct recall, longest), "12", "the longest sample", 1, 10000, NULL},
    {0}};

static cohort_err recall_open(cohort_samples *out, const void *cfg)
{
    const struct recall *r = cfg;

    out->task = COHORT_TOKENS;
    out->classes = r->tokens;
    out->max_len = r->longest;
    out->count[COHORT_TRAIN] = r->n;
    out->count[COHORT_VAL] = out->count[COHORT_TEST] = r->n / 8;
    out->self = (void *)(uintptr_t)cfg;
    return COHORT_OK;
}

static const char *const streams[] = {"recall.train", "recall.val", "recall.test"};

static int recall_length(void *self, cohort_split split, uint32_t id)
{
    const struct recall *r = self;
    float u;

    cohort_uniform(&u, 1, 0, 1, 0, streams[split], 0, id);
    return 1 + (int)((double)u * (double)r->longest) % (int)r->longest;
}

static int recall_fill(void *self, cohort_split split, uint32_t id, const cohort_draw *draw, void *x, void *y)
{
    const struct recall *r = self;
    int32_t *token = x, *first = y;

    (void)draw; /* nothing to vary from epoch to epoch */
    for (int i = 0, n = recall_length(self, split, id); i < n; i++) {
        float u;
        cohort_uniform(&u, 1, 0, 1, 0, streams[split], 1 + (uint32_t)i, id);
        token[i] = (int32_t)((double)u * (double)r->tokens) % (int32_t)r->tokens;
        first[i] = token[0];
    }
    return 0;
}

static const cohort_dataset recall = {.name = "recall",
                                      .help = "rows of tokens; the first one is to be remembered",
                                      .options = recall_options,
                                      .cfg_size = sizeof(struct recall),
                                      .open = recall_open,
                                      .fill = recall_fill,
                                      .length = recall_length};

/* --- the model: tokens and positions, one layer of attention, a head ------------------------------------ */
struct reader {
    int64_t width, heads;
    double dropout;
};

static const cohort_option reader_options[] = {
    {"width", COHORT_INT, offsetof(struct reader, width), "32", "numbers for a token", 1, 65536, NULL},
    {"heads", COHORT_INT, offsetof(struct reader, heads), "2", "attention heads; they divide width", 1, 1024,
     NULL},
    {"dropout", COHORT_FLOAT, offsetof(struct reader, dropout), "0.05", "share dropped", 0, 0.9, NULL},
    {0}};

static cohort_node *reader_build(const cohort_build *b, const void *cfg)
{
    const struct reader *c = cfg;
    cohort_graph *g = b->g;

    if (b->task != COHORT_TOKENS)
        return cohort_graph_fail(g, "needs tokens");
    cohort_node *token =
        cohort_nn_embedding(g, b->x, b->outputs, c->width, false, "token"); /* [tokens, width] */
    cohort_node *place = cohort_positions(g, &b->samples, b->x);            /* [tokens] */
    cohort_node *wave = cohort_sinusoids(g, place, c->width);
    cohort_node *x = cohort_add(g, token, wave);
    cohort_node *h = cohort_nn_layer_norm(g, x, "norm");
    cohort_node *q = cohort_nn_linear(g, h, c->width, true, "query");
    cohort_node *k = cohort_nn_linear(g, h, c->width, true, "key");
    cohort_node *v = cohort_nn_linear(g, h, c->width, true, "value");
    h = cohort_ragged_attention(g, q, k, v, &b->samples, &b->samples, (int)c->heads, true, 0, "attention");
    h = cohort_ragged_dropout(g, h, &b->samples, (float)c->dropout, "drop");
    x = cohort_add(g, x, h);
    return cohort_nn_linear(g, x, b->outputs, true, "head"); /* [tokens, outputs] */
}

static const cohort_model reader = {.name = "reader",
                                    .help = "one layer of attention",
                                    .options = reader_options,
                                    .cfg_size = sizeof(struct reader),
                                    .build = reader_build};

int main(int argc, char **argv)
{
    static const cohort_model *const models[] = {&reader, NULL};
    static const cohort_dataset *const datasets[] = {&recall, NULL};

    return cohort_main(argc, argv, &(cohort_parts){.models = models, .datasets = datasets});
}
