/* run_line.c -- scalars of the record.
 *
 * A run of days has millions of lines like {"step":10,"name":"lr","value":0.1,"t":1794789698.744}. They are
 * read here in some 100 ns each, a twentieth of what the JSON parser takes. The reader is strict: it takes what
 * events.c writes, and what it takes means the same to the JSON parser (tests/fuzz/fuzz_record.c compares
 * them).
 */
#include "track/run_read_int.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

typedef struct cursor {
    const char *at, *end;
} cursor;

static bool skip(cursor *c, const char *text)
{
    size_t n = strlen(text);

    if ((size_t)(c->end - c->at) < n || memcmp(c->at, text, n) != 0)
        return false;
    c->at += n;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t digits(cursor *c)
{
    const char *from = c->at;

    while (c->at < c->end && is_digit(*c->at))
        c->at++;
    return (size_t)(c->at - from);
}

static bool read_step(cursor *c, int64_t *out)
{
    const char *from = c->at;
    int64_t n = 0;
    size_t len = digits(c);

    if (len == 0 || len > 18 || (len > 1 && *from == '0'))
        return false;
    for (; from < c->at; from++)
        n = 10 * n + (*from - '0');
    *out = n;
    return true;
}

/* Up to 19 digits as one integer, and how many of them stand behind the point. False: it is not so simple. */
static bool whole_digits(const char *text, size_t len, uint64_t *out, size_t *behind)
{
    uint64_t all = 0;
    size_t point = len;

    for (size_t i = 0; i < len; i++) {
        if (text[i] == '.')
            point = i + 1;
        else if (is_digit(text[i]))
            all = 10 * all + (uint64_t)(text[i] - '0');
        else
            return false;
    }
    *out = all;
    *behind = len - point;
    return true;
}

/* A number without an exponent, rounded as strtod rounds it. With at most 15 digits, the digits and the power of
 * ten are exact as doubles, so one division is. With up to 19 digits the same holds in the 64 bits of x86's long
 * double; rounding the quotient once more, to a double, goes wrong only if it lies exactly between two doubles,
 * and then strtod decides. */
static bool simple_number(const char *text, size_t len, double *out)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                  1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
    bool minus = len && *text == '-';
    uint64_t all;
    size_t behind;
    double x;

    if (len - minus > 20 || !whole_digits(text + minus, len - minus, &all, &behind))
        return false;
    if (all < UINT64_C(1000000000000000) && behind <= 15)
        x = (double)all / tens[behind];
#if LDBL_MANT_DIG == 64
    else if (behind > 0) { /* one of the 20 letters is the point, so `all` did not overflow */
        long double quotient = (long double)all / (long double)tens[behind];
        uint64_t bits;
        memcpy(&bits, &quotient, sizeof bits);
        if ((bits & 0x7ff) == 0x400)
            return false;
        x = (double)quotient;
    }
#endif
    else
        return false;
    *out = minus ? -x : x;
    return true;
}

/* A number as JSON has it. */
static bool read_number(cursor *c, double *out)
{
    char text[40];
    const char *from = c->at;

    skip(c, "-");
    const char *first = c->at;
    size_t whole = digits(c);
    if (whole == 0 || whole > 18 || (whole > 1 && *first == '0')) /* above 18: JSON's integers end there */
        return false;
    if (skip(c, ".") && digits(c) == 0)
        return false;
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        c->at++;
        if (!skip(c, "-"))
            skip(c, "+");
        if (digits(c) == 0)
            return false;
    }
    size_t len = (size_t)(c->at - from);
    if (len >= sizeof text)
        return false;
    if (simple_number(from, len, out))
        return true;
    memcpy(text, from, len);
    text[len] = '\0';
    *out = strtod(text, NULL);
    return isfinite(*out);
}

static bool read_value(cursor *c, double *out)
{
    if (c->at < c->end && *c->at != '"')
        return read_number(c, out);
    if (skip(c, "\"nan\""))
        *out = NAN;
    else if (skip(c, "\"inf\""))
        *out = INFINITY;
    else if (skip(c, "\"-inf\""))
        *out = -INFINITY;
    else
        return false;
    return true;
}

/* Plain letters only, and no escapes. */
static bool read_name(cursor *c, scalar *out)
{
    out->name = c->at;
    while (c->at < c->end && *c->at >= 0x20 && *c->at < 0x7f && *c->at != '"' && *c->at != '\\')
        c->at++;
    out->name_len = (size_t)(c->at - out->name);
    return true;
}

static double checked_time(double t)
{
    return fabs(t) < 1e12 ? t : NAN; /* nan, too */
}

bool scalar_line_read(scalar *out, const char *line, size_t len)
{
    cursor c = {line, line + len};
    scalar s = {0};
    bool good = skip(&c, "{\"step\":") && read_step(&c, &s.at.step) && skip(&c, ",\"name\":\"") &&
                read_name(&c, &s) && skip(&c, "\",\"value\":") && read_value(&c, &s.at.value) &&
                skip(&c, ",\"t\":") && read_number(&c, &s.at.t) && skip(&c, "}") && c.at == c.end;

    s.at.t = checked_time(s.at.t);
    if (good)
        *out = s;
    return good;
}

bool scalar_json_read(scalar *out, const json_t *line)
{
    const char *name = co_json_str(line, "name");
    scalar s = {.name = name, .at.t = NAN};
    long long step;

    if (!name || !co_json_i64(line, "step", &step) || !co_json_f64(line, "value", &s.at.value))
        return false;
    s.name_len = strlen(name);
    s.at.step = step;
    co_json_f64(line, "t", &s.at.t);
    s.at.t = checked_time(s.at.t);
    *out = s;
    return true;
}
