/* Small cases whose answers can be checked by hand, on every provider: products, convolution, moving,
 * sums. */
#include "harness.h"
#include "tensor/rows.h"
#include "kernel/cases.h"

static const float count[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

TEST(a_matrix_product_by_hand)
{
    static const float b[] = {1, 0, 2, 0, 1, 3, 1, 1, 1}; /* [3,3] */
    static const float c[] = {4, 5, 11, 10, 11, 29};      /* [1 2 3; 4 5 6] b */
    static const float at[] = {1, 4, 2, 5, 3, 6};         /* [3,2] */
    static const float bt[] = {1, 0, 1, 0, 1, 1, 2, 3, 1};

    EXPECT(CO_OP_MATMUL, (0), 0, (F32(count, 2, 3), F32(b, 3, 3)), (F32(c, 2, 3)));
    EXPECT(CO_OP_MATMUL, (.ta = 1), 0, (F32(at, 3, 2), F32(b, 3, 3)), (F32(c, 2, 3)));
    EXPECT(CO_OP_MATMUL, (.tb = 1), 0, (F32(count, 2, 3), F32(bt, 3, 3)), (F32(c, 2, 3)));
    EXPECT(CO_OP_MATMUL, (.ta = 1, .tb = 1), 0, (F32(at, 3, 2), F32(bt, 3, 3)), (F32(c, 2, 3)));
    EXPECT(CO_OP_LINEAR, (0), 0, (F32(count, 2, 3), F32(bt, 3, 3)), (F32(c, 2, 3)));
}

TEST(a_product_of_stacks_pairs_them_or_shares_the_right_one)
{
    static const float b[] = {1, 10, 100, 1000};        /* two of [2,1], or one of [2,2] */
    static const float paired[] = {21, 43, 6500, 8700}; /* [1 2; 3 4][1;10], [5 6; 7 8][100;1000] */
    static const float shared[] = {201, 2010, 403, 4030, 605, 6050, 807, 8070};

    EXPECT(CO_OP_MATMUL, (0), 0, (F32(count, 2, 2, 2), F32(b, 2, 2, 1)), (F32(paired, 2, 2, 1)));
    EXPECT(CO_OP_MATMUL, (0), 0, (F32(count, 2, 2, 2), F32(b, 2, 2)), (F32(shared, 2, 2, 2)));
}

TEST(the_gradient_of_a_weight_sums_over_all_rows)
{
    static const float a[] = {1, 2, 0, 1, 1, 0}; /* [3,2] */
    static const float c[] = {6, 8, 5, 8};       /* [1 0 1; 2 1 0] [1 2; 3 4; 5 6] */

    EXPECT(CO_OP_MATMUL_TN_SUM, (0), 0, (F32(a, 3, 2), F32(count, 3, 2)), (F32(c, 2, 2)));
    EXPECT(CO_OP_MATMUL_TN_SUM, (0), 0, (F32(a, 1, 3, 2), F32(count, 1, 3, 2)), (F32(c, 2, 2)));
}

TEST(a_linear_layer_adds_its_bias_to_every_row)
{
    static const float w[] = {1, 1, 1, -1}, bias[] = {100, 200}, y[] = {103, 199, 107, 199};

    EXPECT(CO_OP_LINEAR, (0), 0, (F32(count, 2, 2), F32(w, 2, 2), F32(bias, 2)), (F32(y, 2, 2)));
}

TEST(a_convolution_by_hand)
{
    static const float w[] = {1, 0, 0, 2}, bias[] = {0.5f};
    static const float y[] = {11.5f, 14.5f, 20.5f, 23.5f};    /* x[h][w] + 2 x[h+1][w+1] */
    static const float padded[] = {2.5f, 6.5f, 14.5f, 23.5f}; /* corners at stride 2, pad 1 */
    static const float dy[] = {1, 10, 100, 1000};
    static const float dx[] = {1, 10, 0, 100, 1002, 20, 0, 200, 2000};
    static const float dw[] = {5421, 6532, 8754, 9865};

    EXPECT(CO_OP_CONV2D, (.stride = 1), 0, (F32(count, 1, 1, 3, 3), F32(w, 1, 1, 2, 2), F32(bias, 1)),
           (F32(y, 1, 1, 2, 2)));
    EXPECT(CO_OP_CONV2D, (.stride = 2, .pad = 1), 0,
           (F32(count, 1, 1, 3, 3), F32(w, 1, 1, 2, 2), F32(bias, 1)), (F32(padded, 1, 1, 2, 2)));
    EXPECT(CO_OP_CONV2D_DX, (.stride = 1), 0, (F32(dy, 1, 1, 2, 2), F32(w, 1, 1, 2, 2)), (F32(dx, 1, 1, 3, 3)));
    EXPECT(CO_OP_CONV2D_DW, (.stride = 1), 0, (F32(dy, 1, 1, 2, 2), F32(count, 1, 1, 3, 3)),
           (F32(dw, 1, 1, 2, 2)));
}

TEST(a_convolution_sums_over_input_channels)
{
    static const float w[] = {1, 10, 0, 1}; /* two filters over two channels, 1x1 */
    static const float y[] = {31, 42, 3, 4, 75, 86, 7, 8};

    EXPECT(CO_OP_CONV2D, (.stride = 1), 0, (F32(count, 2, 2, 1, 2), F32(w, 2, 2, 1, 1)), (F32(y, 2, 2, 1, 2)));
}

TEST(sums_over_rows_channels_and_all)
{
    static const float rows[] = {9, 12}, one[] = {21}, channels[] = {1 + 2 + 5 + 6, 3 + 4 + 7 + 8};
    static const double all = 136;

    EXPECT(CO_OP_SUM_ROWS, (0), 0, (F32(count, 3, 2)), (F32(rows, 2)));
    EXPECT(CO_OP_SUM_ROWS, (0), 0, (F32(count, 6, 1)), (F32(one, 1)));
    EXPECT(CO_OP_SUM_ROWS, (0), 0, (F32(count, 2, 3)), (F32(((const float[]){5, 7, 9}), 3)));
    EXPECT(CO_OP_SUM_CHANNELS, (0), 0, (F32(count, 2, 2, 2)), (F32(channels, 2)));
    EXPECT(CO_OP_SUM_ALL, (0), 0, (F32(count, 4, 2, 2)), (F64(&all)));
}

TEST(a_long_sum_is_kept_in_double)
{
    static float x[20001];
    static const double sum = 16777216.0 + 20000.0;

    x[0] = 16777216.0f; /* 2^24: adding 1 to this float does not change it */
    for (int i = 1; i <= 20000; i++)
        x[i] = 1;
    EXPECT(CO_OP_SUM_ALL, (0), 0, (F32(x, 20001)), (F64(&sum)));
}

TEST(adding_and_multiplying_repeat_the_shorter_one)
{
    static const float b[] = {10, 20}, sum[] = {11, 22, 13, 24, 15, 26},
                       product[] = {10, 40, 30, 80, 50, 120};
    static const float two[] = {2}, half[] = {0.5f, 1, 1.5f, 2}, twice[] = {2, 4, 6, 8};

    EXPECT(CO_OP_ADD, (0), 0, (F32(count, 3, 2), F32(b, 2)), (F32(sum, 3, 2)));
    EXPECT(CO_OP_MUL, (0), 0, (F32(count, 3, 2), F32(b, 2)), (F32(product, 3, 2)));
    EXPECT(CO_OP_ADD, (0), 0, (F32(count, 4), F32(count, 4)), (F32(twice, 4)));
    EXPECT(CO_OP_MUL, (0), 0, (F32(count, 2, 2), F32(two, 1)), (F32(twice, 2, 2)));
    EXPECT(CO_OP_SCALE, (.value = 0.5f), 0, (F32(count, 4)), (F32(half, 4)));
}

TEST(moving_elements_puts_each_in_its_place)
{
    static const float t[] = {1, 4, 2, 5, 3, 6};
    static const float cube[] = {1, 3, 5, 7, 2, 4, 6, 8}; /* [2,2,2] with perm 2 0 1 */
    static const float joined[] = {1, 2, 1, 3, 4, 2}, stacked[] = {1, 2, 3, 4, 1, 2};
    static const float cut[] = {2, 3, 5, 6}, low[] = {3, 4, 5, 6}, placed[] = {0, 1, 2, 0, 0, 3, 4, 0};
    static const float filled[] = {2.5f, 2.5f};
    static const int32_t ints[] = {7, -8}, swapped[] = {7, -8};
    static const int64_t wide[] = {1ll << 40, -2};

    EXPECT(CO_OP_TRANSPOSE, (.perm = {1, 0}), 0, (F32(count, 2, 3)), (F32(t, 3, 2)));
    EXPECT(CO_OP_TRANSPOSE, (.perm = {2, 0, 1}), 0, (F32(count, 2, 2, 2)), (F32(cube, 2, 2, 2)));
    EXPECT(CO_OP_TRANSPOSE, (.perm = {1, 0}), 0, (I32(ints, 2, 1)), (I32(swapped, 1, 2)));
    EXPECT(CO_OP_CONCAT, (.axis = 1), 0, (F32(count, 2, 2), F32(count, 2, 1)), (F32(joined, 2, 3)));
    EXPECT(CO_OP_CONCAT, (.axis = 0), 0, (F32(count, 2, 2), F32(count, 1, 2)), (F32(stacked, 3, 2)));
    EXPECT(CO_OP_SLICE, (.axis = 1, .start = 1), 0, (F32(count, 2, 3)), (F32(cut, 2, 2)));
    EXPECT(CO_OP_SLICE, (.axis = 0, .start = 1), 0, (F32(count, 3, 2)), (F32(low, 2, 2)));
    EXPECT(CO_OP_PAD, (.axis = 1, .start = 1), 0, (F32(count, 2, 2)), (F32(placed, 2, 4)));
    EXPECT(CO_OP_COPY, (0), 0, (F32(count, 4)), (F32(count, 4)));
    EXPECT(CO_OP_COPY, (0), 0, (I64(wide, 2)), (I64(wide, 2)));
    op_expect(CO_OP_FILL, &(co_attr){.value = 2.5f}, 0, NULL, 0, &(tensor)F32(filled, 2), 1, __LINE__);
}

TEST(an_embedding_takes_rows_and_zeros_where_there_is_none)
{
    static const int32_t idx[] = {2, 0, -1, 3};
    static const float y[] = {5, 6, 1, 2, 0, 0, 0, 0};

    EXPECT(CO_OP_EMBEDDING, (0), 0, (F32(count, 3, 2), I32(idx, 2, 2)), (F32(y, 2, 2, 2)));
}

TEST(an_embedding_gradient_adds_duplicates_in_position_order)
{
    /* In float 2^24 + 1 + 1 stays 2^24, and 1 + 1 + 2^24 does not, so the rows show the order of the sum. */
    static const float dy[] = {1, 16777216, 1, 1, 16777216, 1, 5, 5};
    static const int32_t idx[] = {1, 0, 1, 0, 1, 0, -1, 3};
    static const float in_order[] = {16777216, 16777218, 0};
    const char *levels[] = {"ref", "auto"};

    for (size_t l = 0; l < CO_COUNT(levels); l++) {
        const co_kernels *k;
        float got[3], value[3];
        uint32_t row[3], rows;
        co_arg in[] = {{(void *)dy, CO_F32, CO_SHAPE(8, 1)}, {(void *)idx, CO_I32, CO_SHAPE(8)}};
        co_arg out[] = {{got, CO_F32, CO_SHAPE(3, 1)}};
        co_arg list[] = {
            {value, CO_F32, CO_SHAPE(3, 1)}, {row, CO_U32, CO_SHAPE(3)}, {&rows, CO_U32, CO_SHAPE(1)}};
        CHECK_OK(co_kernels_get(&k, levels[l]));
        op_call(k, CO_OP_EMBEDDING_GRAD, &(co_attr){0}, &(co_run){0}, in, 2, out, 1, 1);
        op_call(k, CO_OP_EMBEDDING_ROWS, &(co_attr){.rows = 3}, &(co_run){0}, in, 2, list, 3, 1);
        CHECK(rows == 2 && row[0] == 0 && row[1] == 1 && row[2] == CO_NO_ROW, "%u rows: %u %u %u", rows,
              row[0], row[1], row[2]);
        for (int i = 0; i < 3; i++)
            CHECK(got[i] == in_order[i] && value[i] == in_order[i], "%s, row %d: %g, in the list %g",
                  k->level, i, got[i], value[i]);
    }
}
