/* test_graph.c -- building graphs: a mistake is kept and reported with operator, name and shapes; leaves and
 * labels. */
#include <math.h>
#include <string.h>

#include "graph/rig.h"
#include "harness.h"

static co_node *P(co_graph *g, const char *name, co_shape s)
{
    return co_param(g, name, s, (co_init){CO_INIT_ONE, 0}, 0);
}
static co_node *X(co_graph *g, co_shape s)
{
    return co_input(g, "x", CO_F32, s);
}
static co_node *I(co_graph *g, co_shape s)
{
    return co_input(g, "i", CO_I32, s);
}

static void bad_linear(co_graph *g)
{
    co_linear(g, X(g, CO_SHAPE(8, 3072)), P(g, "fc2.weight", CO_SHAPE(768, 768)), NULL);
}
static void bad_bias(co_graph *g)
{
    co_linear(g, X(g, CO_SHAPE(8, 3)), P(g, "a.b.fc.weight", CO_SHAPE(5, 3)), P(g, "a.b.fc.bias", CO_SHAPE(3)));
}
static void bad_matmul(co_graph *g)
{
    co_matmul(g, X(g, CO_SHAPE(2, 3, 4)), P(g, "w", CO_SHAPE(3, 4, 5)), false, false);
}
static void bad_channels(co_graph *g)
{
    co_conv2d(g, X(g, CO_SHAPE(1, 3, 8, 8)), P(g, "conv1.weight", CO_SHAPE(4, 1, 3, 3)), NULL, 1, 1);
}
static void bad_kernel(co_graph *g)
{
    co_conv2d(g, X(g, CO_SHAPE(1, 1, 4, 4)), P(g, "conv1.weight", CO_SHAPE(4, 1, 7, 7)), NULL, 1, 1);
}
static void bad_stride(co_graph *g)
{
    co_conv2d(g, X(g, CO_SHAPE(1, 1, 4, 4)), P(g, "conv1.weight", CO_SHAPE(4, 1, 3, 3)), NULL, 0, 1);
}
static void bad_pool(co_graph *g)
{
    co_max_pool(g, X(g, CO_SHAPE(1, 1, 4, 4)), 2, 2, 2);
}
static void bad_norm(co_graph *g)
{
    co_layer_norm(g, X(g, CO_SHAPE(2, 5)), P(g, "ln.weight", CO_SHAPE(5)), P(g, "ln.bias", CO_SHAPE(4)), 1e-5f);
}
static void bad_heads(co_graph *g)
{
    co_node *x = X(g, CO_SHAPE(2, 3, 10));
    co_attention(g, x, x, x, NULL, 3, false);
}
static co_node *tokens(co_graph *g, const char *name, int dim)
{
    return co_input_ragged(g, name, CO_F32, CO_SHAPE(9, 4), dim);
}
static void ragged_moved(co_graph *g)
{
    co_reshape(g, tokens(g, "t", CO_RAGGED_X), CO_SHAPE(4, 9));
}
static void ragged_turned(co_graph *g)
{
    co_transpose(g, tokens(g, "t", CO_RAGGED_X), (int[]){1, 0});
}
static void ragged_mixed(co_graph *g)
{
    co_add(g, tokens(g, "t", CO_RAGGED_X), tokens(g, "u", CO_RAGGED_Y));
}
static void ragged_and_not(co_graph *g)
{
    co_add(g, tokens(g, "t", CO_RAGGED_X), X(g, CO_SHAPE(9, 4)));
}
static void ragged_joined(co_graph *g)
{
    co_concat(g, (co_node *[]){tokens(g, "t", CO_RAGGED_X), tokens(g, "u", CO_RAGGED_X)}, 2, 0);
}
static void ragged_pooled(co_graph *g)
{
    co_max_pool(g, co_reshape(g, tokens(g, "t", CO_RAGGED_X), CO_SHAPE(9, 1, 2, 2)), 2, 2, 0);
}
static void ragged_dropped(co_graph *g)
{
    co_dropout(g, tokens(g, "t", CO_RAGGED_X), co_input(g, "ids", CO_I64, CO_SHAPE(9)), 0.1f, "d");
}
static void bad_dtype(co_graph *g)
{
    co_embedding(g, P(g, "wte.weight", CO_SHAPE(7, 2)), X(g, CO_SHAPE(3)));
}
static void bad_add(co_graph *g)
{
    co_add(g, X(g, CO_SHAPE(2, 3)), P(g, "b", CO_SHAPE(2)));
}
static void bad_reshape(co_graph *g)
{
    co_reshape(g, X(g, CO_SHAPE(2, 3)), CO_SHAPE(4, -1));
}
static void bad_target(co_graph *g)
{
    co_cross_entropy(g, X(g, CO_SHAPE(8, 10)), I(g, CO_SHAPE(7)), 0, -100);
}
static void bad_smooth(co_graph *g)
{
    co_cross_entropy(g, X(g, CO_SHAPE(8, 10)), I(g, CO_SHAPE(8)), 1, -100);
}
static void bad_drop(co_graph *g)
{
    co_dropout(g, X(g, CO_SHAPE(8, 10)), NULL, 1, "block.drop");
}
static void drop_twice(co_graph *g)
{
    co_node *ids = co_input(g, "ids", CO_I64, CO_SHAPE(8)), *x = X(g, CO_SHAPE(8, 10));
    co_dropout(g, co_dropout(g, x, ids, 0.5f, "drop"), ids, 0.5f, "drop");
}
static void bad_slice(co_graph *g)
{
    co_slice(g, X(g, CO_SHAPE(8, 10)), 1, 4, 7);
}
static void bad_concat(co_graph *g)
{
    co_concat(g, (co_node *[]){X(g, CO_SHAPE(8, 10)), P(g, "cls", CO_SHAPE(7, 10))}, 2, 1);
}
static void bad_perm(co_graph *g)
{
    co_transpose(g, X(g, CO_SHAPE(8, 10)), (int[]){1, 1});
}
static void missing(co_graph *g)
{
    co_linear(g, X(g, CO_SHAPE(8, 10)), NULL, NULL);
}
static void twice(co_graph *g)
{
    P(g, "w", CO_SHAPE(3));
    P(g, "w", CO_SHAPE(4));
}
static void empty(co_graph *g)
{
    P(g, "w", CO_SHAPE(3, 0));
}
static void huge(co_graph *g)
{
    co_node *x = P(g, "w", CO_SHAPE(1 << 20, 1));
    co_matmul(g, x, x, false, true);
}
static void sparse_elsewhere(co_graph *g)
{
    co_node *t = co_param(g, "wte.weight", CO_SHAPE(7, 2), (co_init){CO_INIT_ONE, 0}, CO_PARAM_SPARSE);
    co_linear(g, X(g, CO_SHAPE(3, 2)), t, NULL);
}
static void sparse_twice(co_graph *g)
{
    co_node *t = co_param(g, "wte.weight", CO_SHAPE(7, 2), (co_init){CO_INIT_ONE, 0}, CO_PARAM_SPARSE);
    co_embedding(g, t, I(g, CO_SHAPE(3)));
    co_embedding(g, t, I(g, CO_SHAPE(3)));
}
static void sparse_viewed(co_graph *g)
{
    co_reshape(g, co_param(g, "wte.weight", CO_SHAPE(7, 2), (co_init){CO_INIT_ONE, 0}, CO_PARAM_SPARSE),
               CO_SHAPE(14));
}
static void norm_without_stat(co_graph *g)
{
    co_node *x = X(g, CO_SHAPE(4, 3)), *c = P(g, "bn.weight", CO_SHAPE(3));
    co_batch_norm(g, x, c, c, c, c, 1e-5f);
}
static void norm_stat_shared(co_graph *g)
{
    co_node *x = X(g, CO_SHAPE(4, 3)), *c = P(g, "bn.weight", CO_SHAPE(3));
    co_node *m = co_stat(g, "bn.running_mean", CO_SHAPE(3), (co_init){CO_INIT_ZERO, 0}, 0.1f);
    co_node *v = co_stat(g, "bn.running_var", CO_SHAPE(3), (co_init){CO_INIT_ONE, 0}, 0.1f);
    co_batch_norm(g, co_batch_norm(g, x, c, c, m, v, 1e-5f), c, c, m, v, 1e-5f);
}
static void loss_of_nothing(co_graph *g)
{
    co_graph_loss(g, X(g, CO_SHAPE(3)));
}
static void stat_of_float(co_graph *g)
{
    co_graph_stat(g, 0, X(g, CO_SCALAR));
}
static void soft_target(co_graph *g)
{
    co_bce(g, X(g, CO_SHAPE(3)), P(g, "t", CO_SHAPE(3)));
}
static void own_words(co_graph *g)
{
    co_graph_fail(g, "vit: image %d is not a multiple of patch %d", 65, 8);
}

