/* fuzz_yaml.c -- any bytes as a YAML file: pairs or a message, never more. */
#include <string.h>

#include "base/err.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(void *ctx, const char *key, const char *value)
{
    CO_ASSERT(*key && strlen(value) <= (size_t)ctx * 6 + 8, "a pair larger than its file");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    co_err err = co_conf_parse_yaml((const char *)data, size, "fuzz.yaml", check, (void *)size);
    CO_ASSERT(err == CO_OK || *co_errmsg(), "an error without a message");
    return 0;
}
