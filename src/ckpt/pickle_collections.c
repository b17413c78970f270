/* pickle_collections.c -- the opcodes of marks, memo, lists, tuples and dicts. */
#include "ckpt/pickle_machine_int.h"

static co_err op_mark(pickle_machine *m)
{
    return pickle_grow(&m->marks, (void *)(uintptr_t)m->values.n);
}

static co_err op_pop(pickle_machine *m)
{
    CO_TRY(pickle_need(m, 1));
    m->values.n--;
    return CO_OK;
}

static co_err put(pickle_machine *m, int bytes)
{
    uint64_t i;

    CO_TRY(pickle_take_number(m, &i, bytes));
    CO_TRY(pickle_need(m, 1));
    if (i > m->memo.n)
        return pickle_damaged(m, "a number of the memo is too large");
    if (i == m->memo.n)
        return pickle_grow(&m->memo, pickle_top(m, 0));
    m->memo.at[i] = pickle_top(m, 0);
    return CO_OK;
}

static co_err op_put1(pickle_machine *m)
{
    return put(m, 1);
}

static co_err op_put4(pickle_machine *m)
{
    return put(m, 4);
}

static co_err get(pickle_machine *m, int bytes)
{
    uint64_t i;

    CO_TRY(pickle_take_number(m, &i, bytes));
    return i < m->memo.n ? pickle_grow(&m->values, m->memo.at[i])
                         : pickle_damaged(m, "the memo has no such number");
}

static co_err op_get1(pickle_machine *m)
{
    return get(m, 1);
}

static co_err op_get4(pickle_machine *m)
{
    return get(m, 4);
}

static co_err op_empty_list(pickle_machine *m)
{
    return pickle_push(m, &(pickle_value){.kind = PICKLE_LIST});
}

static co_err op_empty_dict(pickle_machine *m)
{
    return pickle_push(m, &(pickle_value){.kind = PICKLE_DICT});
}

static co_err op_empty_tuple(pickle_machine *m)
{
    return pickle_push(m, &(pickle_value){.kind = PICKLE_TUPLE});
}

static co_err push_tuple(pickle_machine *m, pickle_value *const *item, size_t n)
{
    pickle_value v = {.kind = PICKLE_TUPLE};

    CO_TRY(pickle_add(m, &v, item, n));
    return pickle_push(m, &v);
}

static co_err op_tuple(pickle_machine *m)
{
    pickle_value **item = NULL;
    size_t n = 0;

    CO_TRY(pickle_pop_mark(m, &item, &n));
    return push_tuple(m, item, n);
}

static co_err tuple_of(pickle_machine *m, size_t n)
{
    CO_TRY(pickle_need(m, n));
    m->values.n -= n;
    return push_tuple(m, (pickle_value **)(m->values.at + m->values.n), n);
}

static co_err op_tuple1(pickle_machine *m)
{
    return tuple_of(m, 1);
}

static co_err op_tuple2(pickle_machine *m)
{
    return tuple_of(m, 2);
}

static co_err op_tuple3(pickle_machine *m)
{
    return tuple_of(m, 3);
}

/* Puts n values into the value below them. An OBJECT takes anything and keeps nothing. */
static co_err put_into(pickle_machine *m, pickle_kind kind, pickle_value *const *item, size_t n)
{
    CO_TRY(pickle_need(m, 1));
    pickle_value *to = pickle_top(m, 0);
    if (to->kind == PICKLE_OBJECT)
        return CO_OK;
    if (to->kind != kind || (kind == PICKLE_DICT && n % 2))
        return pickle_damaged(m, "values are added to something that takes none");
    return pickle_add(m, to, item, n);
}

static co_err put_marked(pickle_machine *m, pickle_kind kind)
{
    pickle_value **item = NULL;
    size_t n = 0;

    CO_TRY(pickle_pop_mark(m, &item, &n));
    return put_into(m, kind, item, n);
}

static co_err op_appends(pickle_machine *m)
{
    return put_marked(m, PICKLE_LIST);
}

static co_err op_setitems(pickle_machine *m)
{
    return put_marked(m, PICKLE_DICT);
}

static co_err put_last(pickle_machine *m, pickle_kind kind, size_t n)
{
    CO_TRY(pickle_need(m, n));
    m->values.n -= n;
    return put_into(m, kind, (pickle_value **)(m->values.at + m->values.n), n);
}

static co_err op_append(pickle_machine *m)
{
    return put_last(m, PICKLE_LIST, 1);
}

static co_err op_setitem(pickle_machine *m)
{
    return put_last(m, PICKLE_DICT, 2);
}

void pickle_ops_collections(pickle_op *ops[256])
{
    ops['('] = op_mark;
    ops['0'] = op_pop;
    ops['q'] = op_put1;
    ops['r'] = op_put4;
    ops['h'] = op_get1;
    ops['j'] = op_get4;
    ops[']'] = op_empty_list;
    ops['}'] = op_empty_dict;
    ops[')'] = op_empty_tuple;
    ops['t'] = op_tuple;
    ops[0x85] = op_tuple1;
    ops[0x86] = op_tuple2;
    ops[0x87] = op_tuple3;
    ops['a'] = op_append;
    ops['e'] = op_appends;
    ops['s'] = op_setitem;
    ops['u'] = op_setitems;
}
