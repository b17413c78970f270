#include "harness.h"

#include <string.h>

#include "base/alloc.h"

TEST(the_nth_allocation_can_be_made_to_fail)
{
    uint64_t before = co_alloc_count();
    co_alloc_fail_at(3);
    void *a = co_alloc(1), *b = co_zalloc(1), *c = co_array(1, 1), *d = co_strdup("x");
    CHECK(a && b && !c && d, "%p %p %p %p", a, b, c, d);
    CHECK(co_alloc_count() - before == 4, "%llu counted", (unsigned long long)(co_alloc_count() - before));
    CHECK(test_contains(co_errmsg(), "out of memory"), "%s", co_errmsg());
    co_alloc_fail_at(1);
    CHECK(!co_realloc(a, 100), "did not fail"); /* on failure the old block stays valid */
    co_free(a);
    co_free(b);
    co_free(c);
    co_free(d);
}

TEST(an_array_too_large_to_count_is_refused)
{
    CHECK(!co_array(SIZE_MAX / 2, 3), "overflowed");
    co_pool pool = {0};
    CHECK(!co_pool_alloc(&pool, SIZE_MAX - 1), "overflowed");
    co_pool_fini(&pool);
}

TEST(a_pool_gives_aligned_zeroed_memory_and_dies_at_once)
{
    co_pool pool = {0};
    for (size_t size = 0; size < 40000; size = size * 2 + 1) {
        unsigned char *p = co_pool_alloc(&pool, size);
        CHECK(p && (uintptr_t)p % 16 == 0, "size %zu at %p", size, (void *)p);
        for (size_t i = 0; i < size; i++)
            CHECK(p[i] == 0, "byte %zu of %zu is %d", i, size, p[i]);
        memset(p, 0xff, size);
    }
    char *s = co_pool_printf(&pool, "%s.%d", co_pool_strn(&pool, "layers", 5), 7);
    CHECK(strcmp(s, "layer.7") == 0 && strcmp(co_pool_str(&pool, s), s) == 0, "%s", s);
    co_pool_fini(&pool);
    CHECK(!pool.head && pool.total == 0, "not empty");
}

TEST(a_printed_text_is_allocated_to_its_size)
{
    char *s = co_sprintf("%05d|%s", 42, "x");
    CHECK(strcmp(s, "00042|x") == 0, "%s", s);
    co_free(s);
}
