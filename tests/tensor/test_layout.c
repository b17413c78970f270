/* The flat state: offsets, chunk grid, initial values, hash. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "tensor/layout.h"

static void add(co_layout *l, const char *name, co_kind kind, co_shape shape, co_init init, bool sparse)
{
    CHECK_OK(co_layout_add(l, &(co_entry){.name = name,
                                          .kind = kind,
                                          .dtype = kind == CO_KIND_COUNTER ? CO_I64 : CO_F32,
                                          .shape = shape,
                                          .init = init,
                                          .sparse = sparse}));
}

static void small(co_layout *l)
{
    co_layout_init(l);
    add(l, "fc.weight", CO_KIND_PARAM, CO_SHAPE(5, 7), (co_init){CO_INIT_UNIFORM, 0.5f}, false);
    add(l, "emb", CO_KIND_PARAM, CO_SHAPE(17, 3), (co_init){CO_INIT_NORMAL, 2.0f}, true);
    add(l, "bn.num_batches_tracked", CO_KIND_COUNTER, CO_SCALAR, (co_init){0}, false);
    add(l, "bn.running_var", CO_KIND_STAT, CO_SHAPE(5), (co_init){CO_INIT_ONE, 0}, false);
    add(l, "Z", CO_KIND_PARAM, CO_SHAPE(2), (co_init){CO_INIT_ZERO, 0}, true);
    co_layout_close(l);
}

TEST(entries_lie_on_cache_lines_and_sparse_ones_follow_the_others)
{
    co_layout l;
    small(&l);
    size_t offset[] = {0, 80, 48, 64, 144}, count[] = {35, 51, 2, 5, 2};
    for (int i = 0; i < l.n; i++)
        CHECK(l.entry[i].offset == offset[i] && l.entry[i].count == count[i], "entry %d at %zu, %zu elements",
              i, l.entry[i].offset, l.entry[i].count);
    CHECK(l.count == 160, "count %zu", l.count);
    CHECK(l.dense == 80 && l.lists == 2, "%zu dense elements, %d lists", l.dense, l.lists);
    CHECK(l.entry[1].list == 0 && l.entry[4].list == 1, "lists %d and %d", l.entry[1].list, l.entry[4].list);
    CHECK(co_entry_width(&l.entry[1]) == 3 && co_entry_width(&l.entry[4]) == 1, "widths");
    CHECK(co_layout_find(&l, "emb") == &l.entry[1] && !co_layout_find(&l, "em"), "find");
    co_layout_fini(&l);
}

TEST(a_layout_refuses_what_it_cannot_hold)
{
    co_layout l;
    small(&l);
    l.closed = false;
    co_entry e = {.name = "emb", .kind = CO_KIND_PARAM, .dtype = CO_F32, .shape = CO_SHAPE(2)};
    int before = l.n;
    CHECK_FAILS(co_layout_add(&l, &e), CO_EINPUT, "'emb' is declared twice");
    e.name = "new";
    e.shape = CO_SHAPE((int64_t)1 << 31, (int64_t)1 << 31);
    CHECK_FAILS(co_layout_add(&l, &e), CO_EINPUT, "'new' [2147483648,2147483648] is too large");
    e.shape = CO_SHAPE(3, 0);
    CHECK_FAILS(co_layout_add(&l, &e), CO_EINPUT, "no elements");
    e.dtype = CO_F64;
    CHECK_FAILS(co_layout_add(&l, &e), CO_EINPUT, "'new' is F64");
    e = (co_entry){.name = "n", .kind = CO_KIND_COUNTER, .dtype = CO_I64, .shape = CO_SHAPE(2)};
    CHECK_FAILS(co_layout_add(&l, &e), CO_EINPUT, "counters are I64 scalars");
    e = (co_entry){.name = "s", .kind = CO_KIND_PARAM, .dtype = CO_F32, .shape = CO_SCALAR, .sparse = true};
    CHECK_FAILS(co_layout_add(&l, &e), CO_EINPUT, "cannot be sparse");
    CHECK(l.n == before, "a refused entry was added");
    co_layout_fini(&l);
}

TEST(layouts_that_differ_name_the_first_entry)
{
    co_layout a, b;
    small(&a);
    small(&b);
    CHECK_OK(co_layout_same(&a, &b));
    b.entry[1].shape.d[1] = 4;
    CHECK_FAILS(co_layout_same(&a, &b), CO_EINPUT, "'emb' [17,3] at 80 against sparse parameter 'emb' [17,4]");
    b.entry[1].shape.d[1] = 3;
    b.n--;
    CHECK_FAILS(co_layout_same(&a, &b), CO_EINPUT, "'Z' [2] at 144 against nothing");
    co_layout_fini(&a);
    co_layout_fini(&b);
}

TEST(the_chunk_grid_is_a_formula_of_the_dense_elements)
{
    static const struct {
        size_t count, chunk, chunks;
    } want[] = {{0, 1024, 0},      {16, 1024, 1},        {65536, 1024, 64},
                {65552, 2048, 33}, {1 << 20, 16384, 64}, {11689984, 65536, 179}};
    for (size_t i = 0; i < CO_COUNT(want); i++) {
        co_layout l = {.dense = want[i].count};
        CHECK(co_layout_chunk(&l) == want[i].chunk && co_layout_chunks(&l) == want[i].chunks,
              "%zu elements: %zu chunks of %zu", want[i].count, co_layout_chunks(&l), co_layout_chunk(&l));
    }
}

TEST(names_are_ordered_by_bytes)
{
    co_layout l;
    co_layout_init(&l);
    const char *names[] = {"b", "a.b", "a_b", "\xc3\xa4", "B", "a", "a.a"};
    const char *want[] = {"B", "a", "a.a", "a.b", "a_b", "b", "\xc3\xa4"};
    for (size_t i = 0; i < CO_COUNT(names); i++)
        add(&l, names[i], CO_KIND_PARAM, CO_SHAPE(1), (co_init){0}, false);
    int *idx = co_layout_by_name(&l);
    for (size_t i = 0; i < CO_COUNT(want); i++)
        CHECK(strcmp(l.entry[idx[i]].name, want[i]) == 0, "%zu is %s", i, l.entry[idx[i]].name);
    co_free(idx);
    co_layout_fini(&l);
}

/* The same name and seed give the same values at any offset. */
TEST(first_values_depend_on_seed_and_name_only)
{
    co_layout l, alone;
    small(&l);
    co_layout_init(&alone);
    add(&alone, "emb", CO_KIND_PARAM, CO_SHAPE(51), (co_init){CO_INIT_NORMAL, 2.0f}, false);
    co_layout_close(&alone);
    float x[160], y[64], z[64];
    memset(x, 0xff, sizeof x);
    co_layout_initialise(&l, x, 42);
    co_layout_initialise(&alone, y, 42);
    co_layout_initialise(&alone, z, 43);
    CHECK(memcmp(x + 80, y, 51 * 4) == 0, "emb differs by place");
    CHECK(memcmp(y, z, 51 * 4) != 0, "the seed has no effect");
    float want[35];
    co_rng_uniform(want, 35, -0.5f, 0.5f, co_rng_key_make(42, CO_RNG_INIT), co_rng_stream("fc.weight"), 0, 0);
    CHECK(memcmp(x, want, sizeof want) == 0, "fc.weight is not what the format page says");
    for (int i = 0; i < 160; i++) {
        if ((i >= 35 && i < 64) || (i >= 69 && i < 80) || i >= 131)
            CHECK(x[i] == 0, "padding, counter or zero entry: x[%d] = %g", i, x[i]);
        if (i >= 64 && i < 69)
            CHECK(x[i] == 1, "running_var x[%d] = %g", i, x[i]);
    }
    co_layout_fini(&l);
    co_layout_fini(&alone);
}

