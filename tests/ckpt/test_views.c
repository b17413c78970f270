/* Writers of one run with different views: only the newest may publish, and nobody's work is swept too
 * early. */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "ckpt/small.h"
#include "harness.h"

enum { RUN_A = 'a', RUN_B = 'b' };
static const co_ckpt_writer none = {0};

static co_ckpt_writer writer(char run, int64_t view)
{
    return (co_ckpt_writer){run == RUN_A ? "20260101-000000-0000000a" : "20260101-000000-0000000b", view};
}

static co_err save_by(struct small *s, const char *name, int64_t step, co_ckpt_writer by,
                      co_err (*ready)(void *, int64_t))
{
    co_ckpt_meta meta = small_meta(step);

    meta.view = by.view;
    return co_ckpt_save("r", name, &s->l, 0, NULL, &meta, &(co_ckpt_source){small_read, s, ready, .by = by});
}

static int64_t view_saved(const char *path)
{
    co_ckpt_meta meta = {0};

    CHECK_OK(co_ckpt_verify(path));
    CHECK_OK(co_ckpt_read_meta(&meta, path));
    int64_t view = meta.view;
    co_ckpt_meta_fini(&meta);
    return view;
}

static int entries(const char *pattern)
{
    test_run r = test_sh("ls -A r | grep -c '%s'", pattern);
    int n = atoi(r.out);

    free(r.out);
    return n;
}

/* The older writer stops with everything written, at the last moment before it may publish. */
static int written[2], go_on[2];
static co_err wait_to_go_on(void *ctx, int64_t view)
{
    char byte = 'w';

    (void)ctx;
    CHECK(view == 1 && write(written[1], &byte, 1) == 1 && read(go_on[0], &byte, 1) == 1, "%m");
    return CO_OK;
}

static pid_t start_older(struct small *s, const char *name)
{
    char byte;

    CHECK(pipe(written) == 0 && pipe(go_on) == 0, "%m");
    pid_t pid = fork();
    if (pid == 0) {
        co_err err = save_by(s, name, 1, writer(RUN_A, 1), wait_to_go_on);
        _exit(err == CO_EFAIL && test_contains(co_errmsg(), "view 2 has saved here, this is view 1") ? 7 : 1);
    }
    CHECK(read(written[0], &byte, 1) == 1, "%m");
    return pid;
}

static void end_older(pid_t pid)
{
    int status;

    CHECK(write(go_on[1], "g", 1) == 1, "%m");
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7, "status %x",
          status);
}

TEST(of_two_writers_that_race_the_one_with_the_older_view_is_refused_and_leaves_nothing)
{
    struct small s;

    small_init(&s, 4);
    pid_t older = start_older(&s, "x");
    CHECK_OK(save_by(&s, "x", 2, writer(RUN_A, 2), NULL));
    end_older(older);
    CHECK(view_saved("r/x") == 2 && view_saved("r/last") == 2, "the older view's is there");
    CHECK(entries("^.tmp-") == 0 && entries("^.old-") == 0, "leftovers");
    small_fini(&s);
}

TEST(an_older_view_that_only_begins_after_a_newer_one_is_refused_before_it_writes)
{
    struct small s;

    small_init(&s, 4);
    CHECK_OK(save_by(&s, "x", 2, writer(RUN_A, 3), NULL));
    CHECK_FAILS(save_by(&s, "y", 1, writer(RUN_A, 2), NULL), CO_EFAIL, "view 3 has saved here, this is view 2");
    CHECK(entries("^.tmp-") == 0 && entries("^y") == 0, "leftovers");
    CHECK_OK(save_by(&s, "z", 3, writer(RUN_A, 3), NULL));
    CHECK_OK(save_by(&s, "z", 4, writer(RUN_B, 1), NULL)); /* a run that continues it counts from 1 */
    CHECK(view_saved("r/z") == 1, "not replaced");
    small_fini(&s);
}

TEST(a_sweep_of_a_newer_view_spares_a_live_writer_of_this_host)
{
    struct small s;

    small_init(&s, 4);
    pid_t older = start_older(&s, "x");
    CHECK_OK(save_by(&s, "y", 2, writer(RUN_A, 2), NULL));
    co_ckpt_writer me = writer(RUN_A, 2);
    CHECK_OK(co_ckpt_prune("r", "", 1, &me));
    CHECK(entries("^.tmp-x~") == 1, "the sweep took the folder that a live process writes");
    end_older(older);
    CHECK(entries("^.tmp-") == 0 && entries("^x") == 0, "leftovers");
    small_fini(&s);
}

/* Moves r/x to the name that a writer on another host would have used. */
static void place_of_another_host(struct small *s, const char *name, co_ckpt_writer by)
{
    char to[300];

    CHECK_OK(save_by(s, "x", 1, none, NULL));
    pid_t pid = fork();
    if (pid == 0) {
        save_by(s, name, 1, by, wait_to_go_on);
        _exit(0);
    }
    char byte;
    CHECK(read(written[0], &byte, 1) == 1, "%m");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    test_run r = test_sh("ls -A r | grep '^.tmp-%s~'", name);
    CHECK(r.status == 0, "%s", r.out);
    r.out[strcspn(r.out, "\n")] = '\0';
    snprintf(to, sizeof to, "%s", r.out); /* .tmp-NAME~RUN-VIEW-HOST-PID: another HOST */
    char *host = strrchr(to, '-') - 8;
    memcpy(host, "0badcafe", 8);
    CHECK(test_sh("cd r && mv %s %s", r.out, to).status == 0, "mv");
    free(r.out);
}

TEST(of_other_hosts_entries_a_sweep_takes_only_those_of_an_older_view_of_the_same_run)
{
    struct small s;
    co_ckpt_writer me = writer(RUN_A, 2);

    small_init(&s, 4);
    CHECK(pipe(written) == 0 && pipe(go_on) == 0, "%m");
    place_of_another_host(&s, "older", writer(RUN_A, 1));
    place_of_another_host(&s, "stranger", writer(RUN_B, 1));
    CHECK_OK(co_ckpt_prune("r", "", 9, NULL));
    CHECK(entries("^.tmp-older~") == 1 && entries("^.tmp-stranger~") == 1,
          "swept by somebody who cannot know");
    CHECK_OK(co_ckpt_prune("r", "", 9, &me));
    CHECK(entries("^.tmp-older~") == 0, "an older view's entry stays");
    CHECK(entries("^.tmp-stranger~") == 1, "another run's entry went");
    CHECK_OK(co_ckpt_prune("r", "", 9, &(co_ckpt_writer){"20260101-000000-0000000b", 1}));
    CHECK(entries("^.tmp-stranger~") == 1, "the own view's entry went");
    small_fini(&s);
}
