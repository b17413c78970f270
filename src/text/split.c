/* split.c -- the words of a text as Python's str.split() gives them: runs of anything but white space. */
#include "text/score_int.h"

#include <string.h>

#include "base/alloc.h"
#include "text/unicode_int.h"

/* Python counts the separators U+001C to U+001F as white space too. */
static bool is_blank(uint32_t code)
{
    return code_is_space(code) || (code >= 0x1C && code <= 0x1F);
}

/* The code point at `at`; a byte that is no UTF-8 stands for itself. */
static uint32_t char_at(const char *at, int *n)
{
    uint32_t code;

    *n = co_utf8_get(&code, at, strnlen(at, 4));
    if (*n > 0)
        return code;
    *n = 1;
    return CO_CODE_POINTS + (uint8_t)*at;
}

co_err split_words(word_list *out, const char *text)
{
    size_t room = strlen(text) / 2 + 1;
    word *list = co_array(room, sizeof *list);
    size_t count = 0;
    int n;

    if (!list)
        return CO_ENOMEM;
    for (bool inside = false; *text; text += n) {
        bool blank = is_blank(char_at(text, &n));
        if (!blank && !inside)
            list[count++] = (word){text, 0};
        if (!blank)
            list[count - 1].len += (uint32_t)n;
        inside = !blank;
    }
    *out = (word_list){list, count};
    return CO_OK;
}

co_err split_chars(uint32_t **out, size_t *count, const char *text)
{
    uint32_t *list = co_array(strlen(text) + 1, sizeof *list);
    int n;

    if (!list)
        return CO_ENOMEM;
    for (*count = 0; *text; text += n)
        list[(*count)++] = char_at(text, &n);
    *out = list;
    return CO_OK;
}

bool word_same(const word *a, const word *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}
