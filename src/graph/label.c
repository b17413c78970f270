/* label.c -- the names of operators in messages, blame reports and the memory plan.
 *
 * An operator is named after its first parameter, without the last component: linear 'fc2' reads fc2.weight.
 * An operator without parameters is named by its number: relu#7. Gradient operators have the name of their
 * forward operator.
 */
#include "graph/graph_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

char *label_of(co_graph *g, const char *param_name)
{
    const char *dot = strrchr(param_name, '.');
    return co_pool_strn(&g->pool, param_name, dot ? (size_t)(dot - param_name) : strlen(param_name));
}

void op_text(char *buf, size_t size, const struct op *op)
{
    const char *name = op->id == OP_ALIAS ? "reshape" : co_op_name((co_op)op->id);
    if (op->label)
        snprintf(buf, size, "%s '%s'", name, op->label);
    else
        snprintf(buf, size, "%s#%d", name, op->number);
}

/* "x [8,3072], weight [768,768]": the inputs that were given, up to the first NULL. F32 is not written. */
static void inputs_text(char *buf, size_t size, const struct op *op)
{
    const struct op_row *row = op_row_of(op->id);
    size_t at = 0;

    buf[0] = '\0';
    for (int i = 0; i < op->n_in && op->in[i] && at < size; i++) {
        const co_node *n = op->in[i];
        char dims[128];
        int len = snprintf(buf + at, size - at, "%s%s %s%s%s", i ? ", " : "", row ? row->role[i] : "x",
                           n->dtype == CO_F32 ? "" : co_dtype_name(n->dtype), n->dtype == CO_F32 ? "" : " ",
                           co_shape_text(dims, sizeof dims, &n->shape));
        at += (size_t)len;
    }
}

bool op_fail(co_graph *g, const struct op *op, const char *fmt, ...)
{
    char name[160], inputs[320], words[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    op_text(name, sizeof name, op);
    inputs_text(inputs, sizeof inputs, op);
    co_graph_fail(g, "%s: %s%s%s", name, inputs, inputs[0] ? ": " : "", words);
    return false;
}
