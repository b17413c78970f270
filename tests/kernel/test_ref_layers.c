/* Small cases whose answers can be checked by hand, on every provider: norms, pooling, activations, dropout,
 * attention, losses, metrics. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "harness.h"
#include "kernel/cases.h"

static const float count[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
static const float zeros[16], ones[] = {1, 1, 1, 1, 1, 1, 1, 1};

#define LN2 0.69314718f
#define LN3 1.09861229f
#define LN6 1.79175947f

TEST(batch_norm_by_hand)
{
    /* mean 2.5, variance 1.25; eps 1 makes rstd 2/3 */
    static const float gamma[] = {3}, beta[] = {1}, y[] = {-2, 0, 2, 4};
    static const float mean[] = {2.5f}, rstd[] = {2.0f / 3}, wmean[] = {5}, wvar[] = {10.0f / 3};

    EXPECT(CO_OP_BATCH_NORM, (.eps = 1), 1e-6, (F32(count, 2, 1, 2), F32(gamma, 1), F32(beta, 1)),
           (F32(y, 2, 1, 2), F32(mean, 1), F32(rstd, 1), F32(wmean, 1), F32(wvar, 1)));
}

TEST(batch_norm_keeps_channels_apart)
{
    static const float x[] = {1, 10, 3, 30}, y[] = {-1, -1, 1, 1}; /* [2,2] */
    static const float mean[] = {2, 20}, rstd[] = {1, 0.1f}, wmean[] = {4, 40}, wvar[] = {4, 400};

    EXPECT(CO_OP_BATCH_NORM, (0), 1e-6, (F32(x, 2, 2), F32(ones, 2), F32(zeros, 2)),
           (F32(y, 2, 2), F32(mean, 2), F32(rstd, 2), F32(wmean, 2), F32(wvar, 2)));
}

TEST(batch_norm_of_one_value_has_no_variance)
{
    static const float x[] = {5}, gamma[] = {9}, beta[] = {7}, rstd[] = {0.5f};

    EXPECT(CO_OP_BATCH_NORM, (.eps = 4), 0, (F32(x, 1, 1), F32(gamma, 1), F32(beta, 1)),
           (F32(beta, 1, 1), F32(x, 1), F32(rstd, 1), F32(x, 1), F32(zeros, 1)));
}

TEST(batch_norm_in_evaluation_uses_the_running_statistics)
{
    static const float x[] = {3, 0, 5, 0}, gamma[] = {4, 1}, beta[] = {10, 0}, mean[] = {1, 2}, var[] = {3, 15};
    static const float y[] = {14, -0.5f, 18, -0.5f};

    EXPECT(CO_OP_BATCH_NORM_EVAL, (.eps = 1), 1e-6,
           (F32(x, 2, 2), F32(gamma, 2), F32(beta, 2), F32(mean, 2), F32(var, 2)), (F32(y, 2, 2)));
}

TEST(layer_norm_by_hand)
{
    static const float x[] = {1, 3, 10, 10}, gamma[] = {2, 4}, beta[] = {0, 1}; /* variances 1 and 0 */
    static const float y[] = {-1, 3, 0, 1}, mean[] = {2, 10}, rstd[] = {0.5f, 0.57735027f};

    EXPECT(CO_OP_LAYER_NORM, (.eps = 3), 1e-6, (F32(x, 2, 2), F32(gamma, 2), F32(beta, 2)),
           (F32(y, 2, 2), F32(mean, 2), F32(rstd, 2)));
}

TEST(norms_do_not_lose_the_variance_next_to_a_large_mean)
{
    static const float x[] = {10000, 10001, 10002, 10003}; /* mean 10001.5, variance 1.25 */
    static const float mean[] = {10001.5f}, rstd[] = {0.89442719f};
    static const float y[] = {-1.3416408f, -0.4472136f, 0.4472136f, 1.3416408f};

    EXPECT(CO_OP_LAYER_NORM, (0), 1e-5, (F32(x, 1, 4), F32(ones, 4), F32(zeros, 4)),
           (F32(y, 1, 4), F32(mean, 1), F32(rstd, 1)));
}

