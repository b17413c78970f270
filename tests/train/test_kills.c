/* Runs that lose ranks, their supervisor or their disk end with the same weights as an undisturbed run. */
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "train/program.h"

#define WORDS "data=digits model=mlp optim=adamw optim.lr=0.002 "

static const char *const phases[] = {"loading", "forward",    "backward", "sum",
                                     "apply",   "evaluation", "random"};

struct tally {
    long long kills;
    double medians[64], worst;
    int n;
};

static void one_campaign(struct tally *t, const outcome *calm, const char *phase, int kills, int seed,
                         int epochs)
{
    char dir[64], what[128];

    snprintf(dir, sizeof dir, "%s-%d", phase, seed);
    snprintf(what, sizeof what, "fault.phase=%s fault.seed=%d", phase, seed);
    outcome o = program_run(dir,
                            WORDS "trainer.devices=2 trainer.max_epochs=%d fault.kills=%d fault.mean_ms=4 %s "
                                  "callbacks.model_checkpoint.every_n_steps=100",
                            epochs, kills, what);
    program_same(calm, &o, what);
    CHECK(o.recoveries > 0, "%s: nobody was killed", what);
    t->kills += o.recoveries;
    t->worst = o.p99_ms > t->worst ? o.p99_ms : t->worst;
    if (t->n < 64)
        t->medians[t->n++] = o.median_ms;
    if (kills >= 50)
        test_note("%-10s %4lld recoveries, median %.1f ms, p99 %.1f ms", phase, o.recoveries, o.median_ms,
                  o.p99_ms);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void note_tally(struct tally *t, long long least)
{
    qsort(t->medians, (size_t)t->n, sizeof t->medians[0], by_value);
    test_note("%lld kills; recovery: median of the phases' medians %.1f ms, largest p99 %.1f ms", t->kills,
              t->medians[t->n / 2], t->worst);
    CHECK(t->kills >= least, "only %lld of %lld kills struck", t->kills, least);
}

TEST_LONG_WITHIN(sixty_kills_over_all_phases_end_in_the_same_weights, 180)
{
    struct tally t = {0};
    outcome calm = program_run("calm", WORDS "trainer.devices=1 trainer.max_epochs=40");

    program_same(&calm, &calm, "undisturbed");
    for (size_t i = 0; i < CO_COUNT(phases); i++)
        one_campaign(&t, &calm, phases[i], 10, (int)i + 1, 40);
    one_campaign(&t, &calm, "checkpoint", 8, 9, 40); /* half of those hit savers, which are no recoveries */
    note_tally(&t, 60);
}

TEST_LONG_WITHIN(hundreds_of_kills_end_in_the_same_weights, 3000)
{
    struct tally t = {0};
    outcome calm = program_run("calm", WORDS "trainer.devices=1 trainer.max_epochs=400");

    program_same(&calm, &calm, "undisturbed");
    for (size_t i = 0; i < CO_COUNT(phases); i++)
        one_campaign(&t, &calm, phases[i], strcmp(phases[i], "random") == 0 ? 500 : 50, (int)i + 1, 400);
    one_campaign(&t, &calm, "checkpoint", 50, 9, 400);
    note_tally(&t, 800);
}

TEST(batch_norm_and_text_survive_kills_too)
{
    static const char *const models[] = {
        "data=digits model=cnn model.width=4 trainer.max_epochs=4",
        "data=text model=lm model.d_model=16 model.layers=1 trainer.max_epochs=2"};
    char path[600], dir[32];

    for (size_t i = 0; i < CO_COUNT(models); i++) {
        snprintf(path, sizeof path, "%s%s", i ? "data.path=" : "", i ? test_repo("tests/data/verse.txt") : "");
        snprintf(dir, sizeof dir, "calm-%zu", i);
        outcome calm = program_run(dir, "%s %s trainer.devices=1", models[i], path);
        snprintf(dir, sizeof dir, "kills-%zu", i);
        outcome o = program_run(
            dir, "%s %s trainer.devices=3 fault.phase=random fault.kills=5 fault.mean_ms=5", models[i], path);
        program_same(&calm, &o, models[i]);
        CHECK(o.recoveries > 0, "nobody was killed");
    }
}

/* --- stops ---------------------------------------------------------------------------------------------- */
TEST(a_stopped_rank_is_replaced_past_its_deadline)
{
    outcome calm = program_run("calm", WORDS "trainer.devices=1 trainer.max_epochs=20");

    for (int seed = 1; seed <= 3; seed++) {
        char dir[32];
        snprintf(dir, sizeof dir, "stopped-%d", seed);
        outcome o = program_run(dir,
                                WORDS "trainer.devices=2 trainer.max_epochs=20 trainer.stall_s=0.5 "
                                      "fault.phase=stopped fault.kills=1 fault.seed=%d",
                                seed);
        program_same(&calm, &o, dir);
        CHECK(o.recoveries == 1, "%lld recoveries\n%s", o.recoveries, o.out);
        CHECK(test_contains(o.out, "is stopped"), "no notice:\n%s", o.out);
    }
}

struct wait {
    pid_t pid;
    const char *dir;
};

static bool saved(void *ctx)
{
    const struct wait *w = ctx;

    CHECK(!process_gone(w->pid), "%s ended too soon", w->dir);
    return program_saved(w->dir);
}

/* About a second of work with checkpoints on the way; a sanitizer makes it as long with less. */
#ifdef __SANITIZE_ADDRESS__
#define LENGTH "trainer.max_epochs=12 callbacks.model_checkpoint.every_n_steps=60 "
#else
#define LENGTH "trainer.max_epochs=80 callbacks.model_checkpoint.every_n_steps=120 "
#endif
#define LONG_WORDS WORDS LENGTH "trainer.devices=2 "

static outcome calm_long_run(void)
{
    outcome calm = program_run("calm", LONG_WORDS "callbacks.model_checkpoint.enabled=false");

    program_same(&calm, &calm, "undisturbed");
    return calm;
}

TEST(a_stop_of_the_whole_group_is_no_stall)
{
    outcome calm = calm_long_run();
    pid_t pid = program_start("run", LONG_WORDS "trainer.stall_s=0.4");

    test_until(saved, &(struct wait){pid, "run"}, 30, "a checkpoint");
    kill(-pid, SIGSTOP);
    poll(NULL, 0, 1200); /* the length of the stop is what is tested */
    kill(-pid, SIGCONT);
    outcome o = program_end(pid, "run");
    program_same(&calm, &o, "stopped and continued");
    CHECK(o.recoveries == 0, "%lld recoveries\n%s", o.recoveries, o.out);
}

TEST(ctrl_c_saves_and_the_continued_run_ends_in_the_same_weights)
{
    outcome calm = calm_long_run();
    pid_t pid = program_start("run", LONG_WORDS);

    test_until(saved, &(struct wait){pid, "run"}, 30, "a checkpoint");
    kill(-pid, SIGINT); /* the whole group, as a terminal does */
    outcome o = program_end(pid, "run");
    CHECK(o.status == 75 && strcmp(o.state, "stopped") == 0, "exit %d, %s\n%s", o.status, o.state, o.out);
    CHECK(o.steps > 0 && o.steps < calm.steps && o.recoveries == 0, "%lld steps", o.steps);
    outcome rest = program_run("run", LONG_WORDS "ckpt_path=auto");
    program_same(&calm, &rest, "continued");
}

/* --- the supervisor ------------------------------------------------------------------------------------- */
struct ranks {
    pid_t pid[8];
    int n;
};

static bool ranks_gone(void *ctx)
{
    const struct ranks *r = ctx;

    for (int i = 0; i < r->n; i++)
        if (!process_gone(r->pid[i]))
            return false;
    return true;
}

TEST(ranks_vanish_with_their_supervisor_and_the_run_can_go_on)
{
    outcome calm = calm_long_run();
    pid_t pid = program_start("run", LONG_WORDS);
    struct ranks r;

    test_until(saved, &(struct wait){pid, "run"}, 30, "a checkpoint");
    r.n = program_ranks(pid, r.pid, 8);
    CHECK(r.n >= 2, "%d children", r.n);
    kill(pid, SIGKILL);
    CHECK(test_wait(pid, 10) == 128 + SIGKILL, "the supervisor");
    test_until(ranks_gone, &r, 10, "ranks to vanish");
    outcome rest = program_run("run", LONG_WORDS "ckpt_path=auto");
    program_same(&calm, &rest, "continued");
    CHECK(test_contains(rest.out, "continuing after step"), "it began anew:\n%s", rest.out);
}

/* --- the disk ------------------------------------------------------------------------------------------- */
/* run/checkpoints is a file system of its own; it goes with this test's mount namespace. */
static void mount_checkpoints(const char *options)
{
    if (getuid() != 0 || unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        test_skip("needs root and mount namespaces");
    CHECK(mkdir("run", 0755) == 0 && mkdir("run/checkpoints", 0755) == 0, "mkdir");
    if (mount("none", "run/checkpoints", "tmpfs", 0, options) != 0)
        test_skip("cannot mount a tmpfs");
}

TEST(a_full_disk_is_said_and_the_run_continues_once_there_is_room)
{
    outcome calm = calm_long_run();

    mount_checkpoints("size=600k"); /* a checkpoint takes 0.3 MB */
    outcome o = program_run("run", LONG_WORDS "ckpt_path=auto");
    CHECK(o.status == 1 && strcmp(o.state, "failed") == 0, "exit %d, %s\n%s", o.status, o.state, o.out);
    CHECK(test_contains(o.out, "No space left on device"), "%s", o.out);
    CHECK(test_contains(o.out, "could not be saved"), "%s", o.out);
    CHECK(o.steps == calm.steps && strcmp(o.sha, calm.sha) == 0, "it went on to the end");
    CHECK(program_saved("run"), "the earlier checkpoint is gone");
    CHECK(mount("none", "run/checkpoints", "tmpfs", MS_REMOUNT, "size=64m") == 0, "remount");
    outcome rest = program_run("run", LONG_WORDS "ckpt_path=auto");
    program_same(&calm, &rest, "continued");
    CHECK(test_contains(rest.out, "continuing after step"), "it began anew:\n%s", rest.out);
}

static bool made_read_only(void *unused)
{
    (void)unused; /* busy while a saver writes */
    return mount("none", "run/checkpoints", "tmpfs", MS_REMOUNT | MS_RDONLY, NULL) == 0;
}

TEST(a_disk_that_turns_read_only_is_said_and_the_run_continues_once_it_is_writable)
{
    outcome calm = calm_long_run();

    mount_checkpoints("size=64m");
    pid_t pid = program_start("run", LONG_WORDS "ckpt_path=auto");
    test_until(saved, &(struct wait){pid, "run"}, 30, "a checkpoint");
    test_until(made_read_only, NULL, 10, "the disk to turn read-only");
    outcome o = program_end(pid, "run");
    CHECK(o.status == 1 && strcmp(o.state, "failed") == 0, "exit %d, %s\n%s", o.status, o.state, o.out);
    CHECK(test_contains(o.out, "Read-only file system"), "%s", o.out);
    CHECK(strcmp(o.sha, calm.sha) == 0, "it went on to the end");
    CHECK(mount("none", "run/checkpoints", "tmpfs", MS_REMOUNT, NULL) == 0, "remount");
    outcome rest = program_run("run", LONG_WORDS "ckpt_path=auto");
    program_same(&calm, &rest, "continued");
    CHECK(test_contains(rest.out, "continuing after step"), "it began anew:\n%s", rest.out);
}
