/* Lines, folding of equal lines, outlets: the path of output to people. */
#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/alloc.h"
#include "term/screen.h"

static void add_line(void *ctx, const char *text, size_t len)
{
    co_str_addf(ctx, "<%.*s>", (int)len, text);
}

static void feed_to(const char *bytes, const char *want)
{
    for (size_t step = 1; step <= strlen(bytes); step++) { /* the bytes come in pieces of every size */
        co_lines l = {0};
        co_str got = {0};
        for (size_t at = 0; at < strlen(bytes); at += step)
            co_lines_feed(&l, bytes + at, strlen(bytes + at) < step ? strlen(bytes + at) : step, add_line,
                          &got);
        co_lines_end(&l, add_line, &got);
        CHECK(strcmp(co_str_text(&got), want) == 0, "in pieces of %zu: %s, not %s", step, co_str_text(&got),
              want);
        co_lines_fini(&l);
        co_str_fini(&got);
    }
}

TEST(a_line_is_what_a_terminal_would_show_of_it)
{
    feed_to("one\ntwo\n", "<one><two>");
    feed_to("dos\r\n\r\nend", "<dos><><end>");
    feed_to(" 1%\r 50%\r100%\nnext", "<100%><next>");
    feed_to("bar\r", "<bar>");
    feed_to("\n", "<>");
}

/* Writes bars like tqdm: the outer bar, then the inner one below it, then back up. */
#define BELOW(text) "\n\r" text "\033[A"

TEST(bars_below_each_other_replace_their_own_states_and_leave_lines_whole)
{
    feed_to("\repochs 0/2" BELOW("steps 0%") BELOW("steps 50%")
                BELOW("        ") "\repochs 1/2" BELOW("steps 0%") BELOW("        ") "\repochs 2/2\nend\n",
            "<epochs 2/2><end>");
    feed_to("\ra 1" BELOW("b 1") "\n" BELOW("c 1") "\033[A" BELOW("b 2") "\ra 2\n\n\nend\n",
            "<a 2><b 2><c 1><end>");
    feed_to("\repochs 0/2" BELOW("steps 50%") "\rsteps 100%\n\repochs 1/2\n", "<steps 100%><epochs 1/2>");
    feed_to("\repochs 0/2" BELOW("steps 50%") "a warning\n\repochs 1/2\n", "<a warning><epochs 1/2>");
    feed_to("\r1 100%\n\r2 50%\r2 100%\n", "<1 100%><2 100%>"); /* one after the other */
    feed_to("\r1 100%\n\nend\n", "<1 100%><><end>");
}

TEST(of_escape_sequences_colours_alone_reach_lines)
{
    feed_to("\033[1;31mred\033[0m\n", "<\033[1;31mred\033[0m>");
    feed_to("\033[2J\033[Ha\033[3Cb\033[10;20f\033[s\033[uc\033[?25l\n", "<c>");
    feed_to("\0337one\0338 \033]0;a title\atwo\033]0;another\033\\ end\033(B\n", "<one two end>");
    feed_to("12%\r\033[K15%\033[K\033[1Gdone\n", "<done>");
    feed_to("cut \033[\nnext\033\n\033[", "<cut ><next>");
}

TEST(a_bar_that_has_ended_is_a_line_when_its_time_is_over_or_another_line_has_come)
{
    co_lines l = {0};
    co_str got = {0};

    co_lines_feed(&l, "\r100%\n", 6, add_line, &got);
    int ms = co_lines_settle(&l, l.since_ns, add_line, &got);
    CHECK(got.len == 0 && ms > 0 && ms <= CO_PARTIAL_MS + 1, "%d ms: %s", ms, co_str_text(&got));
    ms = co_lines_settle(&l, l.since_ns + CO_PARTIAL_MS * UINT64_C(1000000), add_line, &got);
    CHECK(ms == 0 && strcmp(co_str_text(&got), "<100%>") == 0, "%d ms: %s", ms, co_str_text(&got));
    co_lines_feed(&l, "\r100%\nend\n", 10, add_line, &got);
    CHECK(strcmp(co_str_text(&got), "<100%><100%><end>") == 0, "%s", co_str_text(&got));
    CHECK(co_lines_settle(&l, UINT64_MAX, add_line, &got) == -1, "nothing is open");
    co_lines_fini(&l);
    co_str_fini(&got);
}

static uint64_t periods(int n) /* of CO_BAR_LINE_MS, and a little */
{
    return (uint64_t)n * CO_BAR_LINE_MS * UINT64_C(1000000) + 1000000;
}

TEST(what_an_open_bar_shows_is_told_every_period_if_it_has_changed)
{
    co_lines l = {0};
    co_str got = {0};

    co_lines_feed(&l, "\r 1%" BELOW("steps 5"), strlen("\r 1%" BELOW("steps 5")), add_line, &got);
    uint64_t began = l.since_ns;
    int ms = co_lines_tell_bars(&l, began, add_line, &got);
    CHECK(got.len == 0 && ms > CO_BAR_LINE_MS - 1000 && ms <= CO_BAR_LINE_MS + 1, "%d ms: %s", ms,
          co_str_text(&got));
    CHECK(co_lines_tell_bars(&l, began + periods(1), add_line, &got) == 0, "it is time");
    CHECK(co_lines_tell_bars(&l, began + periods(1), add_line, &got) > 0, "twice");
    co_lines_tell_bars(&l, began + periods(3), add_line, &got); /* nothing has changed */
    co_lines_feed(&l, "\r 2%", 4, add_line, &got);
    co_lines_tell_bars(&l, began + periods(5), add_line, &got);
    co_lines_feed(&l, "\r 3%\nopen", 9, add_line, &got);
    co_lines_tell_bars(&l, began + periods(9), add_line, &got);
    co_lines_end(&l, add_line, &got);
    CHECK(strcmp(co_str_text(&got), "< 1%><steps 5>< 2%>< 3%><open>") == 0, "%s", co_str_text(&got));
    co_lines_fini(&l);
    co_str_fini(&got);
}

