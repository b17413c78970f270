/* layout.c -- building the flat state space, its chunk grid, its first values and its hash.
 *
 * Entries follow each other, each rounded up to 16 elements (one cache line). No two entries share a cache
 * line, and a vector load never crosses into the next entry. Row-sparse entries follow all others, so that the
 * gradients of the others are one array. Names are found by linear search: a model has hundreds of entries, and
 * no search happens on the step path.
 */
#include "tensor/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the state's bytes in memory are hashed and stored unchanged");

enum { ALIGN = 16 }; /* elements */

/* base/rng counts blocks of four positions in 32 bits. */
static const size_t MAX_ENTRY = (size_t)1 << 34;

static size_t aligned(size_t n)
{
    return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

void co_layout_init(co_layout *l)
{
    *l = (co_layout){0};
}

void co_layout_fini(co_layout *l)
{
    co_free(l->entry);
    co_pool_fini(&l->pool);
    *l = (co_layout){0};
}

static co_err check_entry(const co_layout *layout, const co_entry *entry, size_t *count)
{
    char text[128];
    size_t bytes;
    co_dtype want = entry->kind == CO_KIND_COUNTER ? CO_I64 : CO_F32;

    if (co_layout_find(layout, entry->name))
        return co_fail(CO_EINPUT, "'%s' is declared twice: names in a model are unique", entry->name);
    if (entry->dtype != want || (entry->kind == CO_KIND_COUNTER && entry->shape.nd != 0))
        return co_fail(CO_EINPUT, "'%s' is %s %s: parameters and statistics are F32, counters are I64 scalars",
                       entry->name, co_dtype_name(entry->dtype),
                       co_shape_text(text, sizeof text, &entry->shape));
    if (!co_shape_bytes(&bytes, &entry->shape, entry->dtype) || bytes / 4 > MAX_ENTRY)
        return co_fail(CO_EINPUT, "'%s' %s is too large: at most 2^34 elements", entry->name,
                       co_shape_text(text, sizeof text, &entry->shape));
    if (bytes == 0)
        return co_fail(CO_EINPUT, "'%s' %s has no elements", entry->name,
                       co_shape_text(text, sizeof text, &entry->shape));
    if (entry->sparse && (entry->kind != CO_KIND_PARAM || entry->shape.nd < 1))
        return co_fail(CO_EINPUT, "'%s' cannot be sparse: only a parameter with rows can", entry->name);
    *count = bytes / 4;
    return CO_OK;
}

co_err co_layout_add(co_layout *layout, const co_entry *entry)
{
    size_t count = 0, end;

    CO_ASSERT(!layout->closed, "an entry was added to a closed layout");
    CO_TRY(check_entry(layout, entry, &count));
    if (__builtin_add_overflow(layout->count, aligned(count), &end) || end > ((size_t)1 << 60))
        return co_fail(CO_EINPUT, "'%s': the model is too large", entry->name);
    if (layout->n == layout->room) {
        int room = layout->room ? 2 * layout->room : 32;
        co_entry *grown = co_realloc(layout->entry, (size_t)room * sizeof *grown);
        if (!grown)
            return CO_ENOMEM;
        layout->entry = grown;
        layout->room = room;
    }
    const char *name = co_pool_str(&layout->pool, entry->name);
    if (!name)
        return CO_ENOMEM;
    co_entry *mine = &layout->entry[layout->n++];
    *mine = *entry;
    mine->name = name;
    mine->count = count;
    layout->count = end;
    return CO_OK;
}

static size_t place(co_layout *l, bool sparse, size_t at)
{
    for (int i = 0; i < l->n; i++) {
        co_entry *e = &l->entry[i];
        if (e->sparse != sparse)
            continue;
        e->offset = at;
        e->list = sparse ? l->lists++ : 0;
        at += aligned(e->count);
    }
    return at;
}

void co_layout_close(co_layout *l)
{
    l->dense = place(l, false, 0);
    place(l, true, l->dense);
    l->closed = true;
}

size_t co_entry_width(const co_entry *e)
{
    return e->count / (size_t)e->shape.d[0];
}

const co_entry *co_layout_find(const co_layout *l, const char *name)
{
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->entry[i].name, name) == 0)
            return &l->entry[i];
    return NULL;
}

static const char *kind_name(co_kind kind)
{
    return kind == CO_KIND_PARAM ? "parameter" : kind == CO_KIND_STAT ? "statistic" : "counter";
}

static void describe(char *buf, size_t size, const co_entry *e)
{
    char shape[128];

    snprintf(buf, size, "%s%s '%s' %s at %zu", e->sparse ? "sparse " : "", kind_name(e->kind), e->name,
             co_shape_text(shape, sizeof shape, &e->shape), e->offset);
}

