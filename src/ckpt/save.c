/* save.c -- a checkpoint appears whole or not at all.
 *
 *     1  .tmp-NAME~WRITER/ is made; model and optim are written into it. After the last byte is read, the
 *        source's `read_through` is called. Then both are fsynced, and the manifest is written and fsynced
 *     2  the source's `ready` is called, and the folder is searched for a newer view (view.c): both may
 *        refuse
 *     3  NAME, if there is one, becomes .old-NAME
 *     4  .tmp-NAME~WRITER becomes NAME              <- the moment it exists
 *     5  root/last is moved, .old-NAME removed
 *
 * Killed before 4, what was there before is still whole, as NAME or as .old-NAME, and co_ckpt_newest looks at
 * both; killed after 4, both are whole. An .old- is removed only when NAME is there. A .tmp- is never read
 * and is swept by co_ckpt_prune once its writer is gone (temp.c). When a step fails, the ones before are
 * undone.
 *
 * The source is read once, in pieces of 1 MiB, in the order of the files (I64 first, so that every tensor
 * lies on a multiple of its element). weights_sha256 goes by name order, so it is computed from the file just
 * written. Memory: at most four blocks of 1 MiB and the names.
 */
#include "ckpt/ckpt_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "tensor/safetensors.h"

enum { PIECE = 1 << 18 }; /* elements of 4 bytes */

/* What the functions of one save share. */
struct save {
    const co_layout *layout;
    const co_ckpt_source *src;
    int *by_name;    /* [layout->n] */
    float *piece;    /* [PIECE] */
    const char *dir; /* .tmp-NAME */
    struct manifest_file file[2];
    co_st_writer *writer[2]; /* of each file, until it is finished */
    int files;
};

/* Copies one entry of one part to a file, piece by piece. */
static co_err pour(struct save *s, int part, const co_entry *e, co_st_writer *to)
{
    for (size_t i = 0; i < e->count; i += PIECE) {
        size_t n = e->count - i < PIECE ? e->count - i : PIECE;
        CO_TRY(s->src->read(s->src->ctx, part, e->offset + i, n, s->piece));
        CO_TRY(co_st_write(to, s->piece, n * sizeof *s->piece));
    }
    return CO_OK;
}

/* A tensor of the file: which entry of which part. */
struct row {
    const co_entry *e;
    int part;
};

/* Streams n rows to dir/name, which stays open: see finish_files. */
static co_err write_file(struct save *s, const char *name, const struct row *row, const co_st_tensor *tensor,
                         int n)
{
    co_st_writer **w = &s->writer[s->files];
    char *path = co_sprintf("%s/%s", s->dir, name);
    co_err err = path ? co_st_create(w, path, tensor, n, NULL) : CO_ENOMEM;

    co_free(path);
    if (err)
        return err;
    s->file[s->files++].name = name;
    for (int i = 0; i < n && !err; i++)
        err = pour(s, row[i].part, row[i].e, *w);
    return err;
}

/* Fsyncs and closes both files and notes size and hash for the manifest. */
static co_err finish_files(struct save *s)
{
    co_err err = CO_OK;

    for (int i = 0; i < s->files && !err; i++) {
        err = co_st_finish(s->writer[i], s->file[i].sha256, &s->file[i].bytes);
        s->writer[i] = NULL;
    }
    return err;
}

static co_err hash_model(const struct save *s, char hex[65])
{
    co_st_file *f = NULL;
    co_err err = open_file(&f, s->dir, MODEL_FILE);

    if (!err)
        err = hash_weights(f, hex);
    co_st_close(f);
    return err;
}

static co_err write_model(struct save *s)
{
    int n = 0, all = s->layout->n;
    struct row *row = co_array((size_t)all, sizeof *row);
    co_st_tensor *tensor = co_array((size_t)all, sizeof *tensor);
    co_err err = CO_ENOMEM;

    for (int pass = 0; row && tensor && pass < 2; pass++) {
        for (int i = 0; i < all; i++) {
            const co_entry *e = &s->layout->entry[s->by_name[i]];
            if ((e->dtype == CO_I64) != (pass == 0))
                continue;
            row[n] = (struct row){e, 0};
            tensor[n++] = (co_st_tensor){.name = e->name, .dtype = e->dtype, .shape = e->shape};
        }
    }
    if (row && tensor)
        err = write_file(s, MODEL_FILE, row, tensor, n);
    co_free(row);
    co_free(tensor);
    return err;
}

