/* console.c -- what a person sees: a bar that redraws itself on a terminal, plain lines anywhere else.
 *
 *     epoch 3/15 [=====>       ] step 66/330  loss 0.0821  acc 0.976  12,345 samples/s  eta 4 s  2 ranks
 *     epoch 3/15 [=>        ] step 66/330  loss 0.0821  acc 0.976  12.3k/s  eta 4 s          (80 columns)
 *     epoch 3/15  step 66/330  loss 0.0821  acc 0.976  12,345 samples/s  eta 4 s             (no terminal)
 *
 * A bar leaves figures out until the rest fits beside a gauge, and goes away at the end. A line goes out in
 * one write, so that lines of several threads and processes do not mix. Writing that fails is ignored: a
 * screen is no reason to stop a run.
 */
#include "track/track.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/str.h"

struct co_console {
    int fd;
    co_console_style style; /* never AUTO */
    bool colour, dumb;      /* dumb: the terminal understands no escape sequences */
    pthread_mutex_t lock;   /* any thread may log a line */
    double drawn_s;         /* 0: nothing yet */
    int64_t epoch, step;    /* drawn last */
    double evaluated;       /* the same */
    co_str bar;             /* the bar on the screen now; "" if there is none */
};

static bool env_set(const char *name)
{
    const char *v = getenv(name);
    return v && *v;
}

co_err co_console_open(co_console **out, int fd, co_console_style style)
{
    co_console *c = co_zalloc(sizeof *c);
    if (!c)
        return CO_ENOMEM;
    bool terminal = isatty(fd);
    const char *term = getenv("TERM");
    c->fd = fd;
    c->style = style != CO_CONSOLE_AUTO ? style : terminal ? CO_CONSOLE_BAR : CO_CONSOLE_PLAIN;
    c->dumb = !terminal || !term || strcmp(term, "dumb") == 0;
    c->colour = !c->dumb && !env_set("NO_COLOR");
    c->epoch = c->step = -1;
    pthread_mutex_init(&c->lock, NULL);
    *out = c;
    return CO_OK;
}

static void put(const co_console *c, const co_str *s)
{
    if (s->len && !s->failed)
        (void)co_fs_write_all(c->fd, s->p, s->len, "console");
}

