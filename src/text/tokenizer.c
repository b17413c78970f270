/* tokenizer.c -- what is known of a tokeniser once it is read: its tokens, their numbers, the marks of a
 * sentence. */
#include "text/text_int.h"

#include <string.h>

void co_tokenizer_free(co_tokenizer *t)
{
    if (!t)
        return;
    name_table_fini(&t->vocab);
    co_free(t->token);
    co_free(t->special);
    co_free(t->added);
    co_free(t->merges);
    co_free(t->file);
    co_pool_fini(&t->pool);
    co_free(t);
}

const char *co_tokenizer_file(const co_tokenizer *t, size_t *len)
{
    *len = t->file_len;
    return t->file;
}

int64_t co_tokenizer_size(const co_tokenizer *t)
{
    return t->size;
}

int32_t co_tokenizer_id(const co_tokenizer *t, const char *token)
{
    const name_slot *slot = name_find(&t->vocab, token, strlen(token));

    if (slot)
        return (int32_t)slot->value;
    for (size_t i = 0; i < t->n_added; i++)
        if (strcmp(t->token[t->added[i].id], token) == 0)
            return t->added[i].id;
    return -1;
}

const char *co_tokenizer_token(const co_tokenizer *t, int64_t id)
{
    return id >= 0 && id < t->size ? t->token[id] : NULL;
}

/* The first of the names (separated by blanks) that is a token; -1: none. */
static int32_t first_of(const co_tokenizer *t, const char *names)
{
    char name[32];

    for (const char *at = names; *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", (int)len, at);
        int32_t id = co_tokenizer_id(t, name);
        if (id >= 0)
            return id;
        at += len;
    }
    return -1;
}

co_err co_tokenizer_marks(const co_tokenizer *t, co_token_marks *out)
{
    static const char begins[] = "[SOS] <s> <sos> <bos> [BOS] [CLS] <|startoftext|> <|endoftext|>",
                      ends[] = "[EOS] </s> <eos> [SEP] <|endoftext|>", pads[] = "[PAD] <pad> <|padding|>";
    co_token_marks m = {first_of(t, begins), first_of(t, ends), first_of(t, pads)};

    if (m.begin < 0 || m.end < 0)
        return co_fail(CO_EINPUT,
                       "the tokenizer has no token to %s a sentence with; one of these is needed: %s",
                       m.begin < 0 ? "begin" : "end", m.begin < 0 ? begins : ends);
    *out = m;
    return CO_OK;
}
