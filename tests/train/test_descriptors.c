/* test_descriptors.c -- what ranks and savers of a run hold open: nothing that belongs to the supervisor. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "harness.h"
#include "proc/look.h"
#include "train/stage.h"

static const char *const words[] = {"model=mlp",
                                    "data=fake",
                                    "optim=sgd",
                                    "data.n=64",
                                    "data.batch_size=8",
                                    "trainer.slices=4",
                                    "trainer.devices=2",
                                    "trainer.max_epochs=4",
                                    "callbacks.model_checkpoint.every_n_steps=3",
                                    NULL};

/* Shared with the saver. */
struct scene {
    int record, peers[2];
    _Atomic int savers, saver_others, rank_checks;
    bool open; /* our end of the socket */
    char rank_has[512];
};

/* In the saver: beside the standard streams it has the record and its pipe. */
static co_err publish(void *ctx, int64_t view)
{
    struct scene *s = ctx;
    co_fds now;
    struct stat st;
    int others = 0;

    CHECK(view == 1, "view %lld", (long long)view);
    co_fds_open_now(&now);
    for (int fd = 3; fd < CO_FDS_MOST; fd++)
        if (co_fds_has(&now, fd) && fd != s->record)
            others += fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode) ? 100 : 1;
    s->saver_others = others;
    s->savers++;
    return co_fds_has(&now, s->record) ? CO_OK : co_fail(CO_EFAIL, "the record is closed in the saver");
}

/* The files of a rank beyond the standard ones. */
static void list_of(pid_t pid, char *out, size_t size)
{
    test_run r = test_sh("cd /proc/%d/fd && for i in *; do test $i -gt 2 && readlink $i; done", (int)pid);

    snprintf(out, size, "%s", r.out);
    free(r.out);
}

/* In the supervisor, after the first step: closes its socket, and reads what the ranks hold. */
static void step(void *ctx, const co_step_result *r)
{
    struct scene *s = ctx;
    pid_t pid[16];
    int n = co_proc_children(pid, 16, getpid());
    char byte;

    if (!s->open || r->step < 1)
        return;
    s->open = false;
    close(s->peers[0]);
    struct pollfd p = {.fd = s->peers[1], .events = POLLIN};
    CHECK(poll(&p, 1, 0) == 1 && read(s->peers[1], &byte, 1) == 0, "the peer of a closed socket sees no end");
    for (int i = 0; i < n; i++) {
        list_of(pid[i], s->rank_has, sizeof s->rank_has);
        if (test_contains(s->rank_has, "eventfd")) { /* a rank: the saver has no bell */
            CHECK(strcmp(s->rank_has, "anon_inode:[eventfd]\n") == 0, "a rank has %s", s->rank_has);
            s->rank_checks++;
        }
    }
}

TEST(ranks_and_savers_hold_nothing_of_the_supervisors_open)
{
    stage g;
    co_plan *p;
    co_train_summary sum;
    struct scene *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(s != MAP_FAILED, "mmap");
    stage_open(&g, words);
    g.spec.ckpt_root = "checkpoints";
    mkdir("checkpoints", 0755);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, s->peers) == 0, "%m");
    s->open = true;
    s->record = open("record", O_WRONLY | O_CREAT, 0600);
    CHECK_OK(co_plan_new(&p, &g.spec));
    co_train_hooks hooks = {.ctx = s, .publish = publish, .publish_fd = s->record, .step = step};
    CHECK_OK(co_train_run(p, &hooks, &sum));
    CHECK(s->savers > 1 && s->saver_others == 1, "%d savers, others: %d", s->savers, s->saver_others);
    CHECK(s->rank_checks > 0, "no rank was looked at");
    co_plan_free(p);
    stage_close(&g);
}

static void drop(co_dataset *d)
{
    co_free(d);
}

static co_err open_with_a_file(co_dataset **out, const void *cfg)
{
    (void)cfg;
    *out = co_zalloc(sizeof **out);
    if (!*out)
        return CO_ENOMEM;
    (*out)->close = drop;
    return open("/dev/null", O_RDONLY | O_CLOEXEC) < 0 ? co_fail(CO_EIO, "open: %m") : CO_OK;
}

TEST(descriptors_that_a_data_set_opens_are_noted_for_the_ranks)
{
    co_dataset_def def = {.name = "with-a-file", .open = open_with_a_file};
    co_dataset *d;
    int next = dup(STDIN_FILENO), n = 0;

    close(next);
    CHECK_OK(co_dataset_open(&d, &def, NULL));
    for (int fd = 0; fd < CO_FDS_MOST; fd++)
        n += co_fds_has(&d->fds, fd);
    CHECK(n == 1 && co_fds_has(&d->fds, next), "%d descriptors", n);
    co_dataset_close(d);
}
