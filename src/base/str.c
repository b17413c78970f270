/* str.c -- the growing string and strict numbers. The capacity doubles, so n bytes cost at most 2n bytes of
 * copying. */
#include "base/str.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"

/* Makes room for `more` bytes and the NUL. False if memory is out, now or in an earlier call. */
static bool grow(co_str *s, size_t more)
{
    if (s->failed)
        return false;
    if (more < s->room - s->len)
        return true;
    size_t room = s->room ? s->room : 32;
    while (room - s->len <= more && room <= SIZE_MAX / 2)
        room *= 2;
    char *p = room - s->len > more ? co_realloc(s->p, room) : NULL;
    if (!p) {
        s->failed = true;
        return false;
    }
    s->p = p;
    s->room = room;
    return true;
}

void co_str_addn(co_str *s, const char *text, size_t len)
{
    if (!grow(s, len))
        return;
    memcpy(s->p + s->len, text, len);
    s->len += len;
    s->p[s->len] = '\0';
}

void co_str_add(co_str *s, const char *text)
{
    co_str_addn(s, text, strlen(text));
}

void co_str_addf(co_str *s, const char *fmt, ...)
{
    int saved = errno; /* for %m */
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n > 0 && grow(s, (size_t)n)) {
        errno = saved;
        vsnprintf(s->p + s->len, (size_t)n + 1, fmt, again);
        s->len += (size_t)n;
    }
    va_end(again);
    va_end(ap);
}

void co_str_clear(co_str *s)
{
    s->len = 0;
    s->failed = false;
    if (s->p)
        s->p[0] = '\0';
}

const char *co_str_text(const co_str *s)
{
    return s->p ? s->p : "";
}

co_err co_str_err(const co_str *s)
{
    return s->failed ? co_fail(CO_ENOMEM, "out of memory for a text of more than %zu bytes", s->len) : CO_OK;
}

char *co_str_take(co_str *s)
{
    char *p = NULL;

    if (grow(s, 0)) { /* makes an empty text a valid text */
        p = s->p;
        p[s->len] = '\0';
        s->p = NULL;
    }
    co_str_fini(s);
    return p;
}

void co_str_fini(co_str *s)
{
    co_free(s->p);
    *s = (co_str){0};
}

/* The C locale, whatever locale the program has set. glibc returns a constant, so nothing is allocated or
 * freed. */
static locale_t c_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

void co_str_addf64(co_str *s, double x)
{
    char text[40];
    locale_t c = c_locale(), before = uselocale(c);

    /* Whole numbers are written 100, not 1e+02. A number that has a form of at most 15 digits prints as that
     * with %.15g, which leaves out zeros at its end; only numbers close to 0 have fewer digits that count. */
    bool whole = fabs(x) < 1e15 && x == (double)(long long)x;
    for (int digits = whole ? 17 : fabs(x) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    uselocale(before);
    co_str_add(s, isnan(x) ? "nan" : text);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Copies `s` without the underscores between digits. False if it does not fit, is empty, starts with a blank
 * or has an underscore elsewhere. */
static bool plain_number(char *out, size_t size, const char *s)
{
    size_t n = 0;

    if (!(is_digit(s[0]) || s[0] == '-' || s[0] == '+' || s[0] == '.' || s[0] == 'i' || s[0] == 'I' ||
          s[0] == 'n' || s[0] == 'N'))
        return false;
    for (size_t i = 0; s[i]; i++) {
        if (s[i] == '_') {
            if (i == 0 || !is_digit(s[i - 1]) || !is_digit(s[i + 1]))
                return false;
            continue;
        }
        if (n + 1 >= size)
            return false;
        out[n++] = s[i];
    }
    out[n] = '\0';
    return true;
}

bool co_str_to_i64(const char *s, long long *out)
{
    char text[64], *end;

    if (!plain_number(text, sizeof text, s))
        return false;
    if (!is_digit(text[text[0] == '-' || text[0] == '+']))
        return false;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (*end || errno)
        return false;
    *out = v;
    return true;
}

bool co_str_to_f64(const char *s, double *out)
{
    char text[512], *end;

    if (!plain_number(text, sizeof text, s))
        return false;
    double v = strtod_l(text, &end, c_locale());
    if (end == text || *end)
        return false;
    if (isinf(v) && !strpbrk(text, "iI"))
        return false; /* 1e999 overflows: the result is not the number that was written */
    *out = v;
    return true;
}

bool co_str_to_bool(const char *s, bool *out)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};

    for (size_t i = 0; i < CO_COUNT(words); i++) {
        if (strcasecmp(s, words[i]) == 0) {
            *out = i % 2;
            return true;
        }
    }
    return false;
}