TEST(max_pool_takes_the_first_of_equals)
{
    static const float y[] = {1};
    static const int32_t idx[] = {0};

    EXPECT(CO_OP_MAX_POOL, (.kh = 2, .kw = 2, .stride = 2), 0, (F32(ones, 1, 1, 2, 2)),
           (F32(y, 1, 1, 1, 1), I32(idx, 1, 1, 1, 1)));
}

TEST(max_pool_padding_never_wins)
{
    static const float x[] = {-1, -2, -3, -4, -5, -6, -7, -8, -9}, y[] = {-1, -2, -4, -5};
    static const int32_t idx[] = {0, 1, 3, 4};

    EXPECT(CO_OP_MAX_POOL, (.kh = 3, .kw = 3, .stride = 2, .pad = 1), 0, (F32(x, 1, 1, 3, 3)),
           (F32(y, 1, 1, 2, 2), I32(idx, 1, 1, 2, 2)));
}

TEST(max_pool_gradient_goes_to_the_winner_as_often_as_it_won)
{
    static const float dy[] = {1, 10, 100, 1000}, dx[] = {1, 110, 0, 0, 1000, 0, 0, 0, 0};
    static const int32_t idx[] = {0, 1, 1, 4};

    EXPECT(CO_OP_MAX_POOL_GRAD, (.kh = 3, .kw = 3, .stride = 2, .pad = 1), 0,
           (F32(dy, 1, 1, 2, 2), I32(idx, 1, 1, 2, 2)), (F32(dx, 1, 1, 3, 3)));
}

TEST(avg_pool_divides_by_the_whole_window)
{
    static const float y[] = {3, 4, 6, 7}, padded[] = {0.25f, 1.25f, 2.75f, 7};
    static const float dy[] = {4, 8, 12, 16}, dx[] = {1, 3, 2, 4, 10, 6, 3, 7, 4};

    EXPECT(CO_OP_AVG_POOL, (.kh = 2, .kw = 2, .stride = 1), 0, (F32(count, 1, 1, 3, 3)), (F32(y, 1, 1, 2, 2)));
    EXPECT(CO_OP_AVG_POOL, (.kh = 2, .kw = 2, .stride = 2, .pad = 1), 0, (F32(count, 1, 1, 3, 3)),
           (F32(padded, 1, 1, 2, 2)));
    EXPECT(CO_OP_AVG_POOL_GRAD, (.kh = 2, .kw = 2, .stride = 1), 0, (F32(dy, 1, 1, 2, 2)),
           (F32(dx, 1, 1, 3, 3)));
}

TEST(activations_by_hand)
{
    static const float x[] = {-1, 0, 1, 10, -10}, clipped[] = {0, 0, 1, 10, 0};
    static const float relu_dx[] = {0, 0, 3, 4, 0}, dy[] = {1, 2, 3, 4, 5};
    static const float gelu[] = {-0.15865526f, 0, 0.84134475f, 10, 0};
    static const float gelu_dx[] = {-0.08331547f, 1, 3.24994641f, 4, 0};

    EXPECT(CO_OP_RELU, (0), 0, (F32(x, 5)), (F32(clipped, 5)));
    EXPECT(CO_OP_RELU_GRAD, (0), 0, (F32(dy, 5), F32(clipped, 5)), (F32(relu_dx, 5)));
    EXPECT(CO_OP_GELU, (0), 2e-7, (F32(x, 5)), (F32(gelu, 5)));
    EXPECT(CO_OP_GELU_GRAD, (0), 5e-7, (F32(dy, 5), F32(x, 5)), (F32(gelu_dx, 5)));
}

TEST(a_nan_is_passed_on_and_not_clipped_away)
{
    static const float x[] = {1, NAN, 2, 3}, y[] = {NAN};
    static const int32_t idx[] = {1};

    EXPECT(CO_OP_RELU, (0), 0, (F32(x, 4)), (F32(x, 4)));
    EXPECT(CO_OP_MAX_POOL, (.kh = 2, .kw = 2, .stride = 2), 0, (F32(x, 1, 1, 2, 2)),
           (F32(y, 1, 1, 1, 1), I32(idx, 1, 1, 1, 1)));
}

