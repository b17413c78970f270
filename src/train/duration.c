/* duration.c -- how long a run may take, as people write it. */
#include "train/plan_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* "DD:HH:MM:SS", or with fewer parts from the right. */
static bool clock_text(const char *text, double *seconds)
{
    static const double worth[] = {1, 60, 3600, 86400};
    int part[4], n = 0;
    const char *at = text;

    for (;;) {
        size_t digits = strspn(at, "0123456789");
        if (digits < 1 || digits > 6 || n == 4)
            return false;
        part[n++] = atoi(at);
        at += digits;
        if (*at == '\0')
            break;
        if (*at++ != ':')
            return false;
    }
    *seconds = 0;
    for (int i = 0; i < n; i++)
        *seconds += part[n - 1 - i] * worth[i];
    return n > 1;
}

co_err parse_duration(const char *text, uint64_t *ns)
{
    static const struct {
        char unit;
        double worth;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    double seconds = 0;
    size_t len = strlen(text);
    char number[32];
    bool good = clock_text(text, &seconds);

    for (size_t i = 0; !good && i < CO_COUNT(units); i++)
        if (len > 1 && len < sizeof number && text[len - 1] == units[i].unit) {
            memcpy(number, text, len - 1);
            number[len - 1] = '\0';
            good = co_str_to_f64(number, &seconds);
            seconds *= units[i].worth;
        }
    if (!good || !(seconds > 0 && seconds < 1e9))
        return co_fail(CO_EINPUT, "trainer.max_time: \"%s\" is not a time: 90s, 15m, 2h, 1d or DD:HH:MM:SS",
                       text);
    *ns = (uint64_t)(seconds * 1e9);
    return CO_OK;
}
