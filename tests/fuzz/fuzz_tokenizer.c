/* fuzz_tokenizer.c -- any bytes as a tokeniser's file. One that is accepted gives tokens that it has for
 * any text, and text in UTF-8 for any tokens. */
#include <stdlib.h>
#include <string.h>

#include "text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void use(const co_tokenizer *t, const char *text, size_t len)
{
    co_tokens ids = {0};
    co_str back = {0};

    if (co_tokenizer_encode(t, &ids, text, len))
        abort();
    for (size_t i = 0; i < ids.n; i++)
        if (!co_tokenizer_token(t, ids.id[i]))
            abort();
    co_tokenizer_decode(t, ids.id, ids.n, &back);
    if (!co_utf8_valid(co_str_text(&back)))
        abort();
    co_tokens_fini(&ids);
    co_str_fini(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char text[] = "The cat's  \xC3\xA8 [EOS] don't 3.14 \xF0\x9F\x91\x8D a";
    co_tokenizer *t = NULL;
    co_token_marks marks;
    int32_t some[] = {0, 5, -1, 1000000, 3};
    co_str back = {0};

    if (co_tokenizer_parse(&t, (const char *)bytes, len, "fuzz")) {
        if (t || !*co_errmsg())
            abort(); /* refused, but written or without a word */
        return 0;
    }
    use(t, text, strlen(text));
    for (int64_t i = 0; i < co_tokenizer_size(t) && i < 8; i++)
        if (co_tokenizer_token(t, i))
            use(t, co_tokenizer_token(t, i), strlen(co_tokenizer_token(t, i)));
    co_tokenizer_decode(t, some, CO_COUNT(some), &back);
    (void)co_tokenizer_marks(t, &marks);
    co_str_fini(&back);
    co_tokenizer_free(t);
    return 0;
}
