/* safetensors_write.c -- streams a .safetensors file and hashes it on the way.
 *
 * All tensors are declared first, so the header, padded with blanks to 8 bytes, is written at once. The data
 * follows in the declared order without a seek. Bytes go through one block of 1 MiB, except pieces larger
 * than that; each byte is hashed once and written once. A tensor's offset is a multiple of its element size
 * if the caller declares wide types first.
 */
#include "tensor/safetensors.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"

enum { BLOCK = 1 << 20, MAX_HEADER = 100000000 };

struct co_st_writer {
    char *path;
    int fd;
    co_sha256 sha;
    uint64_t written;     /* bytes of the file so far, including those in the block */
    uint64_t total;       /* bytes of the complete file */
    size_t used;          /* bytes used in block */
    unsigned char *block; /* [BLOCK] */
};

static co_err flush(co_st_writer *w)
{
    CO_TRY(co_fs_write_all(w->fd, w->block, w->used, w->path));
    w->used = 0;
    return CO_OK;
}

static co_err put(co_st_writer *w, const void *bytes, size_t len)
{
    co_sha256_add(&w->sha, bytes, len);
    w->written += len;
    if (len > BLOCK - w->used)
        CO_TRY(flush(w));
    if (len > BLOCK)
        return co_fs_write_all(w->fd, bytes, len, w->path);
    memcpy(w->block + w->used, bytes, len);
    w->used += len;
    return CO_OK;
}

static const char *dtype_of(const co_st_tensor *t)
{
    return t->dtype == CO_DTYPE_COUNT ? t->dtype_name : co_dtype_name(t->dtype);
}

/* False: too large, or a dtype that is unknown or has no whole bytes. */
static bool bytes_of(size_t *out, const co_st_tensor *t)
{
    int bits = co_st_dtype_bits(dtype_of(t));

    if (!co_shape_bytes(out, &t->shape, CO_U8) || bits == 0 || bits % 8)
        return false;
    return !__builtin_mul_overflow(*out, (size_t)bits / 8, out) && *out <= (size_t)1 << 62;
}