static const struct {
    void (*build)(co_graph *g);
    const char *text;
} mistakes[] = {
    {bad_linear, "linear 'fc2': x [8,3072], weight [768,768]: inner sizes differ"},
    {bad_bias, "linear 'a.b.fc': x [8,3], weight [5,3], bias [3]: bias must be [5]"},
    {bad_matmul, "matmul 'w': a [2,3,4], b [3,4,5]: leading dimensions differ"},
    {bad_channels, "conv2d 'conv1': x [1,3,8,8], weight [4,1,3,3]: x has 3 channels, weight is for 1"},
    {bad_kernel,
     "conv2d 'conv1': x [1,1,4,4], weight [4,1,7,7]: the kernel is larger than the padded image (pad 1)"},
    {bad_stride, "stride 0, pad 1: stride must be at least 1"},
    {bad_pool, "max_pool#0: x [1,1,4,4]: pad 2 is more than half of the window 2x2"},
    {bad_norm, "layer_norm 'ln': x [2,5], gamma [5], beta [4]: beta must be [5]"},
    {bad_heads, "attention#0: q [2,3,10], k [2,3,10], v [2,3,10]: 3 heads do not divide 10 channels"},
    {ragged_moved, "reshape#0: x [9,4]: x is ragged: its first dimension stays as it is"},
    {ragged_turned, "transpose#0: x [9,4]: it cannot take values whose first dimension is ragged"},
    {ragged_mixed, "add#0: a [9,4], b [9,4]: b has another ragged dimension than the inputs before it"},
    {ragged_and_not, "b has another ragged dimension"},
    {ragged_joined, "it cannot take values whose first dimension is ragged"},
    {ragged_pooled, "max_pool#1: x [9,1,2,2]: it cannot take values whose first dimension is ragged"},
    {ragged_dropped, "x is ragged: co_ragged_dropout knows where a sample begins"},
    {bad_dtype, "embedding 'wte': table [7,2], idx [3]: idx must be I32"},
    {bad_add, "add 'b': a [2,3], b [2]: b's dimensions are not the last ones of a"},
    {bad_reshape, "reshape#0: x [2,3]: does not have the elements of [4,-1]"},
    {bad_target, "cross_entropy#0: logits [8,10], target I32 [7]: target must have"},
    {bad_smooth, "smoothing 1: must be in [0,1)"},
    {bad_drop, "dropout 'block.drop': p 1: must be in [0,1)"},
    {drop_twice, "dropout 'drop': its random stream is that of dropout 'drop'"},
    {bad_slice, "slice: x [8,10]: [4,11) does not lie in axis 1"},
    {bad_concat, "concat 'cls': x0 [8,10], x1 [7,10]: dimensions other than axis 1 differ"},
    {bad_perm, "transpose#0: x [8,10]: perm is not an order of the 2 dimensions"},
    {missing, "linear#0: x [8,10]: weight is missing (NULL)"},
    {twice, "'w' is declared twice and differently: F32 [3], then F32 [4]"},
    {empty, "'w': shape [3,0]: every dimension must be at least 1"},
    {huge, "matmul 'w': a [1048576,1], b [1048576,1]: the result has a dimension below 1 or more than 1 TiB"},
    {sparse_elsewhere,
     "linear 'wte': x [3,2], weight [7,2]: 'wte.weight' is row-sparse: only an operator that looks up rows"},
    {sparse_twice, "'wte.weight' is row-sparse: only one embedding may read it"},
    {sparse_viewed, "reshape 'wte': x [7,2]: 'wte.weight' is row-sparse: only an operator that looks up rows "
                    "(embedding, pair_score) may read it"},
    {norm_without_stat, "running_mean must be a statistic [3] made by co_stat"},
    {norm_stat_shared, "'bn.running_mean' is written by another batch norm already"},
    {loss_of_nothing, "loss: it depends on no parameter"},
    {stat_of_float, "stat 0: must be one F64"},
    {soft_target, "target must not depend on a parameter"},
    {own_words, "vit: image 65 is not a multiple of patch 8"},
};

