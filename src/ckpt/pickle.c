/* pickle.c -- the stack machine of a pickle, protocol 2, the one that torch.save uses.
 *
 * One row per opcode. An opcode pushes a value, collects the values above the last mark, or puts them into the
 * list or dict below. Values are shared by pointer: the memo keeps them by number, so a value may occur in many
 * places, even inside itself. Nobody here walks through values, so that does no harm.
 *
 * Every length is compared with the bytes that are left. Nothing is popped below the last mark. Numbers of the
 * memo count up from 0, as every pickler writes them, so the memo is no larger than the pickle. An opcode makes
 * at most one value.
 */
#include "ckpt/pickle_int.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/str.h"

/* An array of pointers or numbers that grows. */
struct stack {
    void **at;
    size_t n, room;
};

typedef struct machine {
    const uint8_t *at, *end;
    const uint8_t *begin;
    co_pool *pool;
    struct stack values, memo;
    struct stack marks; /* how many values there were below each mark, as pointers */
    const char *what;
    bool drop_objects, stopped;
} machine;

/* --- helpers ---------------------------------------------------------------------------------------------- */
static co_err damaged(const machine *m, const char *why)
{
    return co_fail(CO_EFORMAT, "%s: its pickle is damaged at byte %zu: %s", m->what,
                   (size_t)(m->at - m->begin), why);
}

static co_err grow(struct stack *s, void *value)
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
static co_err take(machine *m, const uint8_t **out, size_t n)
{
    if (n > (size_t)(m->end - m->at))
        return damaged(m, "it is cut short");
    *out = m->at;
    m->at += n;
    return CO_OK;
}

static co_err take_number(machine *m, uint64_t *out, int bytes)
{
    const uint8_t *at = NULL;

    CO_TRY(take(m, &at, (size_t)bytes));
    *out = co_le_get(at, bytes);
    return CO_OK;
}

/* A line of text, up to its newline; in the pool. */
static co_err take_line(machine *m, const char **out)
{
    const uint8_t *end = memchr(m->at, '\n', (size_t)(m->end - m->at));

    if (!end)
        return damaged(m, "a name has no end");
    *out = co_pool_strn(m->pool, (const char *)m->at, (size_t)(end - m->at));
    m->at = end + 1;
    return *out ? CO_OK : CO_ENOMEM;
}

static co_err push(machine *m, const pickle_value *value)
{
    pickle_value *copy = co_pool_alloc(m->pool, sizeof *copy);

    if (!copy)
        return CO_ENOMEM;
    *copy = *value;
    return grow(&m->values, copy);
}

/* Values above the last mark. */
static size_t above_mark(const machine *m)
{
    size_t mark = m->marks.n ? (size_t)(uintptr_t)m->marks.at[m->marks.n - 1] : 0;

    return m->values.n - mark;
}

static co_err need(const machine *m, size_t n)
{
    return above_mark(m) < n ? damaged(m, "it takes more values than there are") : CO_OK;
}

static pickle_value *top(const machine *m, size_t below)
{
    return m->values.at[m->values.n - 1 - below];
}

/* Removes the last mark; *out, *n: the values that were above it, valid until the next push. */
static co_err pop_mark(machine *m, pickle_value ***out, size_t *n)
{
    if (m->marks.n == 0)
        return damaged(m, "there is no mark");
    *n = above_mark(m);
    m->values.n -= *n;
    m->marks.n--;
    *out = *n ? (pickle_value **)(m->values.at + m->values.n) : NULL; /* without values there is no array yet */
    return CO_OK;
}

/* Adds n values to a list or dict. */
static co_err add(machine *m, pickle_value *to, pickle_value *const *item, size_t n)
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

/* --- plain values ----------------------------------------------------------------------------------------- */
static co_err op_proto(machine *m)
{
    uint64_t protocol;

    CO_TRY(take_number(m, &protocol, 1));
    if (protocol == 2)
        return CO_OK;
    return co_fail(CO_EFORMAT,
                   "%s: pickle protocol %d; only 2 is read, which torch.save uses unless told otherwise",
                   m->what, (int)protocol);
}

