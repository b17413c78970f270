/* pairs_tokens.c -- tokenizers for both sides, and the tokens of all pairs.
 *
 * A tokenizer that is not given is trained on the pairs to train on alone: what is held out has no say. A
 * pair is too long if its source with begin and end, or its target with one of them, has more than
 * data.max_len tokens.
 */
#include "data/pairs_int.h"

static const char *const sides[] = {"src", "tgt"};

static co_err train(struct pairs *set, co_side side, const uint8_t *part, const pair_words *words)
{
    co_word_counter *counter;

    CO_TRY(co_word_counter_new(&counter));
    co_err err = CO_OK;
    for (uint32_t i = 0; i < set->list.n && !err; i++)
        if (part[i] == CO_SPLIT_TRAIN) {
            const char *text = pair_text(&set->list, i, side);
            err = co_word_counter_add(counter, text, set->list.pair[i].side[side].len);
        }
    if (!err)
        err = co_word_counter_tokenizer(counter, &set->tokenizer[side], words->min_count, words->most_tokens);
    co_word_counter_free(counter);
    return err;
}

co_err pairs_tokenizers(struct pairs *set, const uint8_t *part, const pair_words *words)
{
    for (int side = 0; side < 2; side++) {
        const char *file = words->file[side];
        co_err err =
            file ? co_tokenizer_read(&set->tokenizer[side], file) : train(set, (co_side)side, part, words);
        if (!err)
            err = co_tokenizer_marks(set->tokenizer[side], &set->marks[side]);
        if (file && err == CO_EINPUT)
            return co_fail_in(err, "data.tokenizer_%s=%s", sides[side], file);
        if (err)
            return err;
    }
    return CO_OK;
}

/* --- tokens of all pairs ------------------------------------------------------------------------------ */
/* Appends the tokens of pair i to `out`; *source is how many its source has. */
static co_err encode_pair(const struct pairs *set, uint32_t i, co_tokens *out, uint32_t *source)
{
    size_t before = out->n;

    for (int side = 0; side < 2; side++) {
        CO_TRY(co_tokenizer_encode(set->tokenizer[side], out, pair_text(&set->list, i, (co_side)side),
                                   set->list.pair[i].side[side].len));
        if (side == CO_SIDE_SOURCE)
            *source = (uint32_t)(out->n - before) + 2;
    }
    return CO_OK;
}

/* The samples of one split, in the order of the file. */
struct making {
    co_tokens all;
    uint64_t *start;
    uint32_t *place, *source;
    uint32_t n, left_out;
    int64_t longest;
};

static co_err take_pair(struct making *m, const struct pairs *set, uint32_t i)
{
    size_t from = m->all.n;
    uint32_t source;

    CO_TRY(encode_pair(set, i, &m->all, &source));
    int64_t target = (int64_t)(m->all.n - from) - (source - 2) + 1;
    int64_t longer = target > source ? target : source;
    if (longer > set->limit) {
        m->all.n = from;
        m->left_out++;
        return CO_OK;
    }
    m->longest = longer > m->longest ? longer : m->longest;
    m->start[m->n] = from;
    m->source[m->n] = source;
    m->place[m->n++] = i;
    m->start[m->n] = m->all.n;
    return CO_OK;
}

static co_err take_all(struct making *m, struct pairs *set, const uint8_t *part)
{
    uint32_t n = set->list.n;

    m->start = co_array((size_t)n + 1, sizeof *m->start);
    m->place = co_array(n, sizeof *m->place);
    m->source = co_array(n, sizeof *m->source);
    if (!m->start || !m->place || !m->source)
        return CO_ENOMEM;
    for (int s = 0; s < CO_SPLIT_COUNT; s++) {
        uint32_t before = m->n;
        for (uint32_t i = 0; i < n; i++)
            if (part[i] == s)
                CO_TRY(take_pair(m, set, i));
        set->base.count[s] = m->n - before;
    }
    return CO_OK;
}

/* tokens: source words, target words -> begin, source words, end, target words. */
static co_err share(struct pairs *set, const struct making *m)
{
    uint64_t at = 0;
    size_t bytes = (m->all.n + 2 * (size_t)m->n + 1) * sizeof *set->tokens;

    set->tokens = co_alloc_shared(bytes);
    set->start = co_alloc_shared(((size_t)m->n + 1) * sizeof *set->start);
    set->source = co_alloc_shared(((size_t)m->n + 1) * sizeof *set->source);
    set->place = co_alloc_shared(((size_t)m->n + 1) * sizeof *set->place);
    if (!set->tokens || !set->start || !set->source || !set->place)
        return CO_ENOMEM;
    for (uint32_t i = 0; i < m->n; i++) {
        const int32_t *word = m->all.id + m->start[i], *end = m->all.id + m->start[i + 1];
        set->start[i] = at;
        set->source[i] = m->source[i];
        set->place[i] = m->place[i];
        set->tokens[at++] = set->marks[CO_SIDE_SOURCE].begin;
        for (uint32_t k = 0; word < end; k++) {
            if (k == m->source[i] - 2)
                set->tokens[at++] = set->marks[CO_SIDE_SOURCE].end;
            set->tokens[at++] = *word++;
        }
        if (m->start[i + 1] - m->start[i] == m->source[i] - 2) /* the target has no words */
            set->tokens[at++] = set->marks[CO_SIDE_SOURCE].end;
    }
    set->start[m->n] = at;
    set->base.shared_bytes = bytes + ((size_t)m->n + 1) * (sizeof *set->start + 2 * sizeof *set->place);
    return CO_OK;
}

co_err pairs_tokens(struct pairs *set, const uint8_t *part, uint32_t *left_out)
{
    struct making m = {0};
    co_err err = take_all(&m, set, part);

    if (!err)
        err = share(set, &m);
    if (!err)
        err = pairs_set_io(set, m.longest);
    *left_out = m.left_out;
    co_tokens_fini(&m.all);
    co_free(m.start);
    co_free(m.place);
    co_free(m.source);
    return err;
}