TEST(mistakes_in_a_graph_are_told_with_operator_name_and_shapes)
{
    for (size_t i = 0; i < CO_COUNT(mistakes); i++) {
        co_graph *g;
        co_exec *e = NULL;
        CHECK_OK(co_graph_new(&g, true));
        mistakes[i].build(g);
        CHECK_FAILS(co_graph_error(g), CO_EINPUT, mistakes[i].text);
        co_errclear();
        CHECK_FAILS(co_exec_new(&e, g, rig_kernels("ref")), CO_EINPUT, mistakes[i].text);
        CHECK(!e, "an executor came out");
        co_graph_free(g);
    }
}

TEST(the_first_mistake_is_the_one_that_is_kept)
{
    co_graph *g;
    CHECK_OK(co_graph_new(&g, true));
    bad_linear(g);
    CHECK(co_relu(g, NULL) == NULL && P(g, "later", CO_SHAPE(2)) == NULL, "building goes on");
    CHECK(co_reshape(g, NULL, CO_SHAPE(2)) == NULL, "reshape goes on");
    bad_heads(g);
    own_words(g);
    co_counter(g, "n");
    co_graph_loss(g, NULL);
    co_graph_stat(g, 0, NULL);
    co_graph_output(g, NULL);
    CHECK_FAILS(co_graph_error(g), CO_EINPUT, "linear 'fc2'");
    CHECK(co_node_shape(NULL)->nd == -1, "the shape of nothing");
    co_graph_free(g);
}

