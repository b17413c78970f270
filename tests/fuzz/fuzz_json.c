/* fuzz_json.c -- any bytes into the JSON door; what it accepts must print and come back equal.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc tests/fuzz/fuzz_json.c \
 *         src/base/[a-z]*.c -l:libjansson.a -l:libcrypto.a -lm -o fuzz_json
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    json_t *v = NULL, *again = NULL;

    if (co_json_parse(&v, (const char *)bytes, len, "fuzz")) {
        if (v || !*co_errmsg())
            abort(); /* refused, but written or without a word */
        return 0;
    }
    char *text = co_json_text(v);
    if (!text || co_json_parse(&again, text, strlen(text), "printed") || !json_equal(v, again))
        abort();
    char *text_again = co_json_text(again);
    if (!text_again || strcmp(text, text_again) != 0)
        abort();
    co_free(text_again);
    co_free(text);
    json_decref(again);
    json_decref(v);
    return 0;
}
