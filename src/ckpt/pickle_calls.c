/* pickle_calls.c -- the opcodes that name something, call it or end the pickle. Only names of globals.c are
 * known. */
#include "ckpt/pickle_machine_int.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

static co_err op_global(pickle_machine *m)
{
    const char *module, *name;
    char shown[160], clean[160];

    CO_TRY(pickle_take_line(m, &module));
    CO_TRY(pickle_take_line(m, &name));
    const pickle_global *global = pickle_find_global(module, name);
    if (global)
        return pickle_push(m, &(pickle_value){.kind = PICKLE_GLOBAL, .global = global});
    if (m->drop_objects)
        return pickle_push(m, &(pickle_value){.kind = PICKLE_OBJECT});
    snprintf(shown, sizeof shown, "%.80s.%.70s", module, name);
    co_utf8_clean(clean, sizeof clean, shown);
    bool whole = m->values.n == 0; /* this makes the outermost value, in which all others are */
    return co_fail(
        CO_EINPUT, "%s asks for %s: only tensors and plain values are read%s", m->what, clean,
        whole ? ". The file is a whole object, such as torch.save(model) writes, and no state dict; save"
                " that: torch.save(model.state_dict(), \"model.pth\")"
              : " (`cohort ckpt import --drop-objects` leaves the rest out; nothing of it is ever run)");
}

/* callable, tuple -> value. REDUCE calls a function, NEWOBJ makes an object of a class. */
static co_err op_call(pickle_machine *m)
{
    pickle_value made = {.kind = PICKLE_OBJECT};

    CO_TRY(pickle_need(m, 2));
    const pickle_value *function = pickle_top(m, 1), *args = pickle_top(m, 0);
    bool known = function->kind == PICKLE_GLOBAL && function->global->call;
    if (args->kind != PICKLE_TUPLE || (!known && function->kind != PICKLE_OBJECT))
        return pickle_damaged(m, "something is called that is no function");
    m->values.n -= 2;
    co_err err = known ? function->global->call(&made, args) : CO_OK;
    if (err)
        return co_fail(err, "%s: its pickle is damaged at byte %zu: %s.%s has wrong arguments", m->what,
                       (size_t)(m->at - m->begin), function->global->module, function->global->name);
    return pickle_push(m, &made);
}

/* object, state -> object. The attributes of an OrderedDict (_metadata) are not weights. */
static co_err op_build(pickle_machine *m)
{
    CO_TRY(pickle_need(m, 2));
    m->values.n--;
    pickle_kind kind = pickle_top(m, 0)->kind;
    return kind == PICKLE_DICT || kind == PICKLE_OBJECT || kind == PICKLE_TENSOR
               ? CO_OK
               : pickle_damaged(m, "a plain value has attributes");
}

/* ('storage', torch.FloatStorage, '0', 'cpu', elements) -> the storage in the archive's entry data/0. */
static co_err op_persistent(pickle_machine *m)
{
    CO_TRY(pickle_need(m, 1));
    const pickle_value *id = pickle_top(m, 0);
    pickle_value *const *item = id->kind == PICKLE_TUPLE && id->n == 5 ? id->item : NULL;

    m->values.n--;
    if (item && item[1]->kind == PICKLE_OBJECT)
        return pickle_push(m, &(pickle_value){.kind = PICKLE_OBJECT});
    if (!item || item[0]->kind != PICKLE_TEXT || strcmp(item[0]->text, "storage") != 0 ||
        item[1]->kind != PICKLE_GLOBAL || !item[1]->global->dtype || item[2]->kind != PICKLE_TEXT ||
        item[4]->kind != PICKLE_INT || item[4]->number < 0)
        return pickle_damaged(m, "a storage is described wrongly");
    return pickle_push(m, &(pickle_value){.kind = PICKLE_STORAGE,
                                          .storage = {.dtype = item[1]->global->dtype,
                                                      .key = item[2]->text,
                                                      .elements = item[4]->number,
                                                      .element_size = item[1]->global->element_size}});
}

static co_err op_stop(pickle_machine *m)
{
    m->stopped = true;
    if (m->values.n != 1 || m->marks.n != 0)
        return pickle_damaged(m, "it ends with values left over");
    return m->at == m->end ? CO_OK : pickle_damaged(m, "bytes follow its end");
}

void pickle_ops_calls(pickle_op *ops[256])
{
    ops['.'] = op_stop;
    ops['c'] = op_global;
    ops['R'] = op_call;
    ops[0x81] = op_call;
    ops['b'] = op_build;
    ops['Q'] = op_persistent;
}