TEST(softmax_by_hand_and_far_from_zero)
{
    static const float x[] = {0, LN2, LN3}, y[] = {1.0f / 6, 2.0f / 6, 3.0f / 6};
    static const float large[] = {3000, 3000, -3000}, halves[] = {0.5f, 0.5f, 0};
    static const float p[] = {0.25f, 0.75f}, dy[] = {1, 0}, dx[] = {0.1875f, -0.1875f};

    EXPECT(CO_OP_SOFTMAX, (0), 1e-7, (F32(x, 1, 3)), (F32(y, 1, 3)));
    EXPECT(CO_OP_SOFTMAX, (0), 0, (F32(large, 1, 3)), (F32(halves, 1, 3)));
    EXPECT(CO_OP_SOFTMAX_GRAD, (0), 0, (F32(dy, 1, 2), F32(p, 1, 2)), (F32(dx, 1, 2)));
}

TEST(attention_masks_by_length_and_by_order)
{
    static const float v[] = {1, 2, 3, 6, 5, 1}; /* [1,3,2] */
    static const int32_t two[] = {2}, none[] = {0}, beyond[] = {99};
    static const float mean2[] = {2, 4, 2, 4, 2, 4}, mean3[] = {3, 3, 3, 3, 3, 3};
    static const float half[] = {0.5f, 0.5f, 0, 0.5f, 0.5f, 0, 0.5f, 0.5f, 0};
    static const float third[] = {1.0f / 3, 1.0f / 3, 1.0f / 3, 1.0f / 3, 1.0f / 3,
                                  1.0f / 3, 1.0f / 3, 1.0f / 3, 1.0f / 3};
    static const float causal_y[] = {1, 2, 2, 4, 3, 3};
    static const float causal_p[] = {1, 0, 0, 0.5f, 0.5f, 0, 1.0f / 3, 1.0f / 3, 1.0f / 3};

    EXPECT(CO_OP_ATTENTION, (.heads = 1), 1e-6,
           (F32(zeros, 1, 3, 2), F32(v, 1, 3, 2), F32(v, 1, 3, 2), I32(two, 1)),
           (F32(mean2, 1, 3, 2), F32(half, 1, 1, 3, 3)));
    EXPECT(CO_OP_ATTENTION, (.heads = 1), 0, (F32(v, 1, 3, 2), F32(v, 1, 3, 2), F32(v, 1, 3, 2), I32(none, 1)),
           (F32(zeros, 1, 3, 2), F32(zeros, 1, 1, 3, 3)));
    EXPECT(CO_OP_ATTENTION, (.heads = 1), 1e-6,
           (F32(zeros, 1, 3, 2), F32(v, 1, 3, 2), F32(v, 1, 3, 2), I32(beyond, 1)),
           (F32(mean3, 1, 3, 2), F32(third, 1, 1, 3, 3)));
    EXPECT(CO_OP_ATTENTION, (.heads = 1, .causal = 1), 1e-6,
           (F32(zeros, 1, 3, 2), F32(v, 1, 3, 2), F32(v, 1, 3, 2)),
           (F32(causal_y, 1, 3, 2), F32(causal_p, 1, 1, 3, 3)));
}

TEST(attention_scales_by_the_width_of_a_head)
{
    /* two heads of width 4; q . k = 4 ln 2 for key 0 of head 0: scaled by 1/2, weight 4 against 1 */
    static const float q[] = {LN2, LN2, LN2, LN2, 0, 0, 0, 0};
    static const float k[] = {1, 1, 1, 1, 9, 9, 9, 9, 0, 0, 0, 0, 7, 7, 7, 7};
    static const float v[] = {5, 0, 0, 0, 1, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0};
    static const float y[] = {4, 1, 0, 0, 0.5f, 0.5f, 0, 0}, p[] = {0.8f, 0.2f, 0.5f, 0.5f};

    EXPECT(CO_OP_ATTENTION, (.heads = 2), 1e-6, (F32(q, 1, 1, 8), F32(k, 1, 2, 8), F32(v, 1, 2, 8)),
           (F32(y, 1, 1, 8), F32(p, 1, 2, 1, 2)));
}

