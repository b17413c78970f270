/* fuzz_code.c -- any text as a join code and as a token: what is taken prints to a text that reads back to
 * the same. */
#include <stdlib.h>
#include <string.h>

#include "roster/code.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = malloc(len + 1), again[CO_CODE_TEXT], twice[CO_CODE_TEXT], token[CO_TOKEN_TEXT];
    co_code c, back;
    co_token t;

    memcpy(text, bytes, len);
    text[len] = '\0';
    if (co_code_parse(&c, text) == CO_OK) {
        co_code_text(again, &c);
        if (co_code_parse(&back, again))
            abort();
        co_code_text(twice, &back);
        if (strcmp(again, twice) != 0 || c.n < 1 || c.n > CO_CODE_ADDRS || c.port < 1 || c.port > 65535)
            abort();
    } else if (!*co_errmsg()) {
        abort();
    }
    if (co_token_parse(&t, text) == CO_OK) {
        co_token_text(token, &t);
        if (co_token_parse(&t, token))
            abort();
    }
    free(text);
    return 0;
}