/* {"dtype":"F32","shape":[a,b],"data_offsets":[begin,end]}; NULL if memory is out. */
static json_t *tensor_json(const co_st_tensor *t, uint64_t begin, uint64_t end)
{
    json_t *shape = json_array();

    for (int i = 0; i < t->shape.nd; i++)
        json_array_append_new(shape, json_integer(t->shape.d[i]));
    if (json_array_size(shape) != (size_t)t->shape.nd) {
        json_decref(shape);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_of(t), "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)end);
}

static co_err add_tensors(json_t *root, const co_st_tensor *tensors, int n, uint64_t *data, const char *path)
{
    uint64_t at = 0;
    size_t len;

    for (int i = 0; i < n; i++) {
        const co_st_tensor *tensor = &tensors[i];
        if (!bytes_of(&len, tensor) || len > INT64_MAX - at)
            return co_fail(CO_EINPUT, "%s: tensor %s is too large, or its dtype is unknown", path,
                           tensor->name);
        if (json_object_get(root, tensor->name))
            return co_fail(CO_EINPUT, "%s: two tensors are named %s", path, tensor->name);
        json_t *v = tensor_json(tensor, at, at + len);
        if (!v || json_object_set_new(root, tensor->name, v) != 0)
            return co_fail(CO_ENOMEM, "%s: no memory for tensor %s, or its name is not UTF-8", path,
                           tensor->name);
        at += len;
    }
    *data = at;
    return CO_OK;
}

static bool all_strings(json_t *metadata)
{
    const char *key;
    json_t *v;

    json_object_foreach(metadata, key, v)
    {
        if (!json_is_string(v))
            return false;
    }
    return true;
}

/* The header's text with its padding; the caller frees it. */
static co_err header_text(char **out, const co_st_tensor *tensors, int n, json_t *metadata, uint64_t *data,
                          const char *path)
{
    json_t *root = json_object(), *meta = json_object();
    char *text = NULL;
    co_err err = CO_OK;

    if (!root || !meta || (metadata && json_object_update(meta, metadata) != 0) ||
        json_object_set_new(meta, "format", json_string("pt")) != 0 ||
        json_object_set(root, "__metadata__", meta) != 0)
        err = co_fail(CO_ENOMEM, "%s: no memory for the header", path);
    if (!err)
        err = add_tensors(root, tensors, n, data, path);
    if (!err && !(text = co_json_text(root)))
        err = CO_ENOMEM;
    if (!err) {
        size_t len = strlen(text), padded = (len + 7) & ~(size_t)7;
        *out = padded > MAX_HEADER ? NULL : co_alloc(padded + 1);
        if (*out) {
            memset(*out, ' ', padded);
            memcpy(*out, text, len);
            (*out)[padded] = '\0';
        } else {
            err = padded > MAX_HEADER ? co_fail(CO_EINPUT, "%s: too many tensors for one file", path)
                                      : CO_ENOMEM;
        }
    }
    co_free(text);
    json_decref(meta);
    json_decref(root);
    return err;
}

static void writer_free(co_st_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    co_free(w->block);
    co_free(w->path);
    co_free(w);
}

static co_err start(co_st_writer *w, const char *header, uint64_t data)
{
    uint64_t n = strlen(header);
    unsigned char word[8];

    for (int i = 0; i < 8; i++)
        word[i] = (unsigned char)(n >> 8 * i);
    w->total = sizeof word + n + data;
    w->fd = open(w->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (w->fd < 0)
        return co_fail(CO_EIO, "create %s: %m", w->path);
    co_sha256_init(&w->sha);
    CO_TRY(put(w, word, sizeof word));
    return put(w, header, n);
}

co_err co_st_create(co_st_writer **out, const char *path, const co_st_tensor *tensors, int n, json_t *metadata)
{
    char *header = NULL;
    uint64_t data = 0;
    co_err err = CO_ENOMEM;
    co_st_writer *writer = NULL;

    if (metadata && !all_strings(metadata))
        return co_fail(CO_EINPUT, "%s: the values of __metadata__ must be strings", path);
    CO_TRY(header_text(&header, tensors, n, metadata, &data, path));
    writer = co_zalloc(sizeof *writer);
    if (writer) {
        writer->fd = -1;
        writer->path = co_strdup(path);
        writer->block = co_alloc(BLOCK);
        if (writer->path && writer->block)
            err = start(writer, header, data);
    }
    co_free(header);
    if (!err)
        *out = writer;
    else if (writer && writer->fd >= 0)
        co_st_abort(writer);
    else
        writer_free(writer);
    return err;
}

co_err co_st_write(co_st_writer *w, const void *bytes, size_t len)
{
    if (len > w->total - w->written)
        return co_fail(CO_EINPUT, "%s: %zu bytes too many for the declared tensors", w->path,
                       len - (size_t)(w->total - w->written));
    return put(w, bytes, len);
}

co_err co_st_finish(co_st_writer *writer, char hex[65], uint64_t *file_len)
{
    co_err err = CO_OK;

    if (writer->written != writer->total)
        err = co_fail(CO_EINPUT, "%s: %" PRIu64 " bytes of the declared tensors were never written",
                      writer->path, writer->total - writer->written);
    if (!err)
        err = flush(writer);
    if (!err && fsync(writer->fd) != 0)
        err = co_fail(CO_EIO, "fsync %s: %m", writer->path);
    if (!err) {
        int fd = writer->fd;
        writer->fd = -1;
        if (close(fd) != 0)
            err = co_fail(CO_EIO, "close %s: %m", writer->path);
    }
    if (err) {
        co_st_abort(writer);
        return err;
    }
    co_sha256_hex(&writer->sha, hex);
    *file_len = writer->total;
    writer_free(writer);
    return CO_OK;
}

co_err co_st_end(co_st_writer *writer, co_err err)
{
    char hex[65];
    uint64_t len;

    if (!err)
        return co_st_finish(writer, hex, &len);
    co_st_abort(writer);
    return err;
}

void co_st_abort(co_st_writer *w)
{
    if (w)
        unlink(w->path);
    writer_free(w);
}