TEST(a_training_graph_without_a_loss_is_refused)
{
    co_graph *g;
    co_exec *e;
    CHECK_OK(co_graph_new(&g, true));
    co_graph_output(g, co_relu(g, P(g, "w", CO_SHAPE(2))));
    CHECK_FAILS(co_exec_new(&e, g, rig_kernels("ref")), CO_EINPUT, "needs a loss");
    co_graph_free(g);
}

TEST(a_name_given_twice_is_one_leaf)
{
    co_graph *g;
    CHECK_OK(co_graph_new(&g, true));
    CHECK(P(g, "w", CO_SHAPE(2, 3)) == P(g, "w", CO_SHAPE(2, 3)), "parameter");
    CHECK(X(g, CO_SHAPE(4)) == X(g, CO_SHAPE(4)), "input");
    co_counter(g, "n");
    co_counter(g, "n");
    CHECK_OK(co_graph_error(g));
    co_graph_free(g);
}

/* Training and evaluation, and every slice shape, must agree on where things are. */
TEST(training_and_evaluation_of_a_model_have_one_layout_in_order_of_creation)
{
    co_graph *train = rig_net(true), *eval = rig_net(false);
    rig a, b;
    rig_open(&a, train, rig_kernels("ref"));
    rig_open(&b, eval, rig_kernels("ref"));
    CHECK_OK(co_layout_same(co_exec_layout(a.e), co_exec_layout(b.e)));
    const co_layout *l = co_exec_layout(a.e);
    const char *first[] = {"conv.weight",     "bn.weight",      "bn.bias",
                           "bn.running_mean", "bn.running_var", "bn.num_batches_tracked"};
    for (size_t i = 0; i < CO_COUNT(first); i++)
        CHECK(strcmp(l->entry[i].name, first[i]) == 0, "entry %zu is %s", i, l->entry[i].name);
    co_graph_free(train);
    co_graph_free(eval);
    rig_close(&a);
    rig_close(&b);
}

TEST(calls_are_named_after_their_parameters)
{
    co_graph *g = rig_net(true);
    rig r;
    const char *want[] = {"conv2d 'conv'", "batch_norm 'bn'", "conv2d_dw 'conv'", "dropout 'drop'",
                          "relu_grad#2"};
    rig_open(&r, g, rig_kernels("ref"));
    for (size_t k = 0; k < CO_COUNT(want); k++) {
        bool found = false;
        for (int i = 0; i < co_exec_info_of(r.e)->calls; i++)
            found = found || strcmp(co_exec_call_name(r.e, i), want[k]) == 0;
        CHECK(found, "no call is named %s", want[k]);
    }
    co_graph_free(g);
    rig_close(&r);
}
