/* output.c -- where a worker's output goes: its own file, merged.log, the screen. */
#include "job/job_int.h"

#include "base/clock.h"

static void show_line(co_screen *c, const stream *s, const char *text, size_t len)
{
    if (s->shown && s->teed)
        co_screen_teed(c, s->which, s->w->tee_prefix, text, len);
    else if (s->shown && c->prefix)
        co_screen_line(c, s->w->local_rank, s->which, text, len);
}

static void take_bytes(void *ctx, stream *s, const char *bytes, size_t n)
{
    job *j = ctx;

    files_log_bytes(&j->files, &s->file, bytes, n);
    if (s->shown && !s->teed && !j->screen.prefix)
        co_screen_raw(&j->screen, s->which, bytes, n);
}

static void take_line(void *ctx, const stream *s, const char *text, size_t len)
{
    job *j = ctx;

    files_merge_line(&j->files, s->w->rank, co_roster_clock_offset(j->roster), text, len);
    show_line(&j->screen, s, text, len);
}

/* A terminal already shows bars below its lines, except those of a teed stream. */
static void take_bar(void *ctx, const stream *s, const char *text, size_t len)
{
    job *j = ctx;
    bool drawn = !s->teed && co_outlets_at(&j->screen.out, s->which)->tty;

    files_merge_line(&j->files, s->w->rank, co_roster_clock_offset(j->roster), text, len);
    if (!drawn)
        show_line(&j->screen, s, text, len);
}

static void say(void *ctx, const char *text)
{
    job *j = ctx;

    co_screen_sayf(&j->screen, "%s", text);
}

worker_events output_events(job *j)
{
    return (worker_events){.ctx = j, .bytes = take_bytes, .line = take_line, .bar = take_bar, .say = say};
}

int output_turn(job *j)
{
    uint64_t now = co_now_ns();
    int first = -1;

    for (int i = 0; i < j->round.n; i++) {
        int ms = worker_turn(&j->round.workers[i], now);
        first = first < 0 || (ms >= 0 && ms < first) ? ms : first;
    }
    int ms = co_screen_draw_bars(&j->screen, j->round.bars, j->round.n_bars, now);
    return first < 0 || (ms >= 0 && ms < first) ? ms : first;
}
