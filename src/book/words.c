/* words.c -- numbers as people write them. */
#include "book/book_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"

static const words unknown = {"not known"};

/* The number with so many decimals and a comma between thousands. */
static words with_commas(double x, int decimals)
{
    char plain[64];
    words w = {""};
    size_t at = 0;

    if (!isfinite(x) || fabs(x) > 1e18)
        return unknown;
    snprintf(plain, sizeof plain, "%.*f", decimals, fabs(x));
    size_t whole = strcspn(plain, ".");
    if (x < 0 && strspn(plain, "0.") != strlen(plain))
        w.text[at++] = '-';
    for (size_t i = 0; plain[i] && at + 2 < sizeof w.text; i++) {
        if (i && i < whole && (whole - i) % 3 == 0)
            w.text[at++] = ',';
        w.text[at++] = plain[i];
    }
    w.text[at] = '\0';
    return w;
}

words words_int(double n)
{
    return with_commas(n, 0);
}

words words_rate(double per_s)
{
    return with_commas(per_s, per_s < 10 ? 2 : per_s < 100 ? 1 : 0);
}

words words_time(double secs)
{
    words w;

    if (!isfinite(secs) || secs < 0 || secs > 1e12)
        return unknown;
    long long whole = (long long)(secs + 0.5);
    if (secs < 9.995)
        snprintf(w.text, sizeof w.text, "%.2f s", secs);
    else if (secs < 59.95)
        snprintf(w.text, sizeof w.text, "%.1f s", secs);
    else if (whole < 3600)
        snprintf(w.text, sizeof w.text, "%lld min %02lld s", whole / 60, whole % 60);
    else
        snprintf(w.text, sizeof w.text, "%lld h %02lld min %02lld s", whole / 3600, whole / 60 % 60,
                 whole % 60);
    return w;
}

words words_bytes(double bytes)
{
    static const struct {
        double size;
        const char *name;
    } units[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}};
    words w;

    if (!isfinite(bytes) || bytes < 0)
        return unknown;
    for (size_t i = 0; i < CO_COUNT(units); i++)
        if (bytes >= units[i].size) {
            double n = bytes / units[i].size;
            snprintf(w.text, sizeof w.text, "%.*f %s", n < 100 ? 1 : 0, n, units[i].name);
            return w;
        }
    snprintf(w.text, sizeof w.text, "%.0f bytes", bytes);
    return w;
}

words words_percent(double share)
{
    words w;

    if (!isfinite(share))
        return unknown;
    snprintf(w.text, sizeof w.text, "%.2f %%", 100 * share);
    return w;
}

words words_value(double x)
{
    words w;

    if (isnan(x))
        return (words){"nan"};
    if (x == 0 || (fabs(x) >= 1e-3 && fabs(x) < 1e4))
        snprintf(w.text, sizeof w.text, "%.*f",
                 fabs(x) < 1     ? 4
                 : fabs(x) < 10  ? 3
                 : fabs(x) < 100 ? 2
                                 : 1,
                 x);
    else
        snprintf(w.text, sizeof w.text, "%.3g", x);
    return w;
}

words words_date(double t)
{
    words w;

    if (!isfinite(t) || t <= 0 || t > 1e11)
        return unknown;
    co_date(w.text, sizeof w.text, "%Y-%m-%d %H:%M:%S", t);
    return w;
}

words words_ranks(double ranks, double hosts)
{
    words w;

    snprintf(w.text, sizeof w.text, "%.20s rank%s on %.20s host%s", words_int(ranks).text,
             ranks == 1 ? "" : "s", isnan(hosts) ? "1" : words_int(hosts).text, hosts > 1 ? "s" : "");
    return w;
}

/* acc, acc5, acc_epoch: the share of samples that are right. */
bool words_is_share(const char *name)
{
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;

    return strncmp(last, "acc", 3) == 0;
}

words words_metric(const char *name, double x)
{
    return words_is_share(name) && isfinite(x) ? words_percent(x) : words_value(x);
}

const char *words_label(const char *metric, char out[96])
{
    const char *slash = strrchr(metric, '/'), *last = slash ? slash + 1 : metric;
    const char *also = strcmp(last, "acc") == 0 ? " (Acc@1)" : strcmp(last, "acc5") == 0 ? " (Acc@5)" : "";

    snprintf(out, 96, "%.80s%s", metric, also);
    return out;
}

bool co_book_is_secret(const char *key)
{
    static const char *const signs[] = {"api_key",  "apikey", "token",     "secret",
                                        "password", "passwd", "access_key"};

    for (size_t i = 0; i < CO_COUNT(signs); i++)
        if (strcasestr(key, signs[i]))
            return true;
    return false;
}