TEST(a_line_without_end_is_cut)
{
    co_lines l = {0};
    co_str got = {0};
    static char much[3 * CO_LINE_MOST];

    memset(much, 'x', sizeof much);
    co_lines_feed(&l, much, sizeof much, add_line, &got);
    CHECK(got.len == 2 * (CO_LINE_MOST + 2) && l.rows[0].text.len == CO_LINE_MOST, "%zu and %zu", got.len,
          l.rows[0].text.len);
    co_lines_fini(&l);
    co_str_fini(&got);
}

/* The screen's output for lines "rank:text" in this order. */
static void folds_to(int nproc, const char *const *in, const char *want)
{
    int p[2];
    char got[4096];
    co_screen c;

    CHECK(pipe(p) == 0, "%m");
    co_screen_open(&c, p[1], p[1]);
    co_screen_view_set(&c, &(co_screen_view){.prefix = true, .host = "", .nproc = nproc});
    for (; *in; in++)
        co_screen_line(&c, atoi(*in), 0, strchr(*in, ':') + 1, strlen(strchr(*in, ':') + 1));
    co_screen_close(&c, 0);
    close(p[1]);
    ssize_t n = read(p[0], got, sizeof got - 1);
    got[n < 0 ? 0 : n] = '\0';
    close(p[0]);
    CHECK(strcmp(got, want) == 0, "got\n%swanted\n%s", got, want);
}

TEST(equal_lines_fold_and_every_rank_keeps_its_own_order)
{
    folds_to(4, (const char *[]){"0:a", "1:a", "3:a", "2:b", NULL}, "[0-1,3] x3 a\n[2] b\n");
    folds_to(2, (const char *[]){"0:x", "0:y", "1:y", "1:x", NULL}, "[0] x\n[0-1] x2 y\n[1] x\n");
    folds_to(2, (const char *[]){"0:x", "0:x", "1:x", "1:x", NULL}, "[0-1] x2 x\n[0-1] x2 x\n");
    folds_to(2, (const char *[]){"0:", "1:", NULL}, "[0-1] x2 \n");
}

TEST(an_outlet_forgets_what_a_slow_reader_has_read)
{
    static char piece[1 << 14], got[1 << 14];
    size_t most = 0;
    co_outlet o;
    int p[2];

    CHECK(pipe(p) == 0, "%m");
    co_outlet_open(&o, p[1]);
    for (int i = 0; i < 4096; i++) { /* 64 MiB; once the pipe is full, the reader takes as much as comes */
        co_outlet_add(&o, piece, sizeof piece);
        co_outlet_push(&o);
        CHECK(!co_outlet_waits(&o) || read(p[0], got, sizeof got) == sizeof got, "%m");
        most = o.held.len > most ? o.held.len : most;
    }
    CHECK(co_outlet_waits(&o) && most <= 4 * sizeof piece, "%zu bytes held", most);
    co_outlet_close(&o);
    close(p[0]);
    close(p[1]);
}

/* Numbered lines, to standard output and standard error in turn: more than a pipe takes at once. */
static void number_lines(int fd, int n)
{
    co_screen c;

    co_screen_open(&c, fd, fd);
    for (int i = 0; i < n; i++) {
        char text[80];
        co_screen_teed(&c, i % 2, "[default0]:", text, (size_t)snprintf(text, sizeof text, "%064d", i));
    }
    co_screen_close(&c, -1);
}

TEST(lines_for_both_outputs_keep_their_order_where_both_are_one_pipe)
{
    enum { LINES = 4000 };
    int p[2], status;

    CHECK(pipe(p) == 0, "%m");
    pid_t pid = fork();
    if (pid == 0) {
        number_lines(p[1], LINES);
        _exit(0);
    }
    close(p[1]);
    FILE *f = fdopen(p[0], "r");
    for (int i = 0, got = -1; i < LINES; i++)
        CHECK(fscanf(f, "[default0]:%d\n", &got) == 1 && got == i, "line %d is number %d", i, got);
    fclose(f);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "status %x", (unsigned)status);
}

/* A file-size limit stands in for a full disk. */
static void show_within(co_screen *c, rlim_t most, const char *text)
{
    struct pollfd wait[2];

    CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){most, RLIM_INFINITY}) == 0, "%m");
    co_screen_raw(c, 0, text, strlen(text));
    co_outlets_push(&c->out, wait);
    co_screen_flush(c, false);
}

TEST(a_file_that_takes_both_outputs_goes_on_when_the_disk_has_room_again_and_says_that_it_had_none)
{
    int fd = open("out", O_RDWR | O_CREAT | O_APPEND, 0644);
    char *text;
    co_screen c;

    signal(SIGXFSZ, SIG_IGN);
    co_screen_open(&c, fd, fd);
    show_within(&c, RLIM_INFINITY, "one\n");
    show_within(&c, 4, "two\n");
    show_within(&c, 4, "three\n");
    show_within(&c, RLIM_INFINITY, "four\n");
    show_within(&c, RLIM_INFINITY, "five\n");
    co_screen_close(&c, -1);
    CHECK_OK(co_fs_read(&text, NULL, "out", 1 << 16));
    CHECK(strcmp(text, "one\nfour\ncohort: standard output and error: File too large: what could not be"
                       " written is lost, the job goes on\nfive\n") == 0,
          "%s", text);
    co_free(text);
    close(fd);
}