TEST(cross_entropy_by_hand_with_smoothing_ignored_and_wrong_targets)
{
    static const float x[] = {0, LN2, LN3, 0, LN2, LN3, 0, LN2, LN3, 0, LN2, LN3}; /* p = 1/6, 2/6, 3/6 */
    static const int32_t target[] = {0, 2, 1, 3};
    static const float plain[] = {LN6, LN2, 0, NAN}, lse[] = {LN6, LN6, 0, LN6};
    /* mean of -log p: (ln 6 + ln 3 + ln 2) / 3 = 1.19450631 */
    static const float smooth[] = {0.7f * LN6 + 0.3f * 1.19450631f, 0.7f * LN2 + 0.3f * 1.19450631f, 0, NAN};
    static const float dloss[] = {2, 6, 5, 1};
    static const float dx[] = {-5.0f / 3, 2.0f / 3, 1, 1, 2, -3, 0, 0, 0, NAN, NAN, NAN};
    static const float smooth_dx[] = {-1.2666667f, 0.4666667f, 0.8f, 0.4f, 1.4f, -1.8f,
                                      0,           0,          0,    NAN,  NAN,  NAN};

    EXPECT(CO_OP_CROSS_ENTROPY, (.ignore = 1), 1e-6, (F32(x, 4, 3), I32(target, 4)),
           (F32(plain, 4), F32(lse, 4)));
    EXPECT(CO_OP_CROSS_ENTROPY, (.ignore = 1, .smooth = 0.3f), 1e-6, (F32(x, 4, 3), I32(target, 4)),
           (F32(smooth, 4), F32(lse, 4)));
    EXPECT(CO_OP_CROSS_ENTROPY_GRAD, (.ignore = 1), 2e-6,
           (F32(dloss, 4), F32(x, 4, 3), I32(target, 4), F32(lse, 4)), (F32(dx, 4, 3)));
    EXPECT(CO_OP_CROSS_ENTROPY_GRAD, (.ignore = 1, .smooth = 0.3f), 2e-6,
           (F32(dloss, 4), F32(x, 4, 3), I32(target, 4), F32(lse, 4)), (F32(smooth_dx, 4, 3)));
}

TEST(cross_entropy_survives_large_logits)
{
    static const float x[] = {1000, 0, 1000, 0}, loss[] = {0, 1000}, lse[] = {1000, 1000};
    static const int32_t target[] = {0, 1};

    EXPECT(CO_OP_CROSS_ENTROPY, (.ignore = -100), 0, (F32(x, 2, 2), I32(target, 2)),
           (F32(loss, 2), F32(lse, 2)));
}

TEST(losses_of_samples_by_hand)
{
    static const float target[] = {1, 4, 0, 0}, dloss[] = {1, 2};
    static const float mse[] = {2, 12.5f}, mse_dx[] = {0, -2, 6, 8};
    static const float mae[] = {1, 3.5f}, mae_dx[] = {0, -0.5f, 1, 1};
    static const float x[] = {0, LN3, -100, 100}, yes[] = {1, 0, 1, 1}; /* p = 1/2, 3/4, 0, 1 */
    static const float bce[] = {1.03972077f, 50}, bce_dx[] = {-0.25f, 0.375f, -1, 0};

    EXPECT(CO_OP_MSE, (0), 0, (F32(count, 2, 2), F32(target, 2, 2)), (F32(mse, 2)));
    EXPECT(CO_OP_MSE_GRAD, (0), 0, (F32(dloss, 2), F32(count, 2, 2), F32(target, 2, 2)), (F32(mse_dx, 2, 2)));
    EXPECT(CO_OP_MAE, (0), 0, (F32(count, 2, 2), F32(target, 2, 2)), (F32(mae, 2)));
    EXPECT(CO_OP_MAE_GRAD, (0), 0, (F32(dloss, 2), F32(count, 2, 2), F32(target, 2, 2)), (F32(mae_dx, 2, 2)));
    EXPECT(CO_OP_BCE, (0), 1e-6, (F32(x, 2, 2), F32(yes, 2, 2)), (F32(bce, 2)));
    EXPECT(CO_OP_BCE_GRAD, (0), 1e-6, (F32(dloss, 2), F32(x, 2, 2), F32(yes, 2, 2)), (F32(bce_dx, 2, 2)));
}

