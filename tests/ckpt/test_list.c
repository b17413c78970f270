/* Which checkpoints there are: ls, newest with fall-back, prune, links. */
#include "ckpt/small.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"

struct heard {
    int n;
    char path[8][64], why[8][256];
};

static void hear(void *ctx, const char *path, const char *why)
{
    struct heard *h = ctx;
    snprintf(h->path[h->n], sizeof h->path[0], "%s", path);
    snprintf(h->why[h->n++], sizeof h->why[0], "%s", why);
}

static void three(struct small *s)
{
    small_init(s, 4);
    CHECK_OK(small_save(s, "r", "epoch_002", 20));
    CHECK_OK(small_save(s, "r", "epoch_001", 10));
    CHECK_OK(small_save(s, "r", "epoch_010", 100));
}

static void newest_is(const char *want, struct heard *h)
{
    char *path = NULL;
    *h = (struct heard){0};
    CHECK_OK(co_ckpt_newest(&path, "r", hear, h));
    CHECK(strcmp(path, want) == 0, "%s, wanted %s", path, want);
    co_free(path);
}

TEST(newest_falls_back_and_names_the_bad_one)
{
    struct small s;
    struct heard h;
    char *path = NULL;
    three(&s);
    newest_is("r/epoch_010", &h);
    CHECK(h.n == 0, "%s: %s", h.path[0], h.why[0]);
    int fd = open("r/epoch_010/optim.safetensors", O_WRONLY);
    CHECK(fd >= 0 && pwrite(fd, "x", 1, 50) == 1, "%m");
    close(fd);
    newest_is("r/epoch_002", &h);
    CHECK(h.n == 1 && strcmp(h.path[0], "r/epoch_010") == 0 &&
              test_contains(h.why[0], "optim.safetensors: SHA-256 differs"),
          "%d: %s: %s", h.n, h.path[0], h.why[0]);
    CHECK(truncate("r/epoch_002/manifest.json", 40) == 0, "%m");
    newest_is("r/epoch_001", &h);
    CHECK(h.n == 2 && strcmp(h.path[1], "r/epoch_002") == 0 && test_contains(h.why[1], "manifest.json"),
          "%d: %s: %s", h.n, h.path[1], h.why[1]);
    CHECK(unlink("r/epoch_001/model.safetensors") == 0, "%m");
    CHECK_FAILS(co_ckpt_newest(&path, "r", NULL, NULL), CO_EINPUT, "none of its 3 checkpoints is whole");
    CHECK(mkdir("none", 0777) == 0 && mkdir("none/.tmp-x", 0777) == 0, "%m");
    CHECK_FAILS(co_ckpt_newest(&path, "none", NULL, NULL), CO_EINPUT, "none: there is no checkpoint");
    CHECK_FAILS(co_ckpt_newest(&path, "absent", NULL, NULL), CO_EINPUT, "absent: there is no such folder");
    small_fini(&s);
}

/* A whole one under a .tmp- name is one that was never finished: its writer said nothing. */
TEST(newest_leaves_unfinished_saves_alone)
{
    struct small s;
    struct heard h;
    three(&s);
    CHECK(rename("r/epoch_010", "r/.tmp-epoch_010") == 0, "%m");
    newest_is("r/epoch_002", &h);
    CHECK(h.n == 0, "%s", h.path[0]);
    small_fini(&s);
}

TEST(ls_lists_by_step_the_unreadable_first)
{
    struct small s;
    co_ckpt_info *list = NULL;
    int n = 0;
    const char *want[] = {"notes", "epoch_001", "epoch_002", "epoch_010"};
    three(&s);
    CHECK(mkdir("r/notes", 0777) == 0 && mkdir("r/.tmp-epoch_011", 0777) == 0, "%m");
    CHECK_OK(co_fs_write_atomic("r/readme", "x", 1));
    CHECK_OK(co_ckpt_ls(&list, &n, "r"));
    CHECK(n == 4, "%d", n);
    for (int i = 0; i < n; i++) {
        CHECK(strcmp(list[i].name, want[i]) == 0, "%d is %s", i, list[i].name);
        CHECK((list[i].why_bad[0] != 0) == (i == 0), "%s: %s", list[i].name, list[i].why_bad);
        CHECK(i == 0 || list[i].bytes > 1000, "%s has %llu bytes", list[i].name,
              (unsigned long long)list[i].bytes);
    }
    CHECK(list[3].meta.step == 100 && strcmp(list[3].meta.model, "mlp") == 0, "meta");
    co_ckpt_ls_free(list, n);
    small_fini(&s);
}