static co_err op_none(machine *m)
{
    return push(m, &(pickle_value){.kind = PICKLE_NONE});
}

static co_err op_true(machine *m)
{
    return push(m, &(pickle_value){.kind = PICKLE_BOOL, .number = 1});
}

static co_err op_false(machine *m)
{
    return push(m, &(pickle_value){.kind = PICKLE_BOOL});
}

static co_err push_int(machine *m, int bytes)
{
    uint64_t x;

    CO_TRY(take_number(m, &x, bytes));
    int64_t number = bytes == 4 ? (int32_t)(uint32_t)x : (int64_t)x;
    return push(m, &(pickle_value){.kind = PICKLE_INT, .number = number});
}

static co_err op_int1(machine *m)
{
    return push_int(m, 1);
}

static co_err op_int2(machine *m)
{
    return push_int(m, 2);
}

static co_err op_int4(machine *m)
{
    return push_int(m, 4);
}

/* A number of any length, in two's complement. One above 64 bits has no value here. */
static co_err op_long(machine *m)
{
    uint64_t n = 0;
    const uint8_t *at = NULL;

    CO_TRY(take_number(m, &n, 1));
    CO_TRY(take(m, &at, (size_t)n));
    if (n > 8)
        return push(m, &(pickle_value){.kind = PICKLE_OBJECT});
    uint64_t x = n && (at[n - 1] & 0x80) ? ~(uint64_t)0 : 0;
    for (size_t i = (size_t)n; i-- > 0;)
        x = x << 8 | at[i];
    return push(m, &(pickle_value){.kind = PICKLE_INT, .number = (int64_t)x});
}

/* Big-endian, unlike all other numbers. */
static co_err op_float(machine *m)
{
    const uint8_t *at = NULL;
    uint64_t bits = 0;
    pickle_value v = {.kind = PICKLE_FLOAT};

    CO_TRY(take(m, &at, 8));
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | at[i];
    memcpy(&v.real, &bits, sizeof v.real);
    return push(m, &v);
}

static co_err op_text(machine *m)
{
    uint64_t n = 0;
    const uint8_t *at = NULL;

    CO_TRY(take_number(m, &n, 4));
    CO_TRY(take(m, &at, (size_t)n));
    char *text = co_pool_strn(m->pool, (const char *)at, (size_t)n);
    return text ? push(m, &(pickle_value){.kind = PICKLE_TEXT, .text = text, .len = (size_t)n}) : CO_ENOMEM;
}

/* --- marks, memo and collections -------------------------------------------------------------------------- */
static co_err op_mark(machine *m)
{
    return grow(&m->marks, (void *)(uintptr_t)m->values.n);
}

static co_err op_pop(machine *m)
{
    CO_TRY(need(m, 1));
    m->values.n--;
    return CO_OK;
}

static co_err put(machine *m, int bytes)
{
    uint64_t i;

    CO_TRY(take_number(m, &i, bytes));
    CO_TRY(need(m, 1));
    if (i > m->memo.n)
        return damaged(m, "a number of the memo is too large");
    if (i == m->memo.n)
        return grow(&m->memo, top(m, 0));
    m->memo.at[i] = top(m, 0);
    return CO_OK;
}

static co_err op_put1(machine *m)
{
    return put(m, 1);
}

static co_err op_put4(machine *m)
{
    return put(m, 4);
}

static co_err get(machine *m, int bytes)
{
    uint64_t i;

    CO_TRY(take_number(m, &i, bytes));
    return i < m->memo.n ? grow(&m->values, m->memo.at[i]) : damaged(m, "the memo has no such number");
}

static co_err op_get1(machine *m)
{
    return get(m, 1);
}

static co_err op_get4(machine *m)
{
    return get(m, 4);
}

static co_err op_empty_list(machine *m)
{
    return push(m, &(pickle_value){.kind = PICKLE_LIST});
}

