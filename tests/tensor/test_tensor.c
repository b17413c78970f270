/* Dtypes and shapes: text, equality, and sizes that do not fit. */
#include "harness.h"

#include <string.h>

#include "tensor/tensor.h"

TEST(every_dtype_reads_back_from_its_name)
{
    for (int t = 0; t < CO_DTYPE_COUNT; t++) {
        co_dtype back = CO_DTYPE_COUNT;
        CHECK(co_dtype_parse(&back, co_dtype_name((co_dtype)t)) && (int)back == t, "dtype %d", t);
    }
    co_dtype untouched = CO_I32;
    CHECK(!co_dtype_parse(&untouched, "f32") && untouched == CO_I32, "lower case is another name");
    CHECK(co_dtype_size(CO_I64) == 8 && co_dtype_size(CO_U8) == 1 && co_dtype_size(CO_DTYPE_COUNT) == 0,
          "sizes");
}

TEST(a_shape_prints_counts_and_compares)
{
    char buf[64], tiny[5];
    co_shape s = CO_SHAPE(8, 64, 3072), scalar = CO_SCALAR, none = CO_SHAPE(4, 0);

    CHECK(strcmp(co_shape_text(buf, sizeof buf, &s), "[8,64,3072]") == 0, "%s", buf);
    CHECK(strcmp(co_shape_text(buf, sizeof buf, &scalar), "[]") == 0, "%s", buf);
    CHECK(strcmp(co_shape_text(tiny, sizeof tiny, &s), "[8,6") == 0, "%s", tiny);
    CHECK(co_shape_count(&s) == 8 * 64 * 3072 && co_shape_count(&scalar) == 1 && co_shape_count(&none) == 0,
          "counts");
    CHECK(co_shape_eq(&s, &CO_SHAPE(8, 64, 3072)) && !co_shape_eq(&s, &CO_SHAPE(8, 64)) &&
              !co_shape_eq(&s, &CO_SHAPE(8, 64, 3073)),
          "equality");
}

TEST(a_size_that_does_not_fit_is_refused)
{
    size_t bytes = 77;

    CHECK(co_shape_bytes(&bytes, &CO_SHAPE(3, 5), CO_F64) && bytes == 120, "%zu", bytes);
    CHECK(co_shape_bytes(&bytes, &CO_SCALAR, CO_I64) && bytes == 8, "%zu", bytes);
    CHECK(co_shape_bytes(&bytes, &CO_SHAPE((int64_t)1 << 60), CO_F32) && bytes == (size_t)1 << 62, "%zu",
          bytes);
    bytes = 77;
    CHECK(!co_shape_bytes(&bytes, &CO_SHAPE(((int64_t)1 << 60) + 1), CO_F32), "past 2^62");
    CHECK(!co_shape_bytes(&bytes, &CO_SHAPE((int64_t)1 << 33, (int64_t)1 << 33), CO_F32), "past 2^64");
    CHECK(!co_shape_bytes(&bytes, &CO_SHAPE(INT64_MAX, INT64_MAX, INT64_MAX), CO_U8), "far past 2^64");
    CHECK(!co_shape_bytes(&bytes, &CO_SHAPE(4, -1), CO_F32), "negative");
    CHECK(!co_shape_bytes(&bytes, &CO_SCALAR, CO_DTYPE_COUNT), "no dtype");
    CHECK(bytes == 77, "written on failure");
}
