/* over_lines.c -- what guests say, for the one record: lines of text, and the figures of each host. */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/over_int.h"

enum { LISTEN_MS = 5 }; /* between two looks for lines */

void log_line(training *s, const char *text)
{
    char name[256] = "localhost";
    co_str said = {0};

    gethostname(name, sizeof name - 1);
    if (*text == '{')
        co_str_addf(&said, "%s\n", text);
    else
        co_str_addf(&said, "[%s] %s\n", name, text);
    if (!co_str_err(&said))
        co_roster_log(s->over->given.roster, co_str_text(&said), strlen(co_str_text(&said)));
    co_str_fini(&said);
}

static void take_line(training *s, const char *said, size_t n)
{
    json_t *figures = NULL;

    if (*said == '{' && co_json_parse(&figures, said, n, "a guest's figures") == CO_OK) {
        const json_t *use = json_object_get(figures, "system");
        if (use)
            machine_take(s, use);
        else
            json_array_append(s->over->figures, figures);
        json_decref(figures);
    } else if (*said != '{')
        tell(s, "%.*s", (int)n, said);
    co_errclear();
}

void over_listen(training *s, bool last)
{
    uint64_t until = co_now_ns() + (last ? LAST_LINES_MS * UINT64_C(1000000) : 0);
    bool settled;

    if (!s->over || !s->folder)
        return;
    do {
        co_str lines = {0};
        settled = !last || co_roster_settled(s->over->given.roster);
        co_roster_logged(s->over->given.roster, &lines);
        for (const char *at = co_str_text(&lines); *at;) {
            size_t n = strcspn(at, "\n");
            take_line(s, at, n);
            at += n + (at[n] == '\n');
        }
        co_str_fini(&lines);
        if (!settled)
            poll(NULL, 0, LISTEN_MS);
    } while (!settled && co_now_ns() < until);
}

void over_add_figures(const training *s, json_t *hosts)
{
    if (s->over)
        json_array_extend(hosts, s->over->figures);
}

co_err listening_turn(void *ctx)
{
    over_listen(ctx, false);
    return ((training *)ctx)->over->record.turn(ctx);
}
