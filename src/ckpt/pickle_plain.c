/* pickle_plain.c -- the opcodes that push a plain value. */
#include "ckpt/pickle_machine_int.h"

#include <string.h>

static co_err op_proto(pickle_machine *m)
{
    uint64_t protocol;

    CO_TRY(pickle_take_number(m, &protocol, 1));
    if (protocol == 2)
        return CO_OK;
    return co_fail(CO_EFORMAT,
                   "%s: pickle protocol %d; only 2 is read, which torch.save uses unless told otherwise",
                   m->what, (int)protocol);
}

static co_err op_none(pickle_machine *m)
{
    return pickle_push(m, &(pickle_value){.kind = PICKLE_NONE});
}

static co_err op_true(pickle_machine *m)
{
    return pickle_push(m, &(pickle_value){.kind = PICKLE_BOOL, .number = 1});
}

static co_err op_false(pickle_machine *m)
{
    return pickle_push(m, &(pickle_value){.kind = PICKLE_BOOL});
}

static co_err push_int(pickle_machine *m, int bytes)
{
    uint64_t x;

    CO_TRY(pickle_take_number(m, &x, bytes));
    int64_t number = bytes == 4 ? (int32_t)(uint32_t)x : (int64_t)x;
    return pickle_push(m, &(pickle_value){.kind = PICKLE_INT, .number = number});
}

static co_err op_int1(pickle_machine *m)
{
    return push_int(m, 1);
}

static co_err op_int2(pickle_machine *m)
{
    return push_int(m, 2);
}

static co_err op_int4(pickle_machine *m)
{
    return push_int(m, 4);
}

/* A number of any length, in two's complement. One above 64 bits has no value here. */
static co_err op_long(pickle_machine *m)
{
    uint64_t n = 0;
    const uint8_t *at = NULL;

    CO_TRY(pickle_take_number(m, &n, 1));
    CO_TRY(pickle_take(m, &at, (size_t)n));
    if (n > 8)
        return pickle_push(m, &(pickle_value){.kind = PICKLE_OBJECT});
    uint64_t x = n && (at[n - 1] & 0x80) ? ~(uint64_t)0 : 0;
    for (size_t i = (size_t)n; i-- > 0;)
        x = x << 8 | at[i];
    return pickle_push(m, &(pickle_value){.kind = PICKLE_INT, .number = (int64_t)x});
}

/* Big-endian, unlike all other numbers. */
static co_err op_float(pickle_machine *m)
{
    const uint8_t *at = NULL;
    uint64_t bits = 0;
    pickle_value v = {.kind = PICKLE_FLOAT};

    CO_TRY(pickle_take(m, &at, 8));
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | at[i];
    memcpy(&v.real, &bits, sizeof v.real);
    return pickle_push(m, &v);
}

static co_err op_text(pickle_machine *m)
{
    uint64_t n = 0;
    const uint8_t *at = NULL;

    CO_TRY(pickle_take_number(m, &n, 4));
    CO_TRY(pickle_take(m, &at, (size_t)n));
    char *text = co_pool_strn(m->pool, (const char *)at, (size_t)n);
    return text ? pickle_push(m, &(pickle_value){.kind = PICKLE_TEXT, .text = text, .len = (size_t)n})
                : CO_ENOMEM;
}

void pickle_ops_plain(pickle_op *ops[256])
{
    ops[0x80] = op_proto;
    ops['N'] = op_none;
    ops[0x88] = op_true;
    ops[0x89] = op_false;
    ops['K'] = op_int1;
    ops['M'] = op_int2;
    ops['J'] = op_int4;
    ops[0x8a] = op_long;
    ops['G'] = op_float;
    ops['X'] = op_text;
}
