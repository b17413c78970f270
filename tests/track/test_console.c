/* test_console.c -- what a person sees, to the byte. */
#include "track_test.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/ioctl.h>

static const co_progress usual = {.step = 66,
                                  .steps = 330,
                                  .epoch = 3,
                                  .epochs = 15,
                                  .loss = 0.0821,
                                  .metric = 0.976,
                                  .metric_name = "acc",
                                  .samples_per_s = 12345,
                                  .eta_s = 4,
                                  .ranks = 2};

/* What one progress and one line give in a style. */
static char *shown(co_console_style style, const co_progress *p)
{
    co_console *c;
    int fd = open("out", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_OK(co_console_open(&c, fd, style));
    co_console_progress(c, p, true);
    co_console_close(c);
    close(fd);
    return slurp("out");
}

static void check_plain(const co_progress *p, const char *want)
{
    char *text = shown(CO_CONSOLE_AUTO, p); /* a file is no terminal */
    CHECK(!strcmp(text, want), "%s", text);
    co_free(text);
}

TEST(a_plain_line_looks_so)
{
    check_plain(&usual, "epoch 3/15  step 66/330  loss 0.0821  acc 0.976  12,345 samples/s  eta 4 s\n");
    co_progress p = usual;
    p.metric_name = NULL;
    p.samples_per_s = 1234567;
    p.eta_s = 125;
    check_plain(&p, "epoch 3/15  step 66/330  loss 0.0821  1,234,567 samples/s  eta 2 min 05 s\n");
    p.samples_per_s = 999;
    p.eta_s = 2 * 3600 + 61;
    p.evaluating = "validating";
    p.evaluated = 0.352;
    check_plain(&p, "epoch 3/15  step 66/330  validating 35 %  eta 2 h 01 min\n");
    p.eta_s = 0;
    check_plain(&p, "epoch 3/15  step 66/330  validating 35 %\n");
    check_plain(&(co_progress){.step = 5, .loss = NAN, .eta_s = -1}, "epoch 0  step 5  loss nan\n");
    check_plain(&(co_progress){.step = 5, .loss = 1.5e-7, .eta_s = NAN},
                "epoch 0  step 5  loss 1.5000e-07\n");
}

TEST(quiet_says_nothing)
{
    char *text = shown(CO_CONSOLE_QUIET, &usual);
    CHECK(!*text, "%s", text);
    co_free(text);
}

TEST(plain_lines_come_once_a_second_and_when_told)
{
    co_console *c;
    co_progress p = usual;
    int fd = open("out", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_OK(co_console_open(&c, fd, CO_CONSOLE_PLAIN));
    double start = co_now_s();
    for (int i = 0; i < 1000; i++)
        co_console_progress(c, &p, false);
    p.epoch++;
    p.step++;
    co_console_progress(c, &p, true);
    for (int i = 0; i < 1000; i++)
        co_console_progress(c, &p, false);
    co_console_line(c, "saved %s", "last");
    double took = co_now_s() - start;
    co_console_close(c);
    char *text = slurp("out");
    int lines = 0;
    for (char *s = text; (s = strchr(s, '\n')); s++)
        lines++;
    CHECK(lines >= 3 && lines <= 3 + (int)took, "%d lines in %g s", lines, took);
    CHECK(test_contains(text, "\nsaved last\n") && !strchr(text, '\r') && !strchr(text, '\033'), "%s", text);
    co_free(text);
    close(fd);
}

/* Draws on a pseudo-terminal of `columns` and returns all that it got. */
static char *on_terminal(int columns)
{
    static char got[8192];
    struct winsize w = {.ws_row = 24, .ws_col = (unsigned short)columns};
    co_console *c;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0, "pty");
    int fd = open(ptsname(master), O_RDWR | O_NOCTTY);
    CHECK(fd >= 0 && ioctl(fd, TIOCSWINSZ, &w) == 0, "pty");
    CHECK_OK(co_console_open(&c, fd, CO_CONSOLE_AUTO));
    co_console_progress(c, &usual, true);
    co_console_progress(c, &usual, false); /* too soon: not drawn */
    co_console_line(c, "a line");
    co_console_close(c);
    close(fd); /* reading ends (EIO) once all that was written has been read */
    size_t len = 0;
    for (ssize_t n; len < sizeof got - 1 && (n = read(master, got + len, sizeof got - 1 - len)) > 0;)
        len += (size_t)n;
    got[len] = '\0';
    close(master);
    return got;
}

TEST(a_bar_fits_its_terminal_and_lines_stand_above_it)
{
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    const char *bar =
        "epoch 3/15 [==>           ] step 66/330  loss 0.0821  acc 0.976  12,345 samples/s  eta 4 s  2 ranks";
    char want[1024], *got = on_terminal((int)strlen(bar) + 1);
    snprintf(want, sizeof want, "%s\r\033[Ka line\r\n%s\r\033[K", bar, bar); /* and it goes at the end */
    CHECK(!strcmp(got, want), "[%s]\n[%s]", got, want);

    unsetenv("NO_COLOR");
    CHECK(test_contains(on_terminal(200), "[\033[32m====="), "no colour on a terminal");
    setenv("TERM", "dumb", 1);
    CHECK(!strchr(on_terminal(200), '\033'), "escapes on a dumb terminal");
}

TEST(a_narrow_terminal_has_a_bar_with_fewer_figures_and_none_is_cut)
{
    static const struct {
        int columns;
        const char *bar;
    } widths[] = {
        {80, "epoch 3/15 [==>         ] step 66/330  loss 0.0821  acc 0.976  12.3k/s  eta 4 s"},
        {70, "epoch 3/15 [==>        ] step 66/330  loss 0.0821  acc 0.976  eta 4 s"},
        {60, "epoch 3/15 [==>       ] step 66/330  loss 0.0821  acc 0.976"},
        {50, "epoch 3/15 [==>        ] step 66/330  loss 0.0821"},
        {40, "epoch 3/15  step 66/330  loss 0.0821"},
        {20, "epoch 3/15  step 66"},
    };
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    for (size_t i = 0; i < CO_COUNT(widths); i++) {
        char want[1024], *got = on_terminal(widths[i].columns);
        snprintf(want, sizeof want, "%s\r\033[Ka line\r\n%s\r\033[K", widths[i].bar, widths[i].bar);
        CHECK(!strcmp(got, want), "%d columns:\n[%s]\n[%s]", widths[i].columns, got, want);
    }
}
