/* pack.c -- head and index of a pack, checked before they are used. The format is docs/formats/pack.md.
 *
 * A pack that is cut short, longer than it says, or whose index has another hash is refused. Then every entry
 * is compared with the file's length, so that reading a file of it never leaves the pack.
 */
#include "data/pack_int.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"

enum {
    AT_VERSION = 8,
    AT_N = 16,
    AT_NAMES = 24,
    AT_DATA = 32,
    AT_LEN = 40,
    AT_SET = 48,
    AT_HASH = 64,
    HASH_LEN = 64
};
static const uint64_t INDEX_MOST = (uint64_t)4 << 30;

bool pack_named(const char *path)
{
    size_t n = strlen(path);

    return n > 5 && strcmp(path + n - 5, ".pack") == 0;
}

uint64_t pack_index_end(const pack *p)
{
    return PACK_HEAD + p->n * PACK_ENTRY + p->names_len;
}

co_err pack_head(pack *out, const uint8_t head[PACK_HEAD], uint64_t file_len, const char *path)
{
    pack p = {.n = co_le_get(head + AT_N, 8),
              .names_len = co_le_get(head + AT_NAMES, 8),
              .data_at = co_le_get(head + AT_DATA, 8),
              .file_len = co_le_get(head + AT_LEN, 8)};
    uint64_t version = co_le_get(head + AT_VERSION, 8);

    if (memcmp(head, PACK_MAGIC, 8) != 0)
        return co_fail(CO_EINPUT, "%s is not a pack: make one with `cohort data pack FOLDER --out FILE.pack`",
                       path);
    if (version != PACK_VERSION)
        return co_fail(CO_EINPUT,
                       "%s is a pack of version %" PRIu64 ", this program reads 1: pack the folder again",
                       path, version);
    if (p.file_len != file_len)
        return co_fail(CO_EINPUT, "%s: %" PRIu64 " bytes, not %" PRIu64 ": is the copy complete?", path,
                       file_len, p.file_len);
    if (p.n > INDEX_MOST / PACK_ENTRY || p.names_len > INDEX_MOST || pack_index_end(&p) > p.data_at ||
        p.data_at > file_len)
        return co_fail(CO_EINPUT, "%s: its head is damaged: pack the folder again", path);
    memcpy(p.set, head + AT_SET, PACK_SET_LEN);
    *out = p;
    return CO_OK;
}

/* Every path ends within the names, every file within the pack. */
static bool entries_are_good(const pack *p)
{
    if (p->n && (!p->names_len || p->names[p->names_len - 1] != 0))
        return false;
    for (uint64_t i = 0; i < p->n; i++) {
        const uint8_t *e = p->entries + i * PACK_ENTRY;
        uint64_t at = co_le_get(e, 8), size = co_le_get(e + 8, 8), path = co_le_get(e + 16, 4);
        if (path >= p->names_len || !p->names[path] || at < p->data_at || at > p->file_len ||
            size > p->file_len - at)
            return false;
    }
    return true;
}

co_err pack_index(pack *out, const uint8_t *bytes, size_t len, uint64_t file_len, const char *path)
{
    pack p;
    char hash[65];

    if (len < PACK_HEAD)
        return co_fail(CO_EINPUT, "%s: shorter than the head of a pack: is the copy complete?", path);
    CO_TRY(pack_head(&p, bytes, file_len, path));
    if (len < pack_index_end(&p))
        return co_fail(CO_EINPUT, "%s: shorter than its index: is the copy complete?", path);
    p.entries = bytes + PACK_HEAD;
    p.names = (const char *)p.entries + p.n * PACK_ENTRY;
    co_sha256_of(p.entries, (size_t)(p.n * PACK_ENTRY + p.names_len), hash);
    if (memcmp(hash, bytes + AT_HASH, HASH_LEN) != 0 || !entries_are_good(&p))
        return co_fail(CO_EINPUT, "%s: its index is damaged: copy it again, or pack the folder again", path);
    *out = p;
    return CO_OK;
}

const char *pack_file(const pack *p, uint64_t i, uint64_t *at, uint64_t *size)
{
    const uint8_t *e = p->entries + i * PACK_ENTRY;

    *at = co_le_get(e, 8);
    *size = co_le_get(e + 8, 8);
    return p->names + co_le_get(e + 16, 4);
}

void pack_seal(uint8_t *bytes, const pack *p)
{
    char hash[65];

    memset(bytes, 0, PACK_HEAD);
    memcpy(bytes, PACK_MAGIC, 8);
    co_le_put(bytes + AT_VERSION, PACK_VERSION, 8);
    co_le_put(bytes + AT_N, p->n, 8);
    co_le_put(bytes + AT_NAMES, p->names_len, 8);
    co_le_put(bytes + AT_DATA, p->data_at, 8);
    co_le_put(bytes + AT_LEN, p->file_len, 8);
    memcpy(bytes + AT_SET, p->set, strnlen(p->set, PACK_SET_LEN));
    co_sha256_of(bytes + PACK_HEAD, (size_t)(p->n * PACK_ENTRY + p->names_len), hash);
    memcpy(bytes + AT_HASH, hash, HASH_LEN);
}