TEST(metrics_count_rows_that_are_right_and_rows_that_count)
{
    static const float x[] = {3,   3, 1, /* tie: 0 comes first */
                              1,   2, 3, /* second */
                              5,   5, 9, /* right, but ignored */
                              NAN, 9, 0, /* never right */
                              1,   1, 1 /* no such class */};
    static const int32_t target[] = {1, 1, 2, 0, 7};
    static const double none = 0, two = 2, four = 4;
    static const float counts[] = {1, 1, 0, 1, 1};

    EXPECT(CO_OP_CORRECT, (.k = 1, .ignore = 2), 0, (F32(x, 5, 3), I32(target, 5)), (F64(&none)));
    EXPECT(CO_OP_CORRECT, (.k = 2, .ignore = 2), 0, (F32(x, 5, 3), I32(target, 5)), (F64(&two)));
    EXPECT(CO_OP_COUNT_VALID, (.ignore = 2), 0, (I32(target, 5)), (F64(&four)));
    EXPECT(CO_OP_VALID, (.ignore = 2), 0, (I32(target, 5)), (F32(counts, 5)));
}

/* --- dropout */

enum { SAMPLES = 50, PER = 401 };

static void drop(float *y, const char *level, const int64_t *ids, co_run run, float p, uint32_t stream)
{
    const co_kernels *k;
    static float x[SAMPLES * PER];

    for (int i = 0; i < SAMPLES * PER; i++)
        x[i] = 3;
    CHECK_OK(co_kernels_get(&k, level));
    co_arg in[] = {{x, CO_F32, CO_SHAPE(SAMPLES, PER)}, {(void *)ids, CO_I64, CO_SHAPE(SAMPLES)}};
    co_arg out[] = {{y, CO_F32, CO_SHAPE(SAMPLES, PER)}};
    op_call(k, CO_OP_DROPOUT, &(co_attr){.p = p, .stream = stream}, &run, in, 2, out, 1, 1);
}

static void dropout_follows_its_key(const char *level)
{
    static float a[SAMPLES * PER], b[SAMPLES * PER];
    int64_t ids[SAMPLES], turned[SAMPLES];
    const co_run run = {.seed = 5, .step = 3};
    const float p = 0.3f;

    for (int i = 0; i < SAMPLES; i++) {
        ids[i] = 1000 + i * i;
        turned[SAMPLES - 1 - i] = ids[i];
    }
    drop(a, level, ids, run, p, 9);
    int kept = 0;
    for (int i = 0; i < SAMPLES * PER; i++) {
        uint32_t u[4];
        int q = i % PER;
        co_rng_draw(u, co_rng_key_make(5, CO_RNG_DROPOUT), 9, 3, (uint32_t)ids[i / PER], (uint32_t)q / 4);
        float want = co_rng_unit(u[q % 4]) >= p ? 3 / (1 - p) : 0;
        CHECK(a[i] == want, "%s: element %d: %g, wanted %g", level, i, a[i], want);
        kept += a[i] != 0;
    }
    double rate = (double)kept / (SAMPLES * PER);
    CHECK(fabs(rate - 0.7) < 0.02, "kept %g of the elements, wanted 0.7", rate);

    drop(b, level, turned, run, p, 9);
    for (int i = 0; i < SAMPLES; i++)
        CHECK(!memcmp(a + i * PER, b + (SAMPLES - 1 - i) * PER, PER * sizeof *a),
              "%s: sample %d has another mask in another row", level, i);
    drop(b, level, ids, (co_run){.seed = 5, .step = 4}, p, 9);
    CHECK(memcmp(a, b, sizeof a) != 0, "%s: the step does not matter", level);
    drop(b, level, ids, (co_run){.seed = 6, .step = 3}, p, 9);
    CHECK(memcmp(a, b, sizeof a) != 0, "%s: the run's number does not matter", level);
    drop(b, level, ids, run, p, 10);
    CHECK(memcmp(a, b, sizeof a) != 0, "%s: the stream does not matter", level);
}

TEST(dropout_follows_its_key_and_nothing_else)
{
    dropout_follows_its_key("ref");
    dropout_follows_its_key("auto");
}
