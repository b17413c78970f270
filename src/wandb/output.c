/* output.c -- the run's train.log (of a rank's run: the log of the rank) as the output of the run.
 *
 *     [2026-11-17 13:25:22] model     cnn: 56554 parameters
 *
 * becomes an output record, a line of the channel `output` with the time in front as wandb writes it, and a
 * line of files/output.log. The file is read from its beginning in every start, so line n is always the
 * same.
 */
#include "wandb/run_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { LINE_MOST = 16384, DATE_LEN = 22 }; /* "[2026-11-17 13:25:22] " */

static double date_of(const char *line, size_t len, size_t *text)
{
    struct tm tm = {.tm_isdst = -1};
    char date[DATE_LEN + 1];

    *text = 0;
    if (len < DATE_LEN - 1 || line[0] != '[')
        return 0;
    snprintf(date, sizeof date, "%.*s", DATE_LEN - 1, line);
    const char *rest = strptime(date, "[%Y-%m-%d %H:%M:%S]", &tm);
    if (!rest || *rest)
        return 0;
    *text = len > DATE_LEN - 1 && line[DATE_LEN - 1] == ' ' ? DATE_LEN : DATE_LEN - 1;
    return (double)mktime(&tm);
}

static void take_line(co_wandb *w, const char *line, size_t len)
{
    char raw[LINE_MOST], clean[LINE_MOST], stamp[CO_STAMP];
    size_t text;
    double t = date_of(line, len, &text);

    w->output_t = t > 0 ? t : w->output_t;
    snprintf(raw, sizeof raw, "%.*s", (int)(len - text < sizeof raw ? len - text : sizeof raw - 1),
             line + text);
    co_utf8_clean(clean, sizeof clean, raw);
    entry_output(&w->log, w->output_t, clean, strlen(clean));
    co_str_addf(&w->output_file.pending, "%s\n", clean);
    co_stamp(stamp, w->output_t);
    stamp[strlen(stamp) - 1] = '\0'; /* without the Z */
    co_str_addf(&w->channel[CH_OUTPUT].pending, "%s %s\n", stamp, clean);
}

co_err output_take(co_wandb *w)
{
    char bytes[65536];

    if (w->output_fd < 0) {
        w->output_fd = open(w->output_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (w->output_fd < 0)
            return CO_OK; /* not there yet */
    }
    for (;;) {
        ssize_t n = read(w->output_fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return co_str_err(&w->output_rest);
        for (ssize_t from = 0, to; from < n; from = to) {
            const char *newline = memchr(bytes + from, '\n', (size_t)(n - from));
            to = newline ? newline + 1 - bytes : n;
            if (w->output_rest.len < LINE_MOST)
                co_str_addn(&w->output_rest, bytes + from, (size_t)(to - from) - (newline ? 1 : 0));
            if (newline) {
                take_line(w, co_str_text(&w->output_rest), w->output_rest.len);
                co_str_clear(&w->output_rest);
            }
        }
    }
}
