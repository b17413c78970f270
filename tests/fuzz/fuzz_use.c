/* fuzz_use.c -- any JSON as the figures of another host: what is accepted has bounds and names as ours,
 * and is read back the same. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "track/use.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static co_use use, again;
    json_t *v = NULL;
    char name[CO_USE_LABEL], label[CO_USE_LABEL], host[CO_USE_HOST];
    const char *part;
    double value, other;
    int n = 0;

    if (co_json_parse(&v, (const char *)bytes, len, "fuzz"))
        return 0;
    co_err err = co_use_read(&use, v);
    json_decref(v);
    if (err)
        return 0;
    json_t *told = co_use_json(&use);
    if (!told || co_use_read(&again, told) != CO_OK)
        abort();
    json_decref(told);
    for (; co_use_at(&use, n, name, &value); n++) {
        co_use_label(label, use.host, name);
        if (!co_use_at(&again, n, name, &other) || isnan(value) != isnan(other) ||
            !co_use_split(label, host, &part) || strcmp(host, use.host) != 0 ||
            !co_use_put(&again, part, value))
            abort();
    }
    if (n > CO_USE_MOST)
        abort();
    return 0;
}
