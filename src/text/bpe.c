/* bpe.c -- byte pair encoding: the characters of a word are joined, two neighbours at a time.
 *
 * Of all neighbours that may join, those of the lowest rank join first, the leftmost of them first
 * (Sennrich, Haddow, Birch 2016). The parts of a word stand in an array; each knows the rank at which it
 * joins its right neighbour, so a round is one pass over ranks. Cost: joins times parts; words are short.
 */
#include "text/text_int.h"

#include <string.h>

typedef struct part {
    int32_t id;
    uint32_t rank; /* of joining the next part; UINT32_MAX: they do not join */
    int32_t joined;
} part;

const merge *merge_find(const co_tokenizer *t, int32_t left, int32_t right)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t low = 0, high = t->n_merges;

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (t->merges[mid].pair < pair)
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->n_merges && t->merges[low].pair == pair ? &t->merges[low] : NULL;
}

/* --- the first parts: a character each ---------------------------------------------------------------- */
typedef struct parts {
    part *part;
    size_t n;
    bool after_unknown; /* the last part is an unknown one that the next unknown one melts into */
} parts;

static int32_t id_of(const co_tokenizer *t, const char *text, size_t len)
{
    const name_slot *slot = name_find(&t->vocab, text, len);

    return slot ? (int32_t)slot->value : -1;
}

static void add_part(parts *p, int32_t id)
{
    p->part[p->n++].id = id;
    p->after_unknown = false;
}

/* byte_fallback: <0x0A> for each byte, if the vocabulary has them all. */
static bool add_bytes(const co_tokenizer *t, parts *p, const char *text, int len)
{
    char name[8];
    int32_t id[4];

    for (int i = 0; i < len; i++) {
        snprintf(name, sizeof name, "<0x%02X>", (uint8_t)text[i]);
        if ((id[i] = id_of(t, name, 6)) < 0)
            return false;
    }
    for (int i = 0; i < len; i++)
        add_part(p, id[i]);
    return true;
}

static void add_unknown(const co_tokenizer *t, parts *p)
{
    if (t->unknown < 0 || (p->after_unknown && t->fuse_unknown))
        return;
    add_part(p, t->unknown);
    p->after_unknown = true;
}

static co_err first_parts(const co_tokenizer *t, parts *p, const char *text, size_t len)
{
    const char *end = text + len;
    co_str name = {0};
    co_err err = CO_OK;
    int n;

    for (const char *at = text; at < end && !err; at += n) {
        code_at(at, end, &n);
        co_str_clear(&name);
        co_str_add(&name, at > text ? t->inner_prefix : "");
        co_str_addn(&name, at, (size_t)n);
        co_str_add(&name, at + n == end ? t->end_suffix : "");
        int32_t id = id_of(t, co_str_text(&name), name.len);
        if (id >= 0)
            add_part(p, id);
        else if (!t->bytes_back || !add_bytes(t, p, co_str_text(&name), (int)(name.len < 4 ? name.len : 4)))
            add_unknown(t, p);
        err = co_str_err(&name);
    }
    co_str_fini(&name);
    return err;
}

/* --- joining ------------------------------------------------------------------------------------------ */
static void rank_part(const co_tokenizer *t, parts *p, size_t i)
{
    const merge *m = i + 1 < p->n ? merge_find(t, p->part[i].id, p->part[i + 1].id) : NULL;

    p->part[i].rank = m ? m->rank : UINT32_MAX;
    p->part[i].joined = m ? m->id : -1;
}

static void join_parts(const co_tokenizer *t, parts *p)
{
    for (size_t i = 0; i < p->n; i++)
        rank_part(t, p, i);
    for (;;) {
        size_t best = 0;
        for (size_t i = 1; i < p->n; i++)
            if (p->part[i].rank < p->part[best].rank)
                best = i;
        if (p->n == 0 || p->part[best].rank == UINT32_MAX)
            return;
        p->part[best].id = p->part[best].joined;
        memmove(&p->part[best + 1], &p->part[best + 2], (p->n - best - 2) * sizeof *p->part);
        p->n--;
        rank_part(t, p, best);
        if (best > 0)
            rank_part(t, p, best - 1);
    }
}

void encode_bpe(encoding *e, const char *text, size_t len)
{
    const co_tokenizer *t = e->t;
    int32_t whole = t->words_first ? id_of(t, text, len) : -1;
    /* A character has at most 4 parts, one for each of its bytes. */
    parts p = {.part = whole < 0 ? co_array(len + strlen(t->inner_prefix) + strlen(t->end_suffix), sizeof(part))
                                 : NULL};

    if (whole >= 0) {
        push_token(e, whole);
        return;
    }
    e->err = p.part ? first_parts(t, &p, text, len) : CO_ENOMEM;
    if (!e->err)
        join_parts(t, &p);
    for (size_t i = 0; i < p.n && !e->err; i++)
        push_token(e, p.part[i].id);
    co_free(p.part);
}
