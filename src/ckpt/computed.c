/* computed.c -- tensors that a module keeps in its state dict although they can be computed: the tables of
 * sinusoids of the translation guide's transformer. Our model computes them, so a file may have them or
 * not. They are compared with the formula before the others are used: a table of other numbers (learned
 * positions) would mean another model.
 *
 *     pe[0, place, 2i] = sin(place * 10000^(-2i/d))     pe[0, place, 2i + 1] = cos(place * 10000^(-2i/d))
 */
#include "ckpt/ckpt_int.h"

#include <math.h>
#include <string.h>

enum { MOST_BYTES = 1 << 30 };
static const double near_enough = 1e-3; /* float32 at place 65536 is off by less */

static const char *const computed[] = {"src_pos.pe", "tgt_pos.pe"};

bool weights_is_computed(const char *name)
{
    for (size_t i = 0; i < CO_COUNT(computed); i++)
        if (strcmp(name, computed[i]) == 0)
            return true;
    return false;
}

static bool is_sinusoids(const float *table, int64_t places, int64_t d)
{
    for (int64_t place = 0; place < places; place++)
        for (int64_t i = 0; i < d; i++) {
            double angle = (double)place * exp(-log(1e4) * (double)(i - i % 2) / (double)d);
            double want = i % 2 ? cos(angle) : sin(angle), off = (double)table[place * d + i] - want;
            if (!(off >= -near_enough && off <= near_enough))
                return false;
        }
    return true;
}

static co_err check_table(weights_file *f, const co_st_tensor *t)
{
    const co_shape *shape = &t->shape;

    if (shape->nd != 3 || shape->d[0] != 1 || t->dtype != CO_F32 || t->len > MOST_BYTES)
        return co_fail(CO_EINPUT, "tensor %s is no table of sinusoids: it is not [1, places, d_model] of F32",
                       t->name);
    float *table = co_alloc(t->len);
    co_err err = table ? weights_read(f, t, table) : CO_ENOMEM;
    if (!err && !is_sinusoids(table, shape->d[1], shape->d[2]))
        err = co_fail(
            CO_EINPUT,
            "tensor %s does not hold the sinusoids that this model computes: the file is of another model",
            t->name);
    co_free(table);
    return err;
}

co_err weights_check_computed(weights_file *f)
{
    for (size_t i = 0; i < CO_COUNT(computed); i++) {
        const co_st_tensor *t = weights_find(f, computed[i]);
        if (t)
            CO_TRY(check_table(f, t));
    }
    return CO_OK;
}
