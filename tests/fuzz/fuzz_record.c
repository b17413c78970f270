/* Lines of events.jsonl into the run reader: the quick reader agrees with the JSON parser, and the series
 * stay sorted and within their limits. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "track/run_read_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void add(series_table *t, const scalar *s)
{
    if (series_add(t, s) != CO_OK)
        abort();
}

static void one_line(series_table *t, const char *bytes, size_t len)
{
    char *line = malloc(len + !len); /* exactly as long: a read past its end is seen */
    scalar quick, slow;
    json_t *v = NULL;

    memcpy(line, bytes, len);
    bool is_quick = scalar_line_read(&quick, line, len);
    bool is_json = co_json_parse(&v, line, len, "line") == CO_OK && json_is_object(v);
    bool is_slow = is_json && scalar_json_read(&slow, v);
    if (is_quick && (!is_slow || quick.name_len != slow.name_len ||
                     memcmp(quick.name, slow.name, quick.name_len) != 0 || quick.at.step != slow.at.step ||
                     !same(quick.at.value, slow.at.value) || !same(quick.at.t, slow.at.t)))
        abort();
    if (is_slow)
        add(t, &slow);
    json_decref(v);
    free(line);
}

/* The bytes as numbers: many points in any order. */
static void points_of(series_table *t, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + 2 < size; i++) {
        double value = data[i] == 255 ? NAN : data[i];
        const char *name = data[i + 1] & 1 ? "system/x" : "y";
        scalar s = {name, strlen(name), {.step = data[i] + 256 * data[i + 1], .t = data[i + 2], .value = value}};
        add(t, &s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    series_table t = {.points_most = 64};
    const char *at = (const char *)data, *end = at + size, *newline;

    for (; at < end && (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1)
        one_line(&t, at, (size_t)(newline - at));
    points_of(&t, data, size);
    series_settle(&t);
    for (size_t i = 0; i < t.n; i++) {
        const co_series *s = &t.all[i].shown;
        if (s->n < 1 || s->n > 64 || (int64_t)s->n > s->lines)
            abort();
        for (size_t k = 1; k < s->n && !s->by_time; k++)
            if (s->point[k].step <= s->point[k - 1].step)
                abort();
    }
    series_fini(&t);
    return 0;
}