/* Columns that we use: all but the last, where some terminals wrap. */
static int columns(const co_console *c)
{
    struct winsize w;
    return ioctl(c->fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 1 ? w.ws_col - 1 : 79;
}

/* 12345 -> "12,345" */
static void add_grouped(co_str *s, double x)
{
    char digits[32];
    int n = snprintf(digits, sizeof digits, "%.0f", x < 1e15 ? x : 1e15);
    for (int i = 0; i < n; i++)
        co_str_addf(s, "%s%c", i && (n - i) % 3 == 0 ? "," : "", digits[i]);
}

static void add_number(co_str *s, double x, int digits)
{
    bool usual = x == 0 || (fabs(x) >= 1e-3 && fabs(x) < 1e6);
    if (isnan(x))
        co_str_add(s, "nan"); /* printf would also write "-nan" */
    else
        co_str_addf(s, usual || isinf(x) ? "%.*f" : "%.*e", digits, x);
}

const char *co_time_text(char out[32], double secs)
{
    long long t = secs < 1e9 ? llround(secs) : 1000000000;
    if (t < 60)
        snprintf(out, 32, "%lld s", t);
    else if (t < 3600)
        snprintf(out, 32, "%lld min %02lld s", t / 60, t % 60);
    else
        snprintf(out, 32, "%lld h %02lld min", t / 3600, t / 60 % 60);
    return out;
}

static void add_count(co_str *s, const char *what, int64_t i, int64_t n)
{
    co_str_addf(s, "%s %lld", what, (long long)i);
    if (n > 0)
        co_str_addf(s, "/%lld", (long long)n);
}

/* What a bar leaves out when the terminal is narrow, one thing more with each. */
enum brevity { ALL, NO_RANKS, SHORT_RATE, NO_WAIT, NO_RATE, NO_ETA, NO_METRIC };

/* "12,345 samples/s", or "12.3k/s" */
static void add_rate(co_str *s, double rate, enum brevity brevity)
{
    co_str_add(s, "  ");
    if (brevity < SHORT_RATE) {
        add_grouped(s, rate);
        co_str_add(s, " samples/s");
    } else if (rate < 1e3)
        co_str_addf(s, "%.0f/s", rate);
    else
        co_str_addf(s, rate < 1e6 ? "%.1fk/s" : "%.1fM/s", rate / (rate < 1e6 ? 1e3 : 1e6));
}

/* From the step on; what is not known is left out. */
static void add_figures(co_str *s, const co_progress *p, enum brevity brevity)
{
    char left[32];
    add_count(s, "step", p->step, p->steps);
    if (p->evaluating)
        co_str_addf(s, "  %s %.0f %%", p->evaluating, 100 * p->evaluated);
    if (!p->evaluating || !isnan(p->loss)) { /* a run that continues with an evaluation has no loss yet */
        co_str_add(s, "  loss ");
        add_number(s, p->loss, 4);
    }
    if (p->metric_name && brevity < NO_METRIC && (!p->evaluating || !isnan(p->metric))) {
        co_str_addf(s, "  %s ", p->metric_name);
        add_number(s, p->metric, 3);
    }
    if (p->samples_per_s > 0 && isfinite(p->samples_per_s) && brevity < NO_RATE)
        add_rate(s, p->samples_per_s, brevity);
    if (p->data_wait > 0.05 && p->data_wait <= 1 && brevity < NO_WAIT)
        co_str_addf(s, "  data wait %.0f %%", 100 * p->data_wait);
    if (p->eta_s >= 0 && isfinite(p->eta_s) && brevity < NO_ETA)
        co_str_addf(s, "  eta %s", co_time_text(left, p->eta_s));
}

static void add_gauge(co_str *s, const co_console *c, const co_progress *p, int width)
{
    int full = p->step >= p->steps ? width : (int)((double)p->step / (double)p->steps * width);
    co_str_addf(s, " [%s", c->colour ? "\033[32m" : "");
    for (int i = 0; i < width; i++)
        co_str_add(s, i < full ? "=" : i == full ? ">" : " ");
    co_str_addf(s, "%s] ", c->colour ? "\033[0m" : "");
}

/* Erases the bar and leaves the cursor at the beginning of the empty line. */
static void add_erase(co_str *s, const co_console *c)
{
    if (c->dumb)
        co_str_addf(s, "\r%*s\r", (int)c->bar.len, "");
    else
        co_str_add(s, "\r\033[K");
}

/* The figures, as many as fit into `room` columns; false if not even the fewest do. */
static bool fit_figures(co_str *tail, const co_progress *p, int room)
{
    for (enum brevity brevity = ALL; brevity <= NO_METRIC; brevity++) {
        co_str_clear(tail);
        add_figures(tail, p, brevity);
        if (p->ranks > 1 && brevity < NO_RANKS)
            co_str_addf(tail, "  %d ranks", p->ranks);
        if ((int)tail->len <= room)
            return true;
    }
    return false;
}

/* A gauge of eight columns or more comes before figures; on a terminal too narrow for both it is left out. */
static void draw_bar(co_console *c, const co_progress *p)
{
    enum { GAUGE_LEAST = 8, GAUGE_MOST = 30, BRACKETS = 4 };
    co_str head = {0}, tail = {0}, s = {0};
    int width = columns(c), left;
    add_count(&head, "epoch", p->epoch, p->epochs);
    bool gauge =
        p->steps > 0 && p->step >= 0 && fit_figures(&tail, p, width - (int)head.len - BRACKETS - GAUGE_LEAST);
    if (!gauge)
        fit_figures(&tail, p, width - (int)head.len - 2);
    if (c->bar.len)
        add_erase(&s, c);
    co_str_clear(&c->bar);
    left = width - (int)head.len - (int)tail.len - BRACKETS;
    co_str_addf(&c->bar, "%.*s", width, co_str_text(&head));
    if (gauge)
        add_gauge(&c->bar, c, p, left < GAUGE_MOST ? left : GAUGE_MOST);
    else if (width > (int)head.len + 2)
        co_str_add(&c->bar, "  ");
    left = width - (int)head.len - 2;
    co_str_addf(&c->bar, "%.*s", left > 0 ? left : 0, co_str_text(&tail));
    co_str_addn(&s, c->bar.p ? c->bar.p : "", c->bar.len);
    put(c, &s);
    co_str_fini(&head);
    co_str_fini(&tail);
    co_str_fini(&s);
}

/* The figures of the training stand still during an evaluation: its line leaves them out. */
static void draw_plain(co_console *c, const co_progress *p)
{
    co_str s = {0};
    co_progress shown = *p;
    if (p->evaluating) {
        shown.loss = shown.metric = NAN;
        shown.samples_per_s = shown.data_wait = 0;
        shown.eta_s = p->eta_s < 0.5 ? NAN : p->eta_s;
    }
    add_count(&s, "epoch", p->epoch, p->epochs);
    co_str_add(&s, "  ");
    add_figures(&s, &shown, ALL);
    co_str_add(&s, "\n");
    put(c, &s);
    co_str_fini(&s);
}

void co_console_progress(co_console *c, const co_progress *p, bool now)
{
    double t = co_now_s(), pause = c->style == CO_CONSOLE_BAR ? 0.1 : p->evaluating ? 10.0 : 1.0;
    if (c->style == CO_CONSOLE_QUIET || c->style == CO_CONSOLE_IMAGENET)
        return;
    pthread_mutex_lock(&c->lock);
    double evaluated = p->evaluating ? p->evaluated : 0;
    bool news = c->style == CO_CONSOLE_BAR || p->step != c->step || p->epoch != c->epoch ||
                evaluated != c->evaluated; /* the same line is not printed twice */
    if (news && (now || c->drawn_s == 0 || t - c->drawn_s >= pause)) {
        c->drawn_s = t;
        c->epoch = p->epoch;
        c->step = p->step;
        c->evaluated = evaluated;
        if (c->style == CO_CONSOLE_BAR)
            draw_bar(c, p);
        else
            draw_plain(c, p);
    }
    pthread_mutex_unlock(&c->lock);
}

static char *format(const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    char *text = n < 0 ? NULL : co_alloc((size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, fmt, ap);
    return text;
}

int co_console_width(const co_console *c)
{
    return isatty(c->fd) ? columns(c) : INT_MAX;
}

bool co_console_is_bar(const co_console *c)
{
    return c->style == CO_CONSOLE_BAR;
}

void co_console_line(co_console *c, const char *fmt, ...)
{
    co_str s = {0};
    va_list ap;
    if (c->style == CO_CONSOLE_QUIET)
        return;
    va_start(ap, fmt);
    char *text = format(fmt, ap);
    va_end(ap);
    if (!text)
        return;
    pthread_mutex_lock(&c->lock);
    if (c->bar.len)
        add_erase(&s, c);
    co_str_addf(&s, "%s\n", text);
    if (c->bar.len)
        co_str_addn(&s, c->bar.p, c->bar.len);
    put(c, &s);
    pthread_mutex_unlock(&c->lock);
    co_str_fini(&s);
    co_free(text);
}

void co_console_close(co_console *c)
{
    if (!c)
        return;
    if (c->bar.len) { /* the lines that follow say how it ended */
        co_str s = {0};
        add_erase(&s, c);
        put(c, &s);
        co_str_fini(&s);
    }
    co_str_fini(&c->bar);
    pthread_mutex_destroy(&c->lock);
    co_free(c);
}