/* Computed step by step as docs/formats/weights-sha256.md says. */
TEST(the_weights_hash_is_the_one_of_the_format_page)
{
    co_layout l;
    co_layout_init(&l);
    add(&l, "fc.weight", CO_KIND_PARAM, CO_SHAPE(1, 2), (co_init){0}, false);
    add(&l, "bn.num_batches_tracked", CO_KIND_COUNTER, CO_SCALAR, (co_init){0}, false);
    co_layout_close(&l);
    float state[32] = {1.0f, -2.0f};
    int64_t seven = 7;
    memcpy(state + 16, &seven, sizeof seven);
    static const char bytes[] = "bn.num_batches_tracked\0I64\0\0\7\0\0\0\0\0\0\0"
                                "fc.weight\0F32\0001,2\0\0\0\x80\x3f\0\0\0\xc0";
    char want[65], got[65];
    co_sha256_of(bytes, sizeof bytes - 1, want);
    CHECK_OK(co_layout_sha256(&l, state, got));
    CHECK(strcmp(got, want) == 0, "%s, wanted %s", got, want);
    state[5] = 1; /* padding is not hashed */
    CHECK_OK(co_layout_sha256(&l, state, got));
    CHECK(strcmp(got, want) == 0, "padding entered the hash");
    co_layout_fini(&l);
}

static co_err build_and_hash(void *ctx)
{
    co_layout l;
    char hex[65];
    static float state[4096];
    co_layout_init(&l);
    co_err err = CO_OK;
    for (int i = 0; i < 100 && !err; i++) {
        char name[32];
        snprintf(name, sizeof name, "layer%d", i);
        err = co_layout_add(
            &l, &(co_entry){.name = name, .kind = CO_KIND_PARAM, .dtype = CO_F32, .shape = CO_SHAPE(20)});
    }
    if (!err) {
        co_layout_close(&l);
        err = co_layout_sha256(&l, state, hex);
    }
    co_layout_fini(&l);
    return err;
}

TEST(a_layout_survives_each_failing_allocation)
{
    test_each_alloc_fails(build_and_hash, NULL);
}
