/* zip_parse over any bytes: what it accepts must be safe to read, entry by entry. */
#include <stdlib.h>

#include "ckpt/zip_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zip_file zip;

    if (zip_parse(&zip, data, size, "fuzz") == CO_OK)
        for (int i = 0; i < zip.n; i++) {
            zip_entry *e = &zip.entry[i];
            if (e->offset > size || e->len > size - e->offset || zip_find(&zip, e->name) != e)
                abort();
            if (zip_check(&zip, e) == CO_OK && !e->checked)
                abort();
        }
    zip_close(&zip);
    return 0;
}