static co_err op_empty_dict(machine *m)
{
    return push(m, &(pickle_value){.kind = PICKLE_DICT});
}

static co_err op_empty_tuple(machine *m)
{
    return push(m, &(pickle_value){.kind = PICKLE_TUPLE});
}

static co_err push_tuple(machine *m, pickle_value *const *item, size_t n)
{
    pickle_value v = {.kind = PICKLE_TUPLE};

    CO_TRY(add(m, &v, item, n));
    return push(m, &v);
}

static co_err op_tuple(machine *m)
{
    pickle_value **item = NULL;
    size_t n = 0;

    CO_TRY(pop_mark(m, &item, &n));
    return push_tuple(m, item, n);
}

static co_err tuple_of(machine *m, size_t n)
{
    CO_TRY(need(m, n));
    m->values.n -= n;
    return push_tuple(m, (pickle_value **)(m->values.at + m->values.n), n);
}

static co_err op_tuple1(machine *m)
{
    return tuple_of(m, 1);
}

static co_err op_tuple2(machine *m)
{
    return tuple_of(m, 2);
}

static co_err op_tuple3(machine *m)
{
    return tuple_of(m, 3);
}

/* Puts n values into the value below them. An OBJECT takes anything and keeps nothing. */
static co_err put_into(machine *m, pickle_kind kind, pickle_value *const *item, size_t n)
{
    CO_TRY(need(m, 1));
    pickle_value *to = top(m, 0);
    if (to->kind == PICKLE_OBJECT)
        return CO_OK;
    if (to->kind != kind || (kind == PICKLE_DICT && n % 2))
        return damaged(m, "values are added to something that takes none");
    return add(m, to, item, n);
}

static co_err put_marked(machine *m, pickle_kind kind)
{
    pickle_value **item = NULL;
    size_t n = 0;

    CO_TRY(pop_mark(m, &item, &n));
    return put_into(m, kind, item, n);
}

static co_err op_appends(machine *m)
{
    return put_marked(m, PICKLE_LIST);
}

static co_err op_setitems(machine *m)
{
    return put_marked(m, PICKLE_DICT);
}

static co_err put_last(machine *m, pickle_kind kind, size_t n)
{
    CO_TRY(need(m, n));
    m->values.n -= n;
    return put_into(m, kind, (pickle_value **)(m->values.at + m->values.n), n);
}

static co_err op_append(machine *m)
{
    return put_last(m, PICKLE_LIST, 1);
}

static co_err op_setitem(machine *m)
{
    return put_last(m, PICKLE_DICT, 2);
}

/* --- names, calls and storages ---------------------------------------------------------------------------- */
static co_err op_global(machine *m)
{
    const char *module, *name;
    char shown[160], clean[160];

    CO_TRY(take_line(m, &module));
    CO_TRY(take_line(m, &name));
    const pickle_global *global = pickle_find_global(module, name);
    if (global)
        return push(m, &(pickle_value){.kind = PICKLE_GLOBAL, .global = global});
    if (m->drop_objects)
        return push(m, &(pickle_value){.kind = PICKLE_OBJECT});
    snprintf(shown, sizeof shown, "%.80s.%.70s", module, name);
    co_utf8_clean(clean, sizeof clean, shown);
    return co_fail(
        CO_EINPUT,
        "%s asks for %s: only tensors and plain values are read (`cohort ckpt import --drop-objects` leaves "
        "the rest out; nothing of it is ever run)",
        m->what, clean);
}

/* callable, tuple -> value. REDUCE calls a function, NEWOBJ makes an object of a class. */
static co_err op_call(machine *m)
{
    pickle_value made = {.kind = PICKLE_OBJECT};

    CO_TRY(need(m, 2));
    const pickle_value *function = top(m, 1), *args = top(m, 0);
    bool known = function->kind == PICKLE_GLOBAL && function->global->call;
    if (args->kind != PICKLE_TUPLE || (!known && function->kind != PICKLE_OBJECT))
        return damaged(m, "something is called that is no function");
    m->values.n -= 2;
    co_err err = known ? function->global->call(&made, args) : CO_OK;
    if (err)
        return co_fail(err, "%s: its pickle is damaged at byte %zu: %s.%s has wrong arguments", m->what,
                       (size_t)(m->at - m->begin), function->global->module, function->global->name);
    return push(m, &made);
}