TEST(prune_keeps_the_newest_and_what_links_point_to)
{
    struct small s;
    struct stat st;
    small_init(&s, 4);
    for (int i = 1; i <= 6; i++) {
        char name[32];
        snprintf(name, sizeof name, "epoch_%d", i);
        CHECK_OK(small_save(&s, "r", name, i));
    }
    CHECK_OK(small_save(&s, "r", "final", 0));
    CHECK_OK(co_ckpt_link("r", "best", "epoch_2"));
    CHECK_OK(co_ckpt_link("r", "last", "epoch_1")); /* moved back by hand */
    CHECK(mkdir("r/.tmp-epoch_7", 0777) == 0 && mkdir("r/epoch_notes", 0777) == 0, "%m");
    CHECK(symlink("epoch_9", "r/.tmp-link-last") == 0 && mkdir("r/.tmp-epoch_8", 0777) == 0, "%m");
    test_run cp = test_sh("cp -r r/epoch_6 r/.old-epoch_6; cp -r r/epoch_3 r/.old-epoch_8; "
                          "touch -h -d '2 days ago' r/.tmp-epoch_7 r/.tmp-link-last");
    CHECK(cp.status == 0, "%s", cp.out);
    free(cp.out);
    CHECK_OK(co_ckpt_prune("r", "epoch_", 2, NULL));
    const char *stays[] = {"epoch_1", "epoch_2",     "epoch_5",      "epoch_6",
                           "final",   "epoch_notes", ".old-epoch_8", ".tmp-epoch_8"};
    const char *goes[] = {"epoch_3", "epoch_4", ".tmp-epoch_7", ".tmp-link-last", ".old-epoch_6"};
    for (size_t i = 0; i < CO_COUNT(stays) + CO_COUNT(goes); i++) {
        bool stay = i < CO_COUNT(stays);
        char path[64];
        snprintf(path, sizeof path, "r/%s", stay ? stays[i] : goes[i - CO_COUNT(stays)]);
        CHECK((lstat(path, &st) == 0) == stay, "%s %s", path, stay ? "is gone" : "is still there");
    }
    CHECK_OK(small_load(&s, "r/best", NULL));
    CHECK_OK(small_load(&s, "r/last", NULL));
    CHECK_FAILS(co_ckpt_prune("absent", "", 1, NULL), CO_EINPUT, "absent");
    small_fini(&s);
}

static void save_valued(struct small *s, const char *name, int64_t step, const char *monitor, double value,
                        bool up)
{
    co_ckpt_meta meta = small_meta(step);

    meta.extra = json_pack("{s:s, s:f, s:b}", "monitor", monitor, "value", value, "up", up);
    CHECK_OK(co_ckpt_save("r", name, &s->l, SMALL_MOMENTS, small_moments, &meta,
                          &(co_ckpt_source){small_read, s}));
    json_decref(meta.extra);
}

static void best_is(const char *want)
{
    char target[64] = "";

    CHECK(readlink("r/best", target, sizeof target - 1) > 0 && strcmp(target, want) == 0,
          "best is %s, not %s", target, want);
}

/* A run that continues may watch another value: the accuracies before say nothing about which loss is the
 * best. */
TEST(the_best_is_chosen_among_values_of_one_kind)
{
    struct small s;
    struct stat st;

    small_init(&s, 4);
    save_valued(&s, "e1", 1, "val/acc", 0.7, true);
    save_valued(&s, "e2", 2, "val/acc", 0.9, true);
    save_valued(&s, "e3", 3, "val/acc", 0.8, true);
    CHECK_OK(co_ckpt_prune_but_best("r", 2, 1, NULL));
    best_is("e2");
    save_valued(&s, "e4", 4, "val/loss", 0.3, false);
    save_valued(&s, "e5", 5, "val/loss", 0.4, false);
    CHECK_OK(small_save(&s, "r", "e6", 6)); /* does not say how good it is */
    CHECK_OK(co_ckpt_prune_but_best("r", 2, 1, NULL));
    best_is("e4");
    CHECK(lstat("r/e2", &st) != 0 && lstat("r/e4", &st) == 0 && lstat("r/e6", &st) == 0,
          "the wrong ones went");
    small_fini(&s);
}

