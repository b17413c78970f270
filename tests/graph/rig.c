#include "graph/rig.h"

#include <stdlib.h>
#include <string.h>

#include "graph/graph_int.h"
#include "harness.h"

static void *room(size_t bytes)
{
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN + ALIGN;
    void *p = aligned_alloc(ALIGN, bytes);
    memset(p, 0, bytes);
    return p;
}

const co_kernels *rig_kernels(const char *level)
{
    const co_kernels *k;
    CHECK_OK(co_kernels_get(&k, level));
    return k;
}

void rig_open(rig *r, co_graph *g, const co_kernels *k)
{
    rig_open_team(r, g, k, 1, 0);
}

void rig_open_team(rig *r, co_graph *g, const co_kernels *k, int threads, int64_t grain)
{
    *r = (rig){.k = k, .run = {.seed = 7, .step = 3}};
    CHECK_OK(co_exec_new_team(&r->e, g, k, threads, grain));
    const co_exec_info *info = co_exec_info_of(r->e);
    const co_layout *l = co_exec_layout(r->e);
    r->state_len = l->count * (size_t)k->real_size;
    r->leaf_len = l->count * (size_t)k->real_size;
    r->b = (co_bases){.state = room(r->state_len),
                      .leaf = room(r->leaf_len),
                      .input = room(info->input_bytes),
                      .output = room(info->output_bytes),
                      .stat = r->stat,
                      .work_bytes = info->work_bytes};
    CHECK(l->lists <= RIG_LISTS, "%d lists", l->lists);
    for (int i = 0; i < l->n; i++)
        if (l->entry[i].sparse) {
            size_t cap = co_exec_rows(r->e, l->entry[i].list), width = co_entry_width(&l->entry[i]);
            r->rows[l->entry[i].list] =
                (co_rows){room(4), room(cap * 4), room(cap * width * (size_t)k->real_size)};
        }
    r->b.rows = r->rows;
    CHECK_OK(co_team_start(&r->b.team, threads, CO_TEAM_SPIN, false));
    if (k->space)
        CHECK_OK(k->space->open(&r->b.work, info->work_bytes));
    else
        r->b.work = room(info->work_bytes);
}

void rig_close(rig *r)
{
    if (r->k->space)
        r->k->space->close(r->b.work, r->b.work_bytes);
    else
        free(r->b.work);
    free(r->b.state);
    free(r->b.leaf);
    for (int i = 0; i < RIG_LISTS; i++) {
        free(r->rows[i].count);
        free(r->rows[i].row);
        free(r->rows[i].value);
    }
    free(r->b.input);
    free(r->b.output);
    co_team_stop(r->b.team);
    co_exec_free(r->e);
}

double rig_get(const rig *r, const void *base, size_t i)
{
    return r->k->real_size == 8 ? ((const double *)base)[i] : (double)((const float *)base)[i];
}

void rig_set(rig *r, void *base, size_t i, double x)
{
    if (r->k->real_size == 8)
        ((double *)base)[i] = x;
    else
        ((float *)base)[i] = (float)x;
}

double rig_leaf(const rig *r, const char *name, size_t i)
{
    const co_entry *e = co_layout_find(co_exec_layout(r->e), name);
    CHECK(e, "no entry %s", name);
    return rig_get(r, r->b.leaf, e->offset + i);
}

void *rig_input(const rig *r, const char *name)
{
    size_t offset;
    co_dtype t;
    co_shape s;
    CHECK_OK(co_exec_input(r->e, name, &offset, &t, &s));
    return (char *)r->b.input + offset;
}

/* Number i of "at 0 2 5". */
static int32_t listed(const char *name, int64_t i)
{
    char *at = (char *)name + 2;
    long n = 0;

    for (; i >= 0; i--)
        n = strtol(at, &at, 10);
    return (int32_t)n;
}

static int32_t whole(const char *name, int64_t i, uint64_t *seed)
{
    uint32_t n = 0, u = test_u32(seed);
    if (strncmp(name, "at ", 3) == 0)
        return listed(name, i);
    if (sscanf(name, "below %u", &n) == 1)
        return (int32_t)(u % n);
    if (sscanf(name, "upto %u", &n) == 1)
        return (int32_t)(u % (n + 1));
    CHECK(sscanf(name, "maybe %u", &n) == 1, "what is in input '%s'?", name);
    return u % 3 ? (int32_t)(u / 3 % n) : -100;
}

void rig_fill(rig *r, uint64_t seed)
{
    const co_layout *l = co_exec_layout(r->e);
    for (int k = 0; k < l->n; k++)
        for (size_t i = 0; l->entry[k].kind != CO_KIND_COUNTER && i < l->entry[k].count; i++)
            rig_set(r, r->b.state, l->entry[k].offset + i, (double)test_unit(&seed));
    for (int k = 0; k < r->e->n_input; k++) {
        const struct input *in = &r->e->input[k];
        char *p = (char *)r->b.input + in->offset;
        for (int64_t i = 0, n = co_shape_count(&in->shape); i < n; i++) {
            if (in->dtype == CO_F32)
                rig_set(r, p, (size_t)i, (double)test_unit(&seed));
            else if (in->dtype == CO_I64)
                ((int64_t *)p)[i] = 7 * i + 3;
            else
                ((int32_t *)p)[i] = whole(in->name, i, &seed);
        }
    }
}

