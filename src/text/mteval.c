/* mteval.c -- sacrebleu's tokenizer 13a, which is that of NIST's mteval-v13a.pl: marks are parted from
 * words by blanks.
 *
 * Four replacements, one after the other, each from left to right and without overlaps, as Python's re.sub
 * does them:
 *
 *     ([\{-\~\[-\` -\&\(-\+\:-\@\/])   ->  " \1 "      marks
 *     ([^0-9])([\.,])                  ->  "\1 \2 "    a full stop or comma that follows no digit
 *     ([\.,])([^0-9])                  ->  " \1 \2"    ... or that no digit follows
 *     ([0-9])(-)                       ->  "\1 \2 "    a dash after a digit
 *
 * They work on bytes: a byte of a longer character is never one of these marks or digits.
 */
#include "text/score_int.h"

#include <string.h>

static bool is_mark(uint8_t c)
{
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
           (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_other(uint8_t c)
{
    return !is_digit(c);
}

static bool is_stop(uint8_t c)
{
    return c == '.' || c == ',';
}

static bool is_dash(uint8_t c)
{
    return c == '-';
}

static const struct {
    bool (*left)(uint8_t), (*right)(uint8_t);
    const char *before, *between, *after;
} pairs[] = {
    {is_other, is_stop, "", " ", " "},
    {is_stop, is_other, " ", " ", ""},
    {is_digit, is_dash, "", " ", " "},
};

static void part_marks(co_str *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool mark = is_mark((uint8_t)text[i]);
        co_str_add(out, mark ? " " : "");
        co_str_addn(out, text + i, 1);
        co_str_add(out, mark ? " " : "");
    }
}

static void part_pairs(co_str *out, const char *text, size_t len, size_t rule)
{
    for (size_t i = 0; i < len; i++) {
        bool fits =
            i + 1 < len && pairs[rule].left((uint8_t)text[i]) && pairs[rule].right((uint8_t)text[i + 1]);
        co_str_add(out, fits ? pairs[rule].before : "");
        co_str_addn(out, text + i, 1);
        if (!fits)
            continue;
        co_str_add(out, pairs[rule].between);
        co_str_addn(out, text + ++i, 1);
        co_str_add(out, pairs[rule].after);
    }
}

/* What stands for marks in SGML, and what mteval takes out, in this order. */
static const struct {
    const char *was, *is;
} replaced[] = {{"<skipped>", ""}, {"-\n", ""},   {"\n", " "},  {"&quot;", "\""},
                {"&amp;", "&"},    {"&lt;", "<"}, {"&gt;", ">"}};

static void replace(co_str *text, const char *was, const char *is)
{
    co_str out = {0};
    const char *at = co_str_text(text), *found;

    for (; (found = strstr(at, was)); at = found + strlen(was)) {
        co_str_addn(&out, at, (size_t)(found - at));
        co_str_add(&out, is);
    }
    co_str_add(&out, at);
    out.failed |= text->failed;
    co_str_fini(text);
    *text = out;
}

/* `now` through one rule; `next` is working room. */
static void apply(co_str *now, co_str *next, size_t rule)
{
    bool failed = now->failed;
    co_str was = *now;

    co_str_clear(next);
    part_pairs(next, co_str_text(now), now->len, rule);
    *now = *next;
    now->failed |= failed;
    *next = was;
}

void tokenize_13a(co_str *out, const char *text)
{
    co_str now = {0}, spaced = {0}, room = {0};
    size_t len = strlen(text);

    while (len && strchr(" \t\r\n", text[len - 1]))
        len--;
    co_str_addn(&now, text, len);
    for (size_t i = 0; i < CO_COUNT(replaced); i++)
        if (strstr(co_str_text(&now), replaced[i].was))
            replace(&now, replaced[i].was, replaced[i].is);
    co_str_add(&spaced, " ");
    co_str_add(&spaced, co_str_text(&now));
    co_str_add(&spaced, " ");
    spaced.failed |= now.failed;
    co_str_clear(&now);
    part_marks(&now, co_str_text(&spaced), spaced.len);
    for (size_t rule = 0; rule < CO_COUNT(pairs); rule++)
        apply(&now, &room, rule);
    co_str_add(out, co_str_text(&now));
    out->failed |= now.failed || spaced.failed;
    co_str_fini(&now);
    co_str_fini(&spaced);
    co_str_fini(&room);
}
