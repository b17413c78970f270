/* manifest.c -- manifest.json: what a checkpoint says about itself, and the size and SHA-256 of its files.
 *
 * It is written last and vouches for everything, so it must vouch for itself too: a flipped bit in "step"
 * would still be good JSON. Its last member is self_sha256, the SHA-256 of the manifest's own bytes with
 * these 64 digits taken as zeros. The text therefore always ends in
 *
 *       "self_sha256": "<64 hex digits>"\n}\n
 *
 * and a manifest that was edited by hand is refused as altered. Format: docs/formats/checkpoint.md.
 */
#include "ckpt/ckpt_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"

#define FORMAT "cohort-checkpoint"
enum { VERSION = 1, MAX_MANIFEST = 16 << 20, MAX_FILES = 10000, HEX = 64 };

static const char self_key[] = "\"self_sha256\": \"", tail[] = "\"\n}\n";
static const char zeros[HEX + 1] = "0000000000000000000000000000000000000000000000000000000000000000";

/* The fields of the meta by type; both directions walk these tables. All numbers are >= 0. */
static const struct {
    const char *key;
    size_t offset;
} numbers[] = {
    {"step", offsetof(co_ckpt_meta, step)},     {"applied", offsetof(co_ckpt_meta, applied)},
    {"epoch", offsetof(co_ckpt_meta, epoch)},   {"samples", offsetof(co_ckpt_meta, samples)},
    {"slices", offsetof(co_ckpt_meta, slices)}, {"global_batch", offsetof(co_ckpt_meta, global_batch)},
    {"view", offsetof(co_ckpt_meta, view)},
};
static const struct {
    const char *key;
    size_t offset, size;
} strings[] = {
    {"model", offsetof(co_ckpt_meta, model), sizeof(((co_ckpt_meta *)0)->model)},
    {"data", offsetof(co_ckpt_meta, data), sizeof(((co_ckpt_meta *)0)->data)},
    {"optim", offsetof(co_ckpt_meta, optim), sizeof(((co_ckpt_meta *)0)->optim)},
    {"kernels", offsetof(co_ckpt_meta, kernels), sizeof(((co_ckpt_meta *)0)->kernels)},
};
static const struct {
    const char *key;
    size_t offset;
    bool may_be_empty;
} hashes[] = {
    {"config_sha256", offsetof(co_ckpt_meta, config_sha256), true},
    {"data_sha256", offsetof(co_ckpt_meta, data_sha256), true},
    {"weights_sha256", offsetof(co_ckpt_meta, weights_sha256), false},
};

void co_ckpt_meta_fini(co_ckpt_meta *m)
{
    json_decref(m->extra);
    m->extra = NULL;
}

void manifest_fini(struct manifest *m)
{
    co_ckpt_meta_fini(&m->meta);
    co_pool_fini(&m->pool);
}

bool moment_covers(const char *moment, const co_entry *e)
{
    return e->kind == CO_KIND_PARAM || (e->kind == CO_KIND_STAT && strcmp(moment, CO_CKPT_AVERAGE) == 0);
}

bool plain_name(const char *name)
{
    size_t len = strlen(name);
    const char *ok = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-=@";

    return len > 0 && len <= 200 && name[0] != '.' && strspn(name, ok) == len;
}

static bool is_hex(const char *s, size_t len)
{
    return len == HEX && strspn(s, "0123456789abcdef") >= HEX;
}

static bool printable(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return false;
    return true;
}

/* --- reading ------------------------------------------------------------------------------------------- */

/* The digits' place in a manifest; NULL if it does not end as one must. */
static const char *self_digits(const char *bytes, size_t len)
{
    size_t end = strlen(tail), key = strlen(self_key);

    if (len < end + HEX + key)
        return NULL;
    const char *digits = bytes + len - end - HEX;
    if (memcmp(digits + HEX, tail, end) != 0 || memcmp(digits - key, self_key, key) != 0 ||
        !is_hex(digits, HEX))
        return NULL;
    return digits;
}

static void self_hash(char hex[HEX + 1], const char *bytes, size_t len, const char *digits)
{
    co_sha256 h;

    co_sha256_init(&h);
    co_sha256_add(&h, bytes, (size_t)(digits - bytes));
    co_sha256_add(&h, zeros, HEX);
    co_sha256_add(&h, digits + HEX, (size_t)(bytes + len - digits) - HEX);
    co_sha256_hex(&h, hex);
}

static co_err check_self(const char *bytes, size_t len, const char *what)
{
    char hex[HEX + 1];
    const char *digits = self_digits(bytes, len);

    if (!digits)
        return co_fail(CO_EFORMAT, "%s: does not end as a manifest does (cut short or altered)", what);
    self_hash(hex, bytes, len, digits);
    if (memcmp(hex, digits, HEX) != 0)
        return co_fail(CO_EFORMAT, "%s: its own SHA-256 differs (altered or torn)", what);
    return CO_OK;
}

