/* co_zip_parse over any bytes: what it accepts must be safe to read, entry by entry. */
#include <stdlib.h>

#include "base/zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static co_err count(void *ctx, const void *bytes, size_t len)
{
    uint64_t *left = ctx;

    if (len > *left)
        abort(); /* more than the directory says */
    *left -= len;
    return CO_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    co_zip_file zip;

    if (co_zip_parse(&zip, data, size, "fuzz") == CO_OK)
        for (int i = 0; i < zip.n; i++) {
            co_zip_entry *e = &zip.entry[i];
            if (e->offset > size || e->packed > size - e->offset || co_zip_find(&zip, e->name) != e)
                abort();
            uint64_t left = e->len;
            if (e->len < 1 << 24 && co_zip_unpack(&zip, e, count, &left) == CO_OK && left != 0)
                abort();
            if (e->method == CO_ZIP_STORED && co_zip_check(&zip, e) == CO_OK && !e->checked)
                abort();
        }
    co_zip_close(&zip);
    return 0;
}