/* A process that saves into r and hangs before its checkpoint is visible; then it is killed, or not. */
static co_err hang(void *ctx, int64_t view)
{
    for (;;)
        pause();
    return CO_OK;
}

static bool one_is_there(void *unused)
{
    test_run r = test_sh("ls -d r/.tmp-theirs~*/manifest.json");
    bool there = r.status == 0;
    free(r.out);
    return there;
}

TEST(a_sweep_leaves_the_work_of_live_writers_alone)
{
    struct small s;
    small_init(&s, 4);
    CHECK_OK(small_save(&s, "r", "mine", 1));
    pid_t other = fork();
    if (other == 0) {
        co_ckpt_meta meta = small_meta(2);
        co_ckpt_save("r", "theirs", &s.l, 0, NULL, &meta, &(co_ckpt_source){small_read, &s, hang});
        _exit(1);
    }
    test_until(one_is_there, NULL, 30, "the other's half-made checkpoint");
    CHECK_OK(small_save(&s, "r", "mine", 2));
    CHECK_OK(co_ckpt_prune("r", "", 1, NULL));
    CHECK(one_is_there(NULL), "the sweep took the folder that a live process writes");
    kill(other, SIGKILL);
    CHECK(waitpid(other, NULL, 0) == other, "%m");
    CHECK_OK(co_ckpt_prune("r", "", 1, NULL));
    CHECK(!one_is_there(NULL), "the leftover of a dead process stays");
    small_fini(&s);
}

/* Before the first step nothing is measured; older versions wrote a 0 there, which is a fine loss. */
TEST(a_checkpoint_of_step_0_is_never_the_best)
{
    struct small s;
    char target[64] = {0};
    small_init(&s, 4);
    for (int step = 0; step < 4; step++) {
        char name[16];
        co_ckpt_meta meta = small_meta(step);
        meta.extra =
            json_pack("{s:f, s:s, s:b}", "value", step ? (double)step : 0.0, "monitor", "val/loss", "up", 0);
        snprintf(name, sizeof name, "e%d", step);
        CHECK_OK(co_ckpt_save("r", name, &s.l, 0, NULL, &meta, &(co_ckpt_source){small_read, &s}));
        co_ckpt_meta_fini(&meta);
    }
    CHECK_OK(co_ckpt_prune_but_best("r", 1, 1, NULL));
    CHECK(readlink("r/best", target, sizeof target - 1) > 0 && strcmp(target, "e1") == 0, "%s", target);
    CHECK(co_fs_exists("r/e1"), "the true best went");
    small_fini(&s);
}

TEST(a_link_moves_and_never_replaces_a_folder)
{
    struct small s;
    char target[64] = {0};
    three(&s);
    CHECK_OK(co_ckpt_link("r", "best", "epoch_001"));
    CHECK_OK(co_ckpt_link("r", "best", "epoch_002"));
    CHECK(readlink("r/best", target, sizeof target - 1) > 0 && strcmp(target, "epoch_002") == 0, "%s", target);
    CHECK_FAILS(co_ckpt_link("r", "epoch_001", "epoch_002"), CO_EIO, "r/epoch_001");
    test_run ls = test_sh("ls -A r | grep tmp");
    CHECK(!*ls.out, "leftover: %s", ls.out);
    free(ls.out);
    small_fini(&s);
}

static co_err list_all(void *ctx)
{
    co_ckpt_info *list = NULL;
    int n = 0;
    char *path = NULL;
    CO_TRY(co_ckpt_ls(&list, &n, "r"));
    co_ckpt_ls_free(list, n);
    CO_TRY(co_ckpt_newest(&path, "r", NULL, NULL));
    co_free(path);
    return co_ckpt_prune("r", "epoch", 1, NULL);
}

TEST(listing_survives_each_failing_allocation)
{
    struct small s;
    three(&s);
    test_each_alloc_fails(list_all, NULL);
    CHECK_OK(small_load(&s, "r/epoch_010", NULL));
    CHECK(!co_fs_exists("r/epoch_001") && !co_fs_exists("r/epoch_002"), "not pruned");
    small_fini(&s);
}
