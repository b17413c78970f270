/* The step path allocates nothing, takes no page fault and opens no file, in any rank. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "train/program.h"

/* 345 steps; the first 50 warm up. */
#define WORDS                                                                                                \
    "data=digits optim=adamw trainer.devices=2 trainer.eval_every=0 test=false trainer.max_epochs=15 "

static void nothing_happens(const char *model, int workers)
{
    char dir[64];

    snprintf(dir, sizeof dir, "%.3s-%d", model, workers);
    outcome o = program_run(dir, WORDS "model=%s data.workers=%d", model, workers);
    CHECK(o.status == 0 && o.steps == 345, "%s: exit %d\n%s", dir, o.status, o.out);
#ifdef __SANITIZE_ADDRESS__
    o.faults = 0; /* the sanitizer's own */
#endif
    CHECK(o.allocs == 0 && o.faults == 0, "%s: %lld allocations, %lld page faults after warm-up", dir,
          o.allocs, o.faults);
}

TEST(steady_mlp_steps_allocate_nothing_and_take_no_fault)
{
    nothing_happens("mlp", 0);
    nothing_happens("mlp", 2);
}

TEST(steady_cnn_steps_allocate_nothing_and_take_no_fault)
{
    nothing_happens("cnn model.width=8", 0);
    nothing_happens("cnn model.width=8", 2);
}

/* The last step in the record: it is written once a second. */
static int recorded_step(void)
{
    test_run r = test_sh("tail -n 1 run/events.jsonl | grep -o '\"step\":[0-9]*' | cut -d: -f2");
    int step = atoi(r.out);

    free(r.out);
    return step;
}

static bool succeeds(const char *command)
{
    test_run r = test_sh("%s", command);

    free(r.out);
    return r.status == 0;
}

static bool is_past(void *step)
{
    return recorded_step() > *(int *)step;
}

static bool attached(void *unused)
{
    (void)unused;
    return succeeds("grep -q attached strace.err");
}

TEST(steady_steps_open_no_file)
{
    pid_t ranks[8];

    if (!succeeds("command -v strace"))
        test_skip("strace is not installed");
    pid_t pid = program_start("run", WORDS "model=mlp trainer.max_epochs=100000");
    int step = 60;
    test_until(is_past, &step, 30, "the first steps");
    CHECK(program_ranks(pid, ranks, 8) >= 2, "ranks");
    pid_t tracer = test_spawn("strace.err", "exec strace -f -p %d -e trace=open,openat,creat -o strace.out",
                              (int)ranks[0]);
    if (test_wait(tracer, 0.3) >= 0)
        test_skip("strace may not attach here");
    test_until(attached, NULL, 20, "strace");
    step = recorded_step() + 200;
    test_until(is_past, &step, 30, "200 steps more");
    kill(tracer, SIGINT);
    test_wait(tracer, 10);
    kill(pid, SIGKILL);
    test_wait(pid, 10);
    CHECK(succeeds("test -e strace.out"), "no trace");
    CHECK(!succeeds("grep open strace.out >&2"), "files were opened under way: see strace.out");
}