/* "<moment>.<parameter>", moment by moment, by name inside one. */
static co_err write_optim(struct save *s, int moments, const char *const *moment_names)
{
    int n = 0;
    size_t room = (size_t)s->layout->n * (size_t)moments;
    co_pool names = {0};
    struct row *row = co_array(room, sizeof *row);
    co_st_tensor *tensor = co_array(room, sizeof *tensor);
    co_err err = row && tensor ? CO_OK : CO_ENOMEM;

    for (int k = 0; k < moments && !err; k++) {
        for (int i = 0; i < s->layout->n && !err; i++) {
            const co_entry *e = &s->layout->entry[s->by_name[i]];
            if (!moment_covers(moment_names[k], e))
                continue;
            const char *name = co_pool_printf(&names, "%s.%s", moment_names[k], e->name);
            if (!name)
                err = CO_ENOMEM;
            row[n] = (struct row){e, 1 + k};
            tensor[n++] = (co_st_tensor){.name = name, .dtype = e->dtype, .shape = e->shape};
        }
    }
    if (!err)
        err = write_file(s, OPTIM_FILE, row, tensor, n);
    co_pool_fini(&names);
    co_free(row);
    co_free(tensor);
    return err;
}

static co_err write_manifest(struct save *s, const co_ckpt_meta *meta)
{
    char *text = NULL, *path = co_sprintf("%s/" MANIFEST_FILE, s->dir);
    co_err err = path ? manifest_text(&text, meta, s->file, s->files) : CO_ENOMEM;

    if (!err)
        err = co_fs_write_atomic(path, text, strlen(text)); /* fsyncs the folder too */
    co_free(text);
    co_free(path);
    return err;
}

static co_err write_tensors(struct save *s, int moments, const char *const *moment_names)
{
    CO_TRY(write_model(s));
    if (moments > 0)
        CO_TRY(write_optim(s, moments, moment_names));
    if (s->src->read_through)
        s->src->read_through(s->src->ctx);
    return finish_files(s);
}

/* Step 1: everything into `dir`. */
static co_err write_all(const char *dir, const co_layout *layout, int moments,
                        const char *const *moment_names, co_ckpt_meta *meta, const co_ckpt_source *src)
{
    struct save s = {.layout = layout, .src = src, .dir = dir};
    co_ckpt_meta full = *meta; /* borrows extra */
    co_err err = CO_ENOMEM;

    s.by_name = co_layout_by_name(layout);
    s.piece = co_array(PIECE, sizeof *s.piece);
    if (s.by_name && s.piece)
        err = write_tensors(&s, moments, moment_names);
    if (!err)
        err = hash_model(&s, full.weights_sha256);
    if (!err)
        err = write_manifest(&s, &full);
    if (!err)
        memcpy(meta->weights_sha256, full.weights_sha256, sizeof full.weights_sha256);
    for (int i = 0; i < s.files; i++)
        co_st_abort(s.writer[i]);
    co_free(s.piece);
    co_free(s.by_name);
    return err;
}

/* Steps 3 and 4. */
static co_err put_in_place(const char *root, const char *tmp, const char *final, const char *old)
{
    struct stat st;
    bool replaces = lstat(final, &st) == 0;

    if (replaces) {
        CO_TRY(co_fs_remove_tree(old)); /* left by a kill after step 4: `final` is whole */
        if (rename(final, old) != 0)
            return co_fail(CO_EIO, "rename %s to %s: %m", final, old);
    }
    if (rename(tmp, final) != 0) {
        co_err err = co_fail(CO_EIO, "rename %s to %s: %m", tmp, final);
        if (replaces && rename(old, final) != 0)
            return co_fail(err, "%s; the one before is %s", co_errmsg(), old);
        return err;
    }
    return co_fs_sync_dir(root);
}

