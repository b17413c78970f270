/* pickle.c -- the stack machine of a pickle, protocol 2, the one that torch.save uses.
 *
 * One function per opcode, in the files pickle_plain.c, pickle_collections.c and pickle_calls.c. An opcode
 * pushes a value, collects the values above the last mark, or puts them into the list or dict below. Values
 * are shared by pointer: the memo keeps them by number, so a value may occur in many places, even inside
 * itself. Nobody here walks through values, so that does no harm.
 *
 * Every length is compared with the bytes that are left. Nothing is popped below the last mark. Numbers of
 * the memo count up from 0, as every pickler writes them, so the memo is no larger than the pickle. An opcode
 * makes at most one value.
 */
#include <string.h>

#include "ckpt/pickle_machine_int.h"

static co_err run(pickle_machine *m)
{
    pickle_op *ops[256] = {0};

    pickle_ops_plain(ops);
    pickle_ops_collections(ops);
    pickle_ops_calls(ops);
    while (!m->stopped) {
        const uint8_t *op = NULL;
        CO_TRY(pickle_take(m, &op, 1));
        if (!ops[*op])
            return co_fail(CO_EFORMAT,
                           "%s: its pickle has opcode 0x%02x at byte %zu, which torch.save does not use",
                           m->what, *op, (size_t)(op - m->begin));
        CO_TRY(ops[*op](m));
    }
    return CO_OK;
}

co_err pickle_parse(const pickle_value **out, co_pool *pool, const void *bytes, size_t len, const char *what,
                    bool drop_objects)
{
    pickle_machine m = {.at = bytes, .begin = bytes, .pool = pool, .what = what, .drop_objects = drop_objects};

    m.end = m.at + len;
    co_err err = run(&m);
    if (!err)
        *out = m.values.at[0];
    co_free(m.values.at);
    co_free(m.memo.at);
    co_free(m.marks.at);
    return err;
}

const pickle_value *pickle_get(const pickle_value *dict, const char *key)
{
    if (!dict || dict->kind != PICKLE_DICT)
        return NULL;
    /* from the end: of two equal keys Python keeps the later value */
    for (size_t i = dict->n; i >= 2; i -= 2) {
        const pickle_value *k = dict->item[i - 2];
        if (k->kind == PICKLE_TEXT && strlen(k->text) == k->len && strcmp(k->text, key) == 0)
            return dict->item[i - 1];
    }
    return NULL;
}