/* object, state -> object. The attributes of an OrderedDict (_metadata) are not weights. */
static co_err op_build(machine *m)
{
    CO_TRY(need(m, 2));
    m->values.n--;
    pickle_kind kind = top(m, 0)->kind;
    return kind == PICKLE_DICT || kind == PICKLE_OBJECT || kind == PICKLE_TENSOR
               ? CO_OK
               : damaged(m, "a plain value has attributes");
}

/* ('storage', torch.FloatStorage, '0', 'cpu', elements) -> the storage in the archive's entry data/0. */
static co_err op_persistent(machine *m)
{
    CO_TRY(need(m, 1));
    const pickle_value *id = top(m, 0);
    pickle_value *const *item = id->kind == PICKLE_TUPLE && id->n == 5 ? id->item : NULL;

    m->values.n--;
    if (item && item[1]->kind == PICKLE_OBJECT)
        return push(m, &(pickle_value){.kind = PICKLE_OBJECT});
    if (!item || item[0]->kind != PICKLE_TEXT || strcmp(item[0]->text, "storage") != 0 ||
        item[1]->kind != PICKLE_GLOBAL || !item[1]->global->dtype || item[2]->kind != PICKLE_TEXT ||
        item[4]->kind != PICKLE_INT || item[4]->number < 0)
        return damaged(m, "a storage is described wrongly");
    return push(m, &(pickle_value){.kind = PICKLE_STORAGE,
                                   .storage = {.dtype = item[1]->global->dtype,
                                               .key = item[2]->text,
                                               .elements = item[4]->number,
                                               .element_size = item[1]->global->element_size}});
}

static co_err op_stop(machine *m)
{
    m->stopped = true;
    if (m->values.n != 1 || m->marks.n != 0)
        return damaged(m, "it ends with values left over");
    return m->at == m->end ? CO_OK : damaged(m, "bytes follow its end");
}

/* --- the machine ------------------------------------------------------------------------------------------ */
static co_err (*const ops[256])(machine *) = {
    [0x80] = op_proto,    ['.'] = op_stop,       ['N'] = op_none,       [0x88] = op_true,
    [0x89] = op_false,    ['K'] = op_int1,       ['M'] = op_int2,       ['J'] = op_int4,
    [0x8a] = op_long,     ['G'] = op_float,      ['X'] = op_text,       ['('] = op_mark,
    ['0'] = op_pop,       ['q'] = op_put1,       ['r'] = op_put4,       ['h'] = op_get1,
    ['j'] = op_get4,      [']'] = op_empty_list, ['}'] = op_empty_dict, [')'] = op_empty_tuple,
    ['t'] = op_tuple,     [0x85] = op_tuple1,    [0x86] = op_tuple2,    [0x87] = op_tuple3,
    ['a'] = op_append,    ['e'] = op_appends,    ['s'] = op_setitem,    ['u'] = op_setitems,
    ['c'] = op_global,    ['R'] = op_call,       [0x81] = op_call,      ['b'] = op_build,
    ['Q'] = op_persistent};

static co_err run(machine *m)
{
    while (!m->stopped) {
        const uint8_t *op = NULL;
        CO_TRY(take(m, &op, 1));
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
    machine m = {.at = bytes, .begin = bytes, .pool = pool, .what = what, .drop_objects = drop_objects};

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
    for (size_t i = dict->n; i >= 2; i -= 2) { /* from the end: of two equal keys Python keeps the later value */
        const pickle_value *k = dict->item[i - 2];
        if (k->kind == PICKLE_TEXT && strlen(k->text) == k->len && strcmp(k->text, key) == 0)
            return dict->item[i - 1];
    }
    return NULL;
}
