/* The reader of torch.save's files over any bytes, three times: as a pickle alone; as the pickle of an
 * archive that is whole, so that sizes and strides meet storages; and as the archive itself. Every tensor
 * that it accepts is read. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "ckpt/pickle_int.h"
#include "ckpt/torch_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(torch_file *f)
{
    if (torch_check(f) == CO_OK)
        for (int i = 0; i < torch_count(f); i++) {
            const co_st_tensor *t = torch_at(f, i);
            void *bytes = malloc(t->len + 1);
            if (torch_read(f, t, bytes) != CO_OK)
                abort();
            free(bytes);
        }
    torch_close(f);
}

static size_t put(uint8_t *to, size_t at, uint64_t x, int bytes)
{
    co_le_put(to + at, x, bytes);
    return at + (size_t)bytes;
}

/* Appends an entry: its local header to `to`, its row of the directory to `row`. */
static size_t add(uint8_t *to, size_t at, uint8_t row[64], const char *name, const uint8_t *bytes, size_t len)
{
    size_t begin = at, n = strlen(name);
    uint64_t crc = crc32(0, bytes, (uInt)len);

    memcpy(to + at, "PK\3\4\0\0\0\0\0\0\0\0\0\0", 14);
    at = put(to, at + 14, crc, 4);
    at = put(to, at, len, 4);
    at = put(to, at, len, 4);
    at = put(to, at, n, 4);
    memcpy(to + at, name, n);
    memcpy(to + at + n, bytes, len);
    memset(row, 0, 64);
    memcpy(row, "PK\1\2", 4);
    put(row, 16, crc, 4);
    put(row, 20, len, 4);
    put(row, 24, len, 4);
    put(row, 28, n, 2);
    put(row, 42, begin, 4);
    memcpy(row + 46, name, n);
    return at + n + len;
}

/* data.pkl with these bytes, and the storages 0 and 1. */
static uint8_t *wrap(const uint8_t *pickle, size_t len, size_t *out_len)
{
    static const char *const names[] = {"m/data.pkl", "m/data/0", "m/data/1"};
    uint8_t *to = malloc(len + 1024), row[3][64], storage[128] = {0};
    size_t at = 0;

    for (int i = 0; i < 3; i++)
        at = add(to, at, row[i], names[i], i ? storage : pickle, i ? sizeof storage : len);
    size_t directory = at;
    for (int i = 0; i < 3; i++) {
        memcpy(to + at, row[i], 46 + strlen(names[i]));
        at += 46 + strlen(names[i]);
    }
    size_t directory_len = at - directory;
    memcpy(to + at, "PK\5\6\0\0\0\0\3\0\3\0", 12);
    at = put(to, at + 12, directory_len, 4);
    at = put(to, at, directory, 4);
    *out_len = put(to, at, 0, 2);
    return to;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const pickle_value *root;
    torch_file *f = NULL;
    co_import_how how = {.drop_objects = size % 2};
    co_pool pool = {0};
    size_t len;

    (void)pickle_parse(&root, &pool, data, size, "fuzz", !how.drop_objects);
    co_pool_fini(&pool);
    uint8_t *whole = wrap(data, size, &len);
    if (torch_parse(&f, whole, len, "fuzz", &how) == CO_OK)
        read_all(f);
    free(whole);
    f = NULL;
    if (torch_parse(&f, data, size, "fuzz", &how) == CO_OK)
        read_all(f);
    return 0;
}
