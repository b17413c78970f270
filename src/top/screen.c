/* screen.c -- lines of text that are shown together, and what stands in their cells. */
#include "top/top_int.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* --- lines ---------------------------------------------------------------------------------------------- */
void top_add(top_screen *out, top_look look, const char *text)
{
    if (out->n == out->room) {
        int room = out->room ? 2 * out->room : 64;
        struct top_line *more = co_realloc(out->line, (size_t)room * sizeof *more);
        if (!more)
            return; /* a line that is not shown */
        out->line = more;
        out->room = room;
    }
    char *copy = co_strdup(text);
    if (copy)
        out->line[out->n++] = (struct top_line){copy, look};
}

void top_addf(top_screen *out, top_look look, const char *fmt, ...)
{
    char text[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    top_add(out, look, text);
}

void top_screen_fini(top_screen *screen)
{
    for (int i = 0; i < screen->n; i++)
        co_free(screen->line[i].text);
    co_free(screen->line);
    *screen = (top_screen){0};
}

const top_run *top_chosen(const top_state *state)
{
    return state->chosen >= 0 && state->chosen < state->n ? &state->run[state->chosen] : NULL;
}

/* --- cells ---------------------------------------------------------------------------------------------- */
const char *top_percent(char out[16], double x)
{
    snprintf(out, 16, isfinite(x) ? "%.0f%%" : "-", x);
    return out;
}

const char *top_bytes(char out[16], double mb)
{
    if (!isfinite(mb))
        snprintf(out, 16, "-");
    else if (mb < 9.95)
        snprintf(out, 16, "%.1fM", mb);
    else if (mb < 999.5)
        snprintf(out, 16, "%.0fM", mb);
    else
        snprintf(out, 16, mb < 9950 ? "%.1fG" : "%.0fG", mb / 1000);
    return out;
}

const char *top_number(char out[16], double x)
{
    snprintf(out, 16, isfinite(x) ? "%.4g" : "-", x);
    return out;
}

const char *top_tenths(char out[16], double x)
{
    return top_number(out, round(x * 10) / 10);
}

const char *top_whole(char out[16], double x)
{
    snprintf(out, 16, isfinite(x) && x > 0 ? "%.0f" : "-", x);
    return out;
}

/* "3/10"; "3" where there is no limit; "-" before the first step. */
const char *top_part(char out[48], const top_run *run, int64_t at, int64_t of, int width)
{
    if (!run->has_progress || at <= 0)
        snprintf(out, 48, "-");
    else if (of <= 0 || of >= INT32_MAX)
        snprintf(out, 48, "%lld", (long long)at);
    else
        snprintf(out, 48, "%lld/%lld", (long long)at, (long long)of);
    if ((int)strlen(out) > width)
        snprintf(out, 48, "%lld", (long long)at);
    return out;
}

static bool has_stalled(const top_run *run)
{
    for (int h = 0; h < run->hosts && run->is_live; h++)
        for (int r = 0; r < run->host[h].ranks; r++)
            if (run->host[h].rank[r].still_s >= 2)
                return true;
    return false;
}

const char *top_state_text(const top_run *run)
{
    if (!run->is_live)
        return co_run_state_name(run->state);
    if (run->live.launch[0])
        return "launch";
    if (run->live.guest)
        return "guest";
    return has_stalled(run) ? "stalled" : "running";
}

const char *top_host_name(const top_state *state, const top_run *run, const co_use *use)
{
    if (use->host[0])
        return use->host;
    if (run->live.record_host[0] && !run->live.guest)
        return run->live.record_host;
    return run->is_live ? state->host : "(host of the record)";
}
