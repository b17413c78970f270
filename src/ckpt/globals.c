/* globals.c -- the names that a pickle may use, and what they mean here: a table of what torch.save writes
 * for state dicts. None of them does more than put values together. */
#include "ckpt/pickle_int.h"

#include <string.h>

static bool is(const pickle_value *v, pickle_kind kind)
{
    return v->kind == kind;
}

/* OrderedDict() */
static co_err make_dict(pickle_value *out, const pickle_value *args)
{
    if (args->n != 0)
        return CO_EFORMAT;
    *out = (pickle_value){.kind = PICKLE_DICT};
    return CO_OK;
}

/* torch.Size((2, 3)) */
static co_err make_size(pickle_value *out, const pickle_value *args)
{
    if (args->n != 1 || !is(args->item[0], PICKLE_TUPLE))
        return CO_EFORMAT;
    *out = *args->item[0];
    return CO_OK;
}

/* _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks[, metadata]). The numbers
 * are checked by torch.c, which knows the tensor's name. */
static co_err make_tensor(pickle_value *out, const pickle_value *args)
{
    if (args->n < 6 || args->n > 7)
        return CO_EFORMAT;
    pickle_value *const *arg = args->item;
    if (is(arg[0], PICKLE_OBJECT)) { /* a storage of another kind, which is to be dropped */
        *out = (pickle_value){.kind = PICKLE_OBJECT};
        return CO_OK;
    }
    if (!is(arg[0], PICKLE_STORAGE) || !is(arg[1], PICKLE_INT) || !is(arg[2], PICKLE_TUPLE) ||
        !is(arg[3], PICKLE_TUPLE))
        return CO_EFORMAT;
    *out = (pickle_value){.kind = PICKLE_TENSOR, .tensor = {arg[0], arg[1], arg[2], arg[3]}};
    return CO_OK;
}

/* _rebuild_parameter(tensor, requires_grad, backward_hooks) */
static co_err make_parameter(pickle_value *out, const pickle_value *args)
{
    if (args->n != 3 || (!is(args->item[0], PICKLE_TENSOR) && !is(args->item[0], PICKLE_OBJECT)))
        return CO_EFORMAT;
    *out = *args->item[0];
    return CO_OK;
}

static const pickle_global globals[] = {
    {"collections", "OrderedDict", .call = make_dict},
    {"torch", "Size", .call = make_size},
    {"torch._utils", "_rebuild_tensor_v2", .call = make_tensor},
    {"torch._utils", "_rebuild_parameter", .call = make_parameter},
    {"torch", "FloatStorage", "F32", 4},
    {"torch", "DoubleStorage", "F64", 8},
    {"torch", "HalfStorage", "F16", 2},
    {"torch", "BFloat16Storage", "BF16", 2},
    {"torch", "LongStorage", "I64", 8},
    {"torch", "IntStorage", "I32", 4},
    {"torch", "ShortStorage", "I16", 2},
    {"torch", "CharStorage", "I8", 1},
    {"torch", "ByteStorage", "U8", 1},
    {"torch", "BoolStorage", "BOOL", 1},
};

const pickle_global *pickle_find_global(const char *module, const char *name)
{
    for (size_t i = 0; i < CO_COUNT(globals); i++)
        if (strcmp(globals[i].module, module) == 0 && strcmp(globals[i].name, name) == 0)
            return &globals[i];
    return NULL;
}