co_err co_layout_same(const co_layout *a, const co_layout *b)
{
    char ta[384] = "nothing", tb[384] = "nothing";

    for (int i = 0; i < a->n || i < b->n; i++) {
        const co_entry *x = i < a->n ? &a->entry[i] : NULL;
        const co_entry *y = i < b->n ? &b->entry[i] : NULL;
        if (x && y && strcmp(x->name, y->name) == 0 && x->kind == y->kind && x->sparse == y->sparse &&
            x->offset == y->offset && co_shape_eq(&x->shape, &y->shape))
            continue;
        if (x)
            describe(ta, sizeof ta, x);
        if (y)
            describe(tb, sizeof tb, y);
        return co_fail(CO_EINPUT, "models differ at entry %d: %s against %s", i, ta, tb);
    }
    return CO_OK;
}

size_t co_layout_chunk(const co_layout *l)
{
    size_t chunk = 1024;

    while (chunk < 65536 && chunk * 64 < l->dense)
        chunk *= 2;
    return chunk;
}

size_t co_layout_chunks(const co_layout *l)
{
    size_t chunk = co_layout_chunk(l);

    return (l->dense + chunk - 1) / chunk;
}

static int name_order(const void *a, const void *b, void *entries)
{
    const co_entry *e = entries;

    return strcmp(e[*(const int *)a].name, e[*(const int *)b].name); /* compares as unsigned char */
}

int *co_layout_by_name(const co_layout *l)
{
    int *idx = co_array((size_t)l->n, sizeof *idx);

    if (!idx)
        return NULL;
    for (int i = 0; i < l->n; i++)
        idx[i] = i;
    if (l->n > 1)
        qsort_r(idx, (size_t)l->n, sizeof *idx, name_order, l->entry);
    return idx;
}

/* As torch.nn.init.dirac_ over the first `in` filters. */
static void pass_channels_on(const co_entry *entry, float *x)
{
    const int64_t *d = entry->shape.d; /* out, in, height, width */
    int64_t area = d[2] * d[3], filter = d[1] * area;

    for (int64_t o = 0; o < d[0] && o < d[1]; o++) {
        memset(x + o * filter, 0, (size_t)filter * sizeof *x);
        x[o * filter + o * area + d[2] / 2 * d[3] + d[3] / 2] = 1;
    }
}

void co_layout_initialise(const co_layout *layout, float *state, uint64_t seed)
{
    co_rng_key key = co_rng_key_make(seed, CO_RNG_INIT);

    memset(state, 0, layout->count * sizeof *state); /* sets padding, zero entries and counters */
    for (int i = 0; i < layout->n; i++) {
        const co_entry *entry = &layout->entry[i];
        float *x = state + entry->offset; /* [shape], row-major */
        uint32_t stream = co_rng_stream(entry->name);

        if (entry->kind == CO_KIND_COUNTER)
            continue;
        if (entry->init.kind == CO_INIT_UNIFORM || entry->init.kind == CO_INIT_DIRAC)
            co_rng_uniform(x, entry->count, -entry->init.a, entry->init.a, key, stream, 0, 0);
        else if (entry->init.kind == CO_INIT_NORMAL)
            co_rng_normal(x, entry->count, 0.0f, entry->init.a, key, stream, 0, 0);
        else if (entry->init.kind == CO_INIT_ONE || entry->init.kind == CO_INIT_VALUE)
            for (size_t k = 0; k < entry->count; k++)
                x[k] = entry->init.kind == CO_INIT_ONE ? 1.0f : entry->init.a;
        if (entry->init.kind == CO_INIT_DIRAC && entry->shape.nd == 4)
            pass_channels_on(entry, x);
    }
}

void co_layout_sha256_head(co_sha256 *h, const char *name, const char *dtype_name, const co_shape *shape)
{
    char dim[32];

    co_sha256_add(h, name, strlen(name) + 1); /* including its NUL */
    co_sha256_add(h, dtype_name, strlen(dtype_name) + 1);
    for (int i = 0; i < shape->nd; i++) {
        int n = snprintf(dim, sizeof dim, "%s%lld", i ? "," : "", (long long)shape->d[i]);
        co_sha256_add(h, dim, (size_t)n);
    }
    co_sha256_add(h, "", 1);
}

co_err co_layout_sha256(const co_layout *l, const float *state, char hex[65])
{
    int *idx = co_layout_by_name(l);
    co_sha256 h;

    if (!idx)
        return CO_ENOMEM;
    co_sha256_init(&h);
    for (int i = 0; i < l->n; i++) {
        const co_entry *e = &l->entry[idx[i]];
        co_layout_sha256_head(&h, e->name, co_dtype_name(e->dtype), &e->shape);
        co_sha256_add(&h, state + e->offset, e->count * sizeof *state);
    }
    co_sha256_hex(&h, hex);
    co_free(idx);
    return CO_OK;
}