static co_err check_kind(const json_t *root, const char *what)
{
    const char *format = co_json_str(root, "format");
    long long version = -1;

    if (!format || strcmp(format, FORMAT) != 0)
        return co_fail(CO_EFORMAT, "%s: \"format\" is not \"" FORMAT "\"", what);
    if (!co_json_i64(root, "version", &version))
        return co_fail(CO_EFORMAT, "%s: \"version\" is not a whole number", what);
    if (version != VERSION)
        return co_fail(CO_EFORMAT, "%s: version %lld; this program reads version %d%s", what, version,
                       VERSION, version > VERSION ? " (a newer cohort wrote it: use that one)" : "");
    return CO_OK;
}

/* Decimal text: the seed has all 64 bits, which a JSON number cannot carry. */
static bool parse_u64(uint64_t *out, const char *s)
{
    uint64_t x = 0;
    size_t len = strlen(s);

    if (len == 0 || len > 20 || (s[0] == '0' && len > 1))
        return false;
    for (; *s; s++)
        if (*s < '0' || *s > '9' || __builtin_mul_overflow(x, 10u, &x) ||
            __builtin_add_overflow(x, (uint64_t)(*s - '0'), &x))
            return false;
    *out = x;
    return true;
}

static co_err parse_meta(co_ckpt_meta *m, const json_t *root, const char *what)
{
    for (size_t i = 0; i < CO_COUNT(numbers); i++) {
        long long x = -1;
        if (!co_json_i64(root, numbers[i].key, &x) || x < 0)
            return co_fail(CO_EFORMAT, "%s: \"%s\" is not a whole number from 0", what, numbers[i].key);
        *(int64_t *)((char *)m + numbers[i].offset) = x;
    }
    for (size_t i = 0; i < CO_COUNT(strings); i++) {
        const char *s = co_json_str(root, strings[i].key);
        if (!s || strlen(s) >= strings[i].size || !printable(s))
            return co_fail(CO_EFORMAT, "%s: \"%s\" is not a text of up to %zu bytes", what, strings[i].key,
                           strings[i].size - 1);
        memcpy((char *)m + strings[i].offset, s, strlen(s) + 1);
    }
    for (size_t i = 0; i < CO_COUNT(hashes); i++) {
        const char *s = co_json_str(root, hashes[i].key);
        if (!s || !(is_hex(s, strlen(s)) || (hashes[i].may_be_empty && !*s)))
            return co_fail(CO_EFORMAT, "%s: \"%s\" is not a SHA-256", what, hashes[i].key);
        memcpy((char *)m + hashes[i].offset, s, strlen(s) + 1);
    }
    const char *seed = co_json_str(root, "seed");
    if (!seed || !parse_u64(&m->seed, seed))
        return co_fail(CO_EFORMAT, "%s: \"seed\" is not a decimal number in a string", what);
    json_t *extra = json_object_get(root, "extra");
    if (extra && !json_is_object(extra))
        return co_fail(CO_EFORMAT, "%s: \"extra\" is not an object", what);
    m->extra = json_incref(extra);
    return CO_OK;
}

static co_err parse_file(struct manifest *m, struct manifest_file *f, const char *name, const json_t *v,
                         const char *what)
{
    const char *hex = co_json_str(v, "sha256");
    long long bytes = -1;

    if (!plain_name(name) || strcmp(name, MANIFEST_FILE) == 0)
        return co_fail(CO_EFORMAT, "%s: \"%.80s\" is not the name of a file beside it", what, name);
    if (!co_json_i64(v, "bytes", &bytes) || bytes < 0)
        return co_fail(CO_EFORMAT, "%s: the size of %s is not a whole number from 0", what, name);
    if (!hex || !is_hex(hex, strlen(hex)))
        return co_fail(CO_EFORMAT, "%s: the SHA-256 of %s is not 64 hex digits", what, name);
    f->name = co_pool_str(&m->pool, name);
    f->bytes = (uint64_t)bytes;
    memcpy(f->sha256, hex, HEX + 1);
    return f->name ? CO_OK : CO_ENOMEM;
}

static co_err parse_files(struct manifest *m, json_t *files, const char *what)
{
    size_t n = json_object_size(files);
    const char *name;
    json_t *v;

    if (!json_is_object(files) || n > MAX_FILES)
        return co_fail(CO_EFORMAT, "%s: \"files\" is not a list of files", what);
    m->file = co_pool_alloc(&m->pool, n * sizeof *m->file);
    if (!m->file)
        return CO_ENOMEM;
    json_object_foreach(files, name, v)
    {
        CO_TRY(parse_file(m, &m->file[m->n], name, v, what));
        m->n++;
    }
    if (!manifest_find(m, MODEL_FILE))
        return co_fail(CO_EFORMAT, "%s: lists no " MODEL_FILE, what);
    return CO_OK;
}

