/* import.c -- a file of torch.save as a safetensors file: the tensors of its state dict, wide types first, so
 * that each lies on a multiple of its element size, then by name. The same state dict gives the same
 * bytes. */
#include "ckpt/torch_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"

/* Element sizes in descending order. */
static int wide_first(const void *a, const void *b)
{
    const co_st_tensor *x = *(const co_st_tensor *const *)a, *y = *(const co_st_tensor *const *)b;
    int x_bits = co_st_dtype_bits(x->dtype_name), y_bits = co_st_dtype_bits(y->dtype_name);

    return x_bits != y_bits ? y_bits - x_bits : strcmp(x->name, y->name);
}

static co_err write_tensors(const torch_file *in, const co_st_tensor *const *order, int n, co_st_writer *w)
{
    uint64_t most = 0;

    for (int i = 0; i < n; i++)
        most = order[i]->len > most ? order[i]->len : most;
    void *bytes = co_alloc((size_t)most);
    co_err err = bytes ? CO_OK : CO_ENOMEM;
    for (int i = 0; i < n && !err; i++) {
        err = torch_read(in, order[i], bytes);
        if (!err)
            err = co_st_write(w, bytes, (size_t)order[i]->len);
    }
    co_free(bytes);
    return err;
}

static co_err write_file(const torch_file *in, const char *to)
{
    int n = torch_count(in);
    const co_st_tensor **order = co_array((size_t)n, sizeof *order);
    co_st_tensor *declared = co_array((size_t)n, sizeof *declared);
    co_st_writer *w = NULL;
    co_err err = order && declared ? CO_OK : CO_ENOMEM;

    for (int i = 0; i < n && !err; i++)
        order[i] = torch_at(in, i);
    if (!err)
        qsort(order, (size_t)n, sizeof *order, wide_first);
    for (int i = 0; i < n && !err; i++)
        declared[i] = *order[i];
    if (!err)
        err = co_st_create(&w, to, declared, n, NULL);
    if (!err)
        err = write_tensors(in, order, n, w);
    err = co_st_end(w, err);
    co_free(declared);
    co_free(order);
    return err;
}

static co_err open_import(torch_file **in, const char *from, const co_import_how *how)
{
    if (!co_fs_exists(from) || co_fs_is_dir(from))
        return co_fail(CO_EINPUT, "%s: there is no such file", from);
    torch_format format = torch_format_of(from);
    if (format == TORCH_OLD)
        return torch_refuse_old(from);
    if (format == TORCH_ZIP)
        return torch_open(in, from, how);
    co_st_file *st = NULL;
    if (co_st_open(&st, from) != CO_OK)
        return co_fail(CO_EINPUT, "%s is not a file of torch.save: it is no zip archive", from);
    co_st_close(st);
    return co_fail(CO_EINPUT, "%s is a safetensors file already: weights=%s loads it as it is", from, from);
}

co_err co_weights_import(const char *from, const char *to, const co_import_how *how, co_import_facts *facts)
{
    torch_file *in = NULL;

    CO_TRY(open_import(&in, from, how));
    co_err err = torch_check(in);
    if (!err)
        err = write_file(in, to);
    if (!err && facts)
        *facts = *torch_facts(in);
    torch_close(in);
    return err;
}
