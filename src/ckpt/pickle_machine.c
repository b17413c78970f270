/* pickle_machine.c -- the stack of the pickle reader: bytes in, values up and down. Every length is compared
 * with the bytes that are left, and nothing is popped below the last mark. */
#include "ckpt/pickle_machine_int.h"

#include <string.h>

#include "base/bytes.h"

co_err pickle_damaged(const pickle_machine *m, const char *why)
{
    return co_fail(CO_EFORMAT, "%s: its pickle is damaged at byte %zu: %s", m->what,
                   (size_t)(m->at - m->begin), why);
}

co_err pickle_grow(pickle_stack *s, void *value)
{
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        void **at = co_realloc(s->at, room * sizeof *at);
        if (!at)
            return CO_ENOMEM;
        s->at = at;
        s->room = room;
    }
    s->at[s->n++] = value;
    return CO_OK;
}

/* Takes n bytes of the pickle. */
co_err pickle_take(pickle_machine *m, const uint8_t **out, size_t n)
{
    if (n > (size_t)(m->end - m->at))
        return pickle_damaged(m, "it is cut short");
    *out = m->at;
    m->at += n;
    return CO_OK;
}

co_err pickle_take_number(pickle_machine *m, uint64_t *out, int bytes)
{
    const uint8_t *at = NULL;

    CO_TRY(pickle_take(m, &at, (size_t)bytes));
    *out = co_le_get(at, bytes);
    return CO_OK;
}

/* A line of text, up to its newline; in the pool. */
co_err pickle_take_line(pickle_machine *m, const char **out)
{
    const uint8_t *end = memchr(m->at, '\n', (size_t)(m->end - m->at));

    if (!end)
        return pickle_damaged(m, "a name has no end");
    *out = co_pool_strn(m->pool, (const char *)m->at, (size_t)(end - m->at));
    m->at = end + 1;
    return *out ? CO_OK : CO_ENOMEM;
}

co_err pickle_push(pickle_machine *m, const pickle_value *value)
{
    pickle_value *copy = co_pool_alloc(m->pool, sizeof *copy);

    if (!copy)
        return CO_ENOMEM;
    *copy = *value;
    return pickle_grow(&m->values, copy);
}

/* Values above the last mark. */
static size_t above_mark(const pickle_machine *m)
{
    size_t mark = m->marks.n ? (size_t)(uintptr_t)m->marks.at[m->marks.n - 1] : 0;

    return m->values.n - mark;
}

co_err pickle_need(const pickle_machine *m, size_t n)
{
    return above_mark(m) < n ? pickle_damaged(m, "it takes more values than there are") : CO_OK;
}

pickle_value *pickle_top(const pickle_machine *m, size_t below)
{
    return m->values.at[m->values.n - 1 - below];
}

/* Removes the last mark; *out, *n: the values that were above it, valid until the next push. */
co_err pickle_pop_mark(pickle_machine *m, pickle_value ***out, size_t *n)
{
    if (m->marks.n == 0)
        return pickle_damaged(m, "there is no mark");
    *n = above_mark(m);
    m->values.n -= *n;
    m->marks.n--;
    /* Without values there is no array yet. */
    *out = *n ? (pickle_value **)(m->values.at + m->values.n) : NULL;
    return CO_OK;
}

/* Adds n values to a list or dict. */
co_err pickle_add(pickle_machine *m, pickle_value *to, pickle_value *const *item, size_t n)
{
    if (to->room - to->n < n) {
        size_t room = to->n + n < 2 * to->room ? 2 * to->room : to->n + n;
        pickle_value **grown = co_pool_alloc(m->pool, room * sizeof *grown);
        if (!grown)
            return CO_ENOMEM;
        if (to->n)
            memcpy(grown, to->item, to->n * sizeof *grown);
        to->item = grown;
        to->room = room;
    }
    if (n)
        memcpy(to->item + to->n, item, n * sizeof *item);
    to->n += n;
    return CO_OK;
}