void rig_poison(rig *r, unsigned char byte)
{
    if (!r->k->space)
        memset(r->b.work, byte, r->b.work_bytes);
}

static void spread_rows(rig *r, const co_entry *e)
{
    const co_rows *list = &r->rows[e->list];
    size_t real = (size_t)r->k->real_size, width = co_entry_width(e);
    char *at = (char *)r->b.leaf + e->offset * real;

    memset(at, 0, e->count * real);
    for (uint32_t i = 0; i < *list->count; i++)
        memcpy(at + list->row[i] * width * real, (const char *)list->value + i * width * real, width * real);
}

void rig_run(rig *r)
{
    const co_layout *l = co_exec_layout(r->e);

    co_exec_run(r->e, &r->b, &r->run, NULL);
    for (int i = 0; r->b.leaf && i < l->n; i++)
        if (l->entry[i].sparse)
            spread_rows(r, &l->entry[i]);
}

/* --- the net ----------------------------------------------------------------------------------------- */

enum { N = 3, C = 4, WORDS = 5 };

static co_node *param(co_graph *g, const char *name, co_shape s)
{
    return co_param(g, name, s, (co_init){CO_INIT_UNIFORM, 0.5f}, 0);
}

/* Leaves are made one statement at a time: C does not say in which order arguments are evaluated, and the
 * layout is in order of creation. */
static co_node *image_part(co_graph *g) /* [N,16,C] */
{
    co_node *x = co_input(g, "image", CO_F32, CO_SHAPE(N, 2, 8, 8));
    x = co_conv2d(g, x, param(g, "conv.weight", CO_SHAPE(C, 2, 3, 3)), NULL, 1, 1);
    co_node *gamma = param(g, "bn.weight", CO_SHAPE(C));
    co_node *beta = param(g, "bn.bias", CO_SHAPE(C));
    co_node *mean = co_stat(g, "bn.running_mean", CO_SHAPE(C), (co_init){CO_INIT_ZERO, 0}, 0.1f);
    co_node *var = co_stat(g, "bn.running_var", CO_SHAPE(C), (co_init){CO_INIT_ONE, 0}, 0.1f);
    co_counter(g, "bn.num_batches_tracked");
    x = co_batch_norm(g, x, gamma, beta, mean, var, 1e-5f);
    x = co_max_pool(g, co_relu(g, x), 2, 2, 0); /* [N,C,4,4] */
    x = co_transpose(g, x, (int[]){0, 2, 3, 1});
    return co_reshape(g, x, CO_SHAPE(N, -1, C));
}

static co_node *word_part(co_graph *g) /* [N,WORDS,C] */
{
    co_node *idx = co_input(g, "below 9", CO_I32, CO_SHAPE(N, WORDS));
    co_node *sparse =
        co_param(g, "words.weight", CO_SHAPE(19, C), (co_init){CO_INIT_NORMAL, 1}, CO_PARAM_SPARSE);
    co_node *x = co_embedding(g, sparse, idx);
    x = co_add(g, x, co_embedding(g, param(g, "tied.weight", CO_SHAPE(9, C)), idx));
    return co_add(g, x, param(g, "pos", CO_SHAPE(WORDS, C)));
}

static co_node *attend(co_graph *g, co_node *image, co_node *words) /* [N,WORDS,C] */
{
    co_node *ids = co_input(g, "ids", CO_I64, CO_SHAPE(N));
    co_node *lens = co_input(g, "upto 16", CO_I32, CO_SHAPE(N));
    co_node *w = param(g, "kv.weight", CO_SHAPE(C, C)), *b = param(g, "kv.bias", CO_SHAPE(C));
    co_node *gamma = param(g, "ln.weight", CO_SHAPE(C)), *beta = param(g, "ln.bias", CO_SHAPE(C));
    co_node *q = co_layer_norm(g, words, gamma, beta, 1e-5f), *k = co_linear(g, image, w, b);
    co_node *y = co_attention(g, q, k, image, lens, 2, false);
    return co_add(g, words, co_dropout(g, y, ids, 0.25f, "drop"));
}

co_graph *rig_net(bool training)
{
    co_graph *g;
    CHECK_OK(co_graph_new(&g, training));
    co_node *image = image_part(g), *words = word_part(g);
    co_node *y = attend(g, image, words);
    y = co_concat(g, (co_node *[]){y, co_slice(g, image, 1, 2, 3)}, 2, 1); /* [N,WORDS+3,C] */
    y = co_gelu(g, co_mul(g, y, param(g, "gain", CO_SHAPE(C))));
    y = co_matmul(g, y, param(g, "tied.weight", CO_SHAPE(9, C)), false, true); /* [N,WORDS+3,9] */
    co_node *target = co_input(g, "maybe 9", CO_I32, CO_SHAPE(N, WORDS + 3));
    co_node *rows = co_cross_entropy(g, y, target, 0.1f, -100);
    co_graph_loss(g, rows);
    co_graph_stat(g, 0, co_sum_all(g, rows));
    co_graph_stat(g, 1, co_count_valid(g, target, -100));
    co_graph_stat(g, 2, co_correct(g, y, target, -100, 2));
    co_graph_output(g, y);
    param(g, "unused", CO_SHAPE(3));
    return g;
}
