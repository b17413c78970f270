/* source.c -- a file of weights, whatever its format: the first bytes decide which it is. */
#include "ckpt/ckpt_int.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "ckpt/torch_int.h"

/* One of the two is NULL. */
struct weights_file {
    co_st_file *st;
    torch_file *torch;
};

/* --- which file, and what it is ------------------------------------------------------------------------- */
/* The file that `path` means: itself, a checkpoint's, or that of a run's last checkpoint. The caller's. */
static co_err file_of(char **out, const char *path)
{
    char *in_ckpt = co_sprintf("%s/" MODEL_FILE, path),
         *in_run = co_sprintf("%s/checkpoints/last/" MODEL_FILE, path);
    const char *found = NULL;
    co_err err = in_ckpt && in_run ? CO_OK : CO_ENOMEM;

    if (!err && !co_fs_exists(path))
        err = co_fail(CO_EINPUT, "%s: there is no such file", path);
    else if (!err && !co_fs_is_dir(path))
        found = path;
    else if (!err)
        found = co_fs_exists(in_ckpt) ? in_ckpt : co_fs_exists(in_run) ? in_run : NULL;
    if (!err && !found)
        err = co_fail(CO_EINPUT,
                      "%s is a folder without " MODEL_FILE ": give a safetensors file, a checkpoint or a run",
                      path);
    if (!err && !(*out = co_strdup(found)))
        err = CO_ENOMEM;
    co_free(in_ckpt);
    co_free(in_run);
    return err;
}

torch_format torch_format_of(const char *path)
{
    unsigned char head[4] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? 0 : read(fd, head, sizeof head);

    if (fd >= 0)
        close(fd);
    if (n != 4)
        return TORCH_NONE;
    return memcmp(head, "PK\3\4", 4) == 0                    ? TORCH_ZIP
           : head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 ? TORCH_OLD
                                                             : TORCH_NONE;
}

co_err torch_refuse_old(const char *path)
{
    return co_fail(CO_EINPUT,
                   "%s is a bare pickle, as PyTorch wrote before 1.6; save it again in Python: "
                   "torch.save(torch.load(\"%s\", weights_only=True), \"new.pth\")",
                   path, path);
}

/* --- the door ------------------------------------------------------------------------------------------- */
static co_err open_file_of(weights_file *f, const char *path)
{
    torch_format format = torch_format_of(path);

    return format == TORCH_ZIP   ? torch_open(&f->torch, path, NULL)
           : format == TORCH_OLD ? torch_refuse_old(path)
                                 : co_st_open(&f->st, path);
}

co_err weights_open(weights_file **out, const char *path)
{
    char *file = NULL;

    CO_TRY(file_of(&file, path));
    weights_file *f = co_zalloc(sizeof *f);
    co_err err = f ? open_file_of(f, file) : CO_ENOMEM;
    if (err && err != CO_ENOMEM)
        err = co_fail(CO_EINPUT, "%s", co_errmsg());
    if (err)
        co_free(f);
    else
        *out = f;
    co_free(file);
    return err;
}

void weights_close(weights_file *f)
{
    if (!f)
        return;
    co_st_close(f->st);
    torch_close(f->torch);
    co_free(f);
}

int weights_count(const weights_file *f)
{
    return f->torch ? torch_count(f->torch) : co_st_count(f->st);
}

const co_st_tensor *weights_at(const weights_file *f, int i)
{
    return f->torch ? torch_at(f->torch, i) : co_st_by_name(f->st, i);
}

const co_st_tensor *weights_find(const weights_file *f, const char *name)
{
    int lo = 0, hi = weights_count(f);

    while (lo < hi) {
        int mid = lo + (hi - lo) / 2, order = strcmp(name, weights_at(f, mid)->name);
        if (order == 0)
            return weights_at(f, mid);
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

co_err weights_check(weights_file *f)
{
    co_err err = f->torch ? torch_check(f->torch) : CO_OK;

    return err == CO_EFORMAT ? co_fail(CO_EINPUT, "%s", co_errmsg()) : err;
}

co_err weights_read(weights_file *f, const co_st_tensor *t, void *dst)
{
    return f->torch ? torch_read(f->torch, t, dst) : co_st_read(f->st, t, 0, dst, (size_t)t->len);
}
