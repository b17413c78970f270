/* test_runs.c -- the board's list of runs, on a disk that is slow. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "harness.h"
#include "web/web_int.h"

static runs all;
static sem_t walks, may_end;
static atomic_int calls, gave_up;

/* A disk that answers when the test says so; after 5 seconds the test has failed. */
static co_err find_slowly(co_run_list *out, const char *dir)
{
    struct timespec until;

    atomic_fetch_add(&calls, 1);
    sem_post(&walks);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    while (sem_timedwait(&may_end, &until) != 0)
        if (errno == ETIMEDOUT) {
            atomic_store(&gave_up, 1);
            break;
        }
    return co_runs_find(out, dir);
}

static void *look_for_b(void *found)
{
    *(char **)found = runs_dir(&all, "b");
    return NULL;
}

static void make_run(const char *name)
{
    test_run r = test_sh("mkdir -p logs/%s && echo '{}' > logs/%s/header.json && : > logs/%s/events.jsonl",
                         name, name, name);

    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
}

TEST(while_one_connection_looks_for_runs_on_a_slow_disk_the_board_answers_the_others_tsan)
{
    pthread_t thread;
    char *b = NULL;

    sem_init(&walks, 0, 0);
    sem_init(&may_end, 0, 0);
    make_run("a");
    CHECK_OK(runs_open(&all, "logs"));
    make_run("b");
    all.find = find_slowly;
    CHECK(pthread_create(&thread, NULL, look_for_b, &b) == 0, "thread");
    while (sem_wait(&walks) != 0)
        ;
    char *a = runs_dir(&all, "a");
    open_run *open = runs_take(&all, "a");
    CHECK(a && open, "the old list has a");
    CHECK(!atomic_load(&gave_up) && atomic_load(&calls) == 1,
          "they did not wait, and did not walk themselves");
    runs_put(&all, open);
    co_free(a);
    sem_post(&may_end);
    pthread_join(thread, NULL);
    CHECK(b, "whoever has walked uses the new list");
    co_free(b);
    runs_close(&all);
}