/* A folder for the new one, empty. */
static co_err make_tmp(const char *root, const char *tmp, const char *final)
{
    struct stat st;

    /* Not its parents: a run folder that was removed stays so. */
    if (mkdir(root, 0777) != 0 && errno != EEXIST)
        return co_fail(CO_EIO, "mkdir %s: %m", root);
    if (lstat(final, &st) == 0 && !S_ISDIR(st.st_mode))
        return co_fail(CO_EINPUT, "%s is not a folder: choose another name", final);
    CO_TRY(co_fs_remove_tree(tmp));
    if (mkdir(tmp, 0777) != 0)
        return co_fail(CO_EIO, "mkdir %s: %m", tmp);
    return CO_OK;
}

/* Step 2. */
static co_err may_appear(const char *root, const co_ckpt_source *src)
{
    if (src->ready)
        CO_TRY(src->ready(src->ctx, src->by.view));
    return view_check(root, &src->by);
}

/* Removes what a failed save does not need any more, keeping its message. */
static co_err undo(co_err err, const char *path)
{
    char why[1024];

    snprintf(why, sizeof why, "%s", co_errmsg());
    co_fs_remove_tree(path);
    return co_fail(err, "%s", why);
}

/* Step 5. The checkpoint exists by now, and co_ckpt_newest finds it without the link. So a disk that fails
 * here is only a warning. */
static co_err tidy(const char *root, const char *name, const char *old)
{
    co_err err = co_ckpt_link(root, "last", name);

    if (err == CO_EIO)
        co_log_say(CO_LOG_WARN, "checkpoint %s/%s is saved, but the link `last` could not be moved to it: %s",
                   root, name, co_errmsg());
    else if (err)
        return undo(err, old);
    err = co_fs_remove_tree(old);
    if (err == CO_EIO)
        co_log_say(CO_LOG_WARN, "checkpoint %s/%s is saved, but the one before it could not be removed: %s",
                   root, name, co_errmsg());
    return err == CO_EIO ? CO_OK : err;
}

co_err co_ckpt_save(const char *root, const char *name, const co_layout *layout, int moments,
                    const char *const *moment_names, co_ckpt_meta *meta, const co_ckpt_source *src)
{
    if (!plain_name(name))
        return co_fail(CO_EINPUT, "checkpoint name '%s': letters, digits and ._+-=@ only, no dot first", name);

    char *tmp = temp_path(root, "", name, &src->by);
    char *old = co_sprintf("%s/" OLD_PREFIX "%s", root, name);
    char *final = co_sprintf("%s/%s", root, name);
    co_err err = tmp && old && final ? make_tmp(root, tmp, final) : CO_ENOMEM;

    if (!err) {
        err = view_enter(root, &src->by);
        if (!err)
            err = write_all(tmp, layout, moments, moment_names, meta, src);
        if (!err)
            err = may_appear(root, src);
        if (!err)
            err = put_in_place(root, tmp, final, old);
        if (err)
            undo(err, tmp);
    }
    if (!err)
        err = tidy(root, name, old);
    if (err)
        co_fail_in(err, "checkpoint %s/%s", root, name);
    co_free(tmp);
    co_free(old);
    co_free(final);
    return err;
}

co_err co_ckpt_link(const char *root, const char *link, const char *name)
{
    char *tmp = temp_path(root, "link-", link, NULL);
    char *path = co_sprintf("%s/%s", root, link);
    co_err err = tmp && path ? CO_OK : CO_ENOMEM;

    if (!err) {
        unlink(tmp); /* left by a kill */
        if (symlink(name, tmp) != 0)
            err = co_fail(CO_EIO, "link %s: %m", tmp);
        else if (rename(tmp, path) != 0) {
            err = co_fail(CO_EIO, "rename %s to %s: %m", tmp, path);
            unlink(tmp);
        } else
            err = co_fs_sync_dir(root);
    }
    co_free(tmp);
    co_free(path);
    return err;
}