co_err manifest_parse(struct manifest *out, const char *bytes, size_t len, const char *what)
{
    struct manifest m = {0};
    json_t *root = NULL;

    if (len > MAX_MANIFEST)
        return co_fail(CO_EFORMAT, "%s: %zu bytes, too long for a manifest", what, len);
    CO_TRY(co_json_parse(&root, bytes, len, what));
    co_err err = json_is_object(root) ? CO_OK : co_fail(CO_EFORMAT, "%s: not an object", what);
    if (!err)
        err = check_kind(root, what);
    if (!err)
        err = check_self(bytes, len, what);
    if (!err)
        err = parse_meta(&m.meta, root, what);
    if (!err)
        err = parse_files(&m, json_object_get(root, "files"), what);
    json_decref(root);
    if (err)
        manifest_fini(&m);
    else
        *out = m;
    return err;
}

co_err manifest_read(struct manifest *out, const char *path)
{
    char *file, *bytes = NULL;
    size_t len = 0;
    struct stat st = {0};
    co_err err;

    if (!co_fs_is_dir(path))
        return co_fail(CO_EINPUT, "there is no such folder");
    file = co_sprintf("%s/" MANIFEST_FILE, path);
    if (!file)
        return CO_ENOMEM;
    if (stat(file, &st) != 0 && errno == ENOENT)
        err = co_fail(CO_EFORMAT, MANIFEST_FILE " is missing: not a checkpoint, or not a whole one");
    else if (S_ISFIFO(st.st_mode)) /* reading it would wait for ever */
        err = co_fail(CO_EFORMAT, MANIFEST_FILE " is not a file");
    else
        err = co_fs_read(&bytes, &len, file, MAX_MANIFEST);
    if (!err)
        err = manifest_parse(out, bytes, len, MANIFEST_FILE);
    co_free(bytes);
    co_free(file);
    return err;
}

const struct manifest_file *manifest_find(const struct manifest *m, const char *name)
{
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->file[i].name, name) == 0)
            return &m->file[i];
    return NULL;
}

co_err co_ckpt_parse_manifest(co_ckpt_meta *out, const char *bytes, size_t len, const char *what)
{
    struct manifest m = {0};

    CO_TRY(manifest_parse(&m, bytes, len, what));
    *out = m.meta;
    m.meta.extra = NULL; /* now *out's */
    manifest_fini(&m);
    return CO_OK;
}

co_err co_ckpt_read_meta(co_ckpt_meta *out, const char *path)
{
    struct manifest m = {0};
    co_err err = manifest_read(&m, path);

    if (err)
        return co_fail_in(err, "checkpoint %s", path);
    *out = m.meta;
    m.meta.extra = NULL; /* now *out's */
    manifest_fini(&m);
    return CO_OK;
}

/* --- writing ------------------------------------------------------------------------------------------- */

/* Adds a member; false if memory is out or a text is not UTF-8 (jansson then gives NULL, and refuses it). */
static bool set(json_t *obj, const char *key, json_t *v)
{
    return json_object_set_new(obj, key, v) == 0;
}

static bool build_meta(json_t *root, const co_ckpt_meta *m)
{
    char seed[24];
    bool ok = set(root, "format", json_string(FORMAT)) && set(root, "version", json_integer(VERSION));

    for (size_t i = 0; i < CO_COUNT(numbers); i++)
        ok = ok &&
             set(root, numbers[i].key, json_integer(*(const int64_t *)((const char *)m + numbers[i].offset)));
    snprintf(seed, sizeof seed, "%" PRIu64, m->seed);
    ok = ok && set(root, "seed", json_string(seed));
    for (size_t i = 0; i < CO_COUNT(strings); i++)
        ok = ok && set(root, strings[i].key, json_string((const char *)m + strings[i].offset));
    for (size_t i = 0; i < CO_COUNT(hashes); i++)
        ok = ok && set(root, hashes[i].key, json_string((const char *)m + hashes[i].offset));
    if (m->extra)
        ok = ok && json_object_set(root, "extra", m->extra) == 0;
    return ok;
}

static bool build_files(json_t *root, const struct manifest_file *file, int n)
{
    json_t *files = json_object();
    bool ok = set(root, "files", files); /* borrowed from here on; NULL is refused */

    for (int i = 0; ok && i < n; i++)
        ok = set(files, file[i].name,
                 json_pack("{s:I, s:s}", "bytes", (json_int_t)file[i].bytes, "sha256", file[i].sha256));
    return ok;
}

co_err manifest_text(char **out, const co_ckpt_meta *meta, const struct manifest_file *file, int n)
{
    struct manifest back = {0};
    char hex[HEX + 1], *text = NULL;
    json_t *root = json_object();

    if (build_meta(root, meta) && build_files(root, file, n) && set(root, "self_sha256", json_string(zeros))) {
        char *dump = json_dumps(root, JSON_INDENT(2));
        text = dump ? co_sprintf("%s\n", dump) : NULL;
        co_free(dump);
    }
    json_decref(root);
    if (!text)
        return co_fail(CO_ENOMEM, MANIFEST_FILE ": no memory, or a name is not UTF-8");
    size_t len = strlen(text), at = len - strlen(tail) - HEX;
    self_hash(hex, text, len, text + at);
    memcpy(text + at, hex, HEX);

    co_err err = manifest_parse(&back, text, len, MANIFEST_FILE); /* what we write, we can read */
    manifest_fini(&back);
    if (err)
        co_free(text);
    else
        *out = text;
    return err;
}
