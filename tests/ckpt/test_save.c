/* Saving: round trip, replacing, kills between the steps, disks that refuse. */
#include "ckpt/small.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"

static size_t entries(const char *dir)
{
    char **names;
    size_t n;
    CHECK_OK(co_fs_list(&names, &n, dir));
    co_fs_list_free(names, n);
    return n;
}

TEST(a_checkpoint_comes_back_bit_for_bit)
{
    struct small s;
    char hex[65];
    small_init(&s, 7);
    co_ckpt_meta meta = small_meta(20), back = {0};
    meta.extra = json_pack("{s:{s:f, s:s}, s:[i,i]}", "best", "val_loss", 0.1, "name", "epoch_001", "a", 1, 2);
    CHECK_OK(co_fs_mkdirs("run"));
    CHECK_OK(co_ckpt_save("run/checkpoints", "epoch_001", &s.l, SMALL_MOMENTS, small_moments, &meta,
                          &(co_ckpt_source){small_read, &s}));
    CHECK_OK(co_layout_sha256(&s.l, s.part[0], hex));
    CHECK(strcmp(meta.weights_sha256, hex) == 0, "weights_sha256 is written back");
    CHECK_OK(co_ckpt_verify("run/checkpoints/epoch_001"));
    CHECK_OK(small_load(&s, "run/checkpoints/last", &back));
    CHECK(json_equal(meta.extra, back.extra), "extra");
    CHECK(meta.step == back.step && meta.applied == back.applied && meta.epoch == back.epoch &&
              meta.samples == back.samples && meta.seed == back.seed && meta.slices == back.slices &&
              meta.global_batch == back.global_batch && meta.view == back.view,
          "numbers: step %lld, seed %llx", (long long)back.step, (unsigned long long)back.seed);
    CHECK(strcmp(meta.model, back.model) == 0 && strcmp(meta.data, back.data) == 0 &&
              strcmp(meta.optim, back.optim) == 0 && strcmp(meta.kernels, back.kernels) == 0,
          "texts");
    CHECK(strcmp(meta.config_sha256, back.config_sha256) == 0 &&
              strcmp(meta.data_sha256, back.data_sha256) == 0 &&
              strcmp(meta.weights_sha256, back.weights_sha256) == 0,
          "hashes");
    co_ckpt_meta_fini(&meta);
    co_ckpt_meta_fini(&back);
    CHECK(entries("run/checkpoints") == 2 && entries("run/checkpoints/epoch_001") == 3, "leftovers");
    small_fini(&s);
}

/* Same state and meta: same bytes, whoever saves and whenever. */
TEST(saving_twice_gives_the_same_bytes)
{
    struct small s;
    const char *files[] = {"model.safetensors", "optim.safetensors", "manifest.json"};
    small_init(&s, 7);
    CHECK_OK(small_save(&s, "a", "x", 5));
    CHECK_OK(small_save(&s, "b", "x", 5));
    for (size_t i = 0; i < CO_COUNT(files); i++) {
        char p[64], q[64], h[65], g[65];
        snprintf(p, sizeof p, "a/x/%s", files[i]);
        snprintf(q, sizeof q, "b/x/%s", files[i]);
        CHECK_OK(co_sha256_of_file(p, h, NULL));
        CHECK_OK(co_sha256_of_file(q, g, NULL));
        CHECK(strcmp(h, g) == 0, "%s differs", files[i]);
    }
    small_fini(&s);
}

TEST(weights_load_alone_and_moments_are_asked_for_by_name)
{
    struct small s, got;
    small_init(&s, 4);
    small_init(&got, 4);
    co_ckpt_meta meta = small_meta(1);
    CHECK_OK(small_save(&s, "r", "both", 1));
    CHECK_OK(co_ckpt_load("r/both", &got.l, got.part[0], 0, NULL, NULL, NULL));
    CHECK(memcmp(got.part[0], s.part[0], s.l.count * 4) == 0, "weights differ");
    CHECK_FAILS(co_ckpt_load("r/both", &got.l, got.part[0], 1, (const char *const[]){"momentum_buffer"},
                             got.part + 1, NULL),
                CO_EINPUT, "another optimiser: tensor exp_avg.fc1.bias is in it, but not here");
    CHECK_FAILS(co_ckpt_load("r/both", &got.l, got.part[0], 1, small_moments, got.part + 1, NULL), CO_EINPUT,
                "tensor exp_avg_sq.fc1.bias is in it, but not here");
    CHECK_OK(co_ckpt_save("r", "plain", &s.l, 0, NULL, &meta, &(co_ckpt_source){small_read, &s}));
    CHECK(!co_fs_exists("r/plain/optim.safetensors"), "no moments, no file");
    CHECK_OK(co_ckpt_load("r/plain", &got.l, got.part[0], 0, NULL, NULL, NULL));
    CHECK_FAILS(co_ckpt_load("r/plain", &got.l, got.part[0], 2, small_moments, got.part + 1, NULL), CO_EINPUT,
                "has no optim.safetensors: it was saved without exp_avg");
    small_fini(&s);
    small_fini(&got);
}

TEST(a_model_larger_than_the_savers_piece_is_whole)
{
    struct small s;
    small_init(&s, 150001);
    CHECK_OK(small_save(&s, "r", "big", 1));
    CHECK_OK(small_load(&s, "r/big", NULL));
    small_fini(&s);
}

TEST(a_checkpoint_of_the_same_name_is_replaced)
{
    struct small s;
    co_ckpt_meta meta = {0};
    small_init(&s, 4);
    CHECK_OK(small_save(&s, "r", "last_one", 1));
    small_fill(&s, 2);
    CHECK_OK(small_save(&s, "r", "last_one", 2));
    CHECK_OK(small_load(&s, "r/last", &meta));
    CHECK(meta.step == 2 && entries("r") == 2, "step %lld, %zu entries", (long long)meta.step, entries("r"));
    small_fini(&s);
}

TEST(names_that_are_no_plain_names_are_refused)
{
    struct small s;
    const char *names[] = {"", ".", "..", ".tmp-a", "a/b", "../a", "a b", "a\n"};
    small_init(&s, 4);
    for (size_t i = 0; i < CO_COUNT(names); i++)
        CHECK_FAILS(small_save(&s, "r", names[i], 1), CO_EINPUT, "checkpoint name");
    CHECK_OK(small_save(&s, "r", "a", 1));
    CHECK_FAILS(small_save(&s, "r", "last", 2), CO_EINPUT, "r/last is not a folder");
    CHECK_OK(small_load(&s, "r/last", NULL));
    small_fini(&s);
}

/* What a kill between the steps of a save leaves behind, by hand. */
TEST(a_kill_while_replacing_leaves_one_good_checkpoint)
{
    struct small s;
    char *path = NULL;
    co_ckpt_meta meta = {0};
    small_init(&s, 4);
    CHECK_OK(small_save(&s, "r", "x", 1));
    /* between 3 and 4 */
    CHECK(rename("r/x", "r/.old-x") == 0 && mkdir("r/.tmp-x~00000000-1", 0777) == 0, "%m");
    CHECK_OK(co_ckpt_newest(&path, "r", NULL, NULL));
    CHECK(strcmp(path, "r/.old-x") == 0, "%s", path);
    CHECK_OK(small_load(&s, path, NULL));
    co_free(path);
    test_run old = test_sh("touch -d '2 days ago' r/.tmp-x~00000000-1"); /* of a host that is gone */
    CHECK(old.status == 0, "%s", old.out);
    free(old.out);
    CHECK_OK(co_ckpt_prune("r", "", 1, NULL)); /* must not take the only one */
    CHECK(!co_fs_exists("r/.tmp-x~00000000-1"), ".tmp- stays");
    small_fill(&s, 2);
    CHECK_OK(small_save(&s, "r", "x", 2));
    CHECK(entries("r") == 2, "leftovers");

    test_run cp = test_sh("cp -r r/x r/.old-x"); /* between 4 and 5 */
    CHECK(cp.status == 0, "%s", cp.out);
    free(cp.out);
    CHECK_OK(co_ckpt_newest(&path, "r", NULL, NULL));
    CHECK(strcmp(path, "r/x") == 0, "%s", path);
    co_free(path);
    small_fill(&s, 3);
    CHECK_OK(small_save(&s, "r", "x", 3));
    CHECK_OK(small_load(&s, "r/x", &meta));
    CHECK(meta.step == 3 && entries("r") == 2, "step %lld", (long long)meta.step);
    small_fini(&s);
}

/* A child saves step after step under one name and tells us; we kill it at any moment. */
TEST(a_saver_killed_at_any_moment_never_loses_what_it_reported)
{
    struct small s;
    uint64_t rnd = 7;
    int64_t step = 0;
    small_init(&s, 4);
    for (int round = 0; round < 40; round++) {
        int fd[2];
        CHECK(pipe(fd) == 0, "%m");
        pid_t pid = fork();
        if (pid == 0) {
            for (int64_t k = step + 1;; k++)
                if (small_save(&s, "r", "same", k) || write(fd[1], &k, sizeof k) != sizeof k)
                    _exit(1);
        }
        close(fd[1]);
        int64_t told = 0;
        CHECK(read(fd[0], &told, sizeof told) == sizeof told, "the child could not save");
        for (volatile uint32_t spin = test_u32(&rnd) >> 8; spin; spin--) /* up to the length of a save */
            ;
        kill(pid, SIGKILL);
        CHECK(waitpid(pid, NULL, 0) == pid, "%m");
        while (read(fd[0], &step, sizeof step) == sizeof step)
            told = step;
        close(fd[0]);
        char *path = NULL;
        co_ckpt_meta meta = {0};
        CHECK_OK(co_ckpt_newest(&path, "r", NULL, NULL));
        CHECK_OK(small_load(&s, path, &meta));
        CHECK(meta.step >= told, "round %d: step %lld is there, %lld was reported", round,
              (long long)meta.step, (long long)told);
        step = meta.step;
        co_free(path);
    }
    test_note("40 kills, %lld saves", (long long)step);
    small_fini(&s);
}

static void keep_text(void *text, co_log_level level, const char *said)
{
    snprintf(text, 512, "%d %s", (int)level, said);
}

TEST(a_link_that_cannot_be_moved_is_told_and_the_checkpoint_is_there)
{
    struct small s;
    char said[512] = "";
    small_init(&s, 4);
    CHECK(mkdir("r", 0777) == 0 && mkdir("r/last", 0777) == 0, "%m"); /* in the link's place */
    co_log_to(keep_text, said, CO_LOG_WARN);
    CHECK_OK(small_save(&s, "r", "x", 1));
    CHECK_OK(small_save(&s, "r", "x", 2));
    CHECK(test_contains(said, "checkpoint r/x is saved, but the link `last` could not be moved"), "%s", said);
    CHECK_OK(small_load(&s, "r/x", NULL));
    CHECK(entries("r") == 2, "leftovers"); /* x and last */
    small_fini(&s);
}

static co_err broken_source(void *ctx, int part, size_t offset, size_t count, float *dst)
{
    return part == 1 ? co_fail(CO_EPEER, "host b is gone") : small_read(ctx, part, offset, count, dst);
}

TEST(a_source_that_fails_leaves_nothing_behind)
{
    struct small s;
    co_ckpt_meta meta = small_meta(1);
    small_init(&s, 4);
    CHECK_FAILS(co_ckpt_save("r", "x", &s.l, SMALL_MOMENTS, small_moments, &meta,
                             &(co_ckpt_source){broken_source, &s}),
                CO_EPEER, "checkpoint r/x: host b is gone");
    CHECK(entries("r") == 0 && !meta.weights_sha256[0], "leftovers");
    small_fini(&s);
}

/* A folder of its own of `size` bytes, seen by this process alone. False without root or mount(2). */
static bool small_disk(const char *path, const char *size)
{
    char options[64];
    snprintf(options, sizeof options, "size=%s", size);
    CHECK(mkdir(path, 0777) == 0, "%m");
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", path, "tmpfs", 0, options) == 0;
}

/* Counts what is read of the source, and notes what the folder holds when it is read through. */
struct counted {
    struct small *s;
    size_t read, through_at, through;
    bool manifest;
};

static co_err read_counted(void *ctx, int part, size_t offset, size_t count, float *dst)
{
    struct counted *c = ctx;

    c->read += count;
    return small_read(c->s, part, offset, count, dst);
}

static void note_through(void *ctx)
{
    struct counted *c = ctx;
    test_run r = test_sh("ls r/.tmp-*/manifest.json");

    c->manifest = r.status == 0;
    free(r.out);
    c->through_at = c->read;
    c->through++;
}

TEST(each_element_is_read_once_and_the_source_is_told_before_the_manifest_is_written)
{
    struct small s;
    co_ckpt_meta meta = small_meta(1);
    size_t want = 0;

    small_init(&s, 4);
    for (int i = 0; i < s.l.n; i++)
        want += s.l.entry[i].count * (s.l.entry[i].kind == CO_KIND_PARAM ? 1 + SMALL_MOMENTS : 1);
    struct counted c = {.s = &s};
    CHECK_OK(co_ckpt_save("r", "x", &s.l, SMALL_MOMENTS, small_moments, &meta,
                          &(co_ckpt_source){read_counted, &c, .read_through = note_through}));
    CHECK(c.read == want && c.through_at == want && c.through == 1, "%zu elements read, %zu before, want %zu",
          c.read, c.through_at, want);
    CHECK(!c.manifest, "the manifest was there");
    CHECK_OK(small_load(&s, "r/x", NULL));
    small_fini(&s);
}

TEST(a_moment_can_be_loaded_in_place_of_the_weights)
{
    struct small s, got;

    small_init(&s, 4);
    small_init(&got, 4);
    CHECK_OK(small_save(&s, "r", "x", 1));
    memset(got.part[0], 0xff, s.l.count * 4);
    CHECK_OK(co_ckpt_load("r/x", &got.l, got.part[0], SMALL_MOMENTS, small_moments,
                          (float *const[]){NULL, got.part[0]}, NULL));
    for (int i = 0; i < s.l.n; i++) {
        const co_entry *e = &s.l.entry[i];
        const float *want = s.part[e->kind == CO_KIND_PARAM ? 2 : 0] + e->offset;
        CHECK(memcmp(got.part[0] + e->offset, want, e->count * 4) == 0, "%s", e->name);
    }
    small_fini(&s);
    small_fini(&got);
}

static co_err refuse(void *ctx, int64_t view)
{
    return co_fail(CO_EFAIL, "the folder belongs to another run now");
}

TEST(a_checkpoint_that_is_refused_at_the_last_moment_leaves_nothing)
{
    struct small s;
    co_ckpt_meta meta = small_meta(2);
    small_init(&s, 4);
    CHECK_OK(small_save(&s, "r", "x", 1));
    CHECK_FAILS(co_ckpt_save("r", "x", &s.l, 0, NULL, &meta, &(co_ckpt_source){small_read, &s, refuse}),
                CO_EFAIL, "belongs to another run");
    CHECK(entries("r") == 2, "leftovers");
    CHECK_OK(small_load(&s, "r/x", &meta));
    CHECK(meta.step == 1, "step %lld", (long long)meta.step);
    co_ckpt_meta_fini(&meta);
    small_fini(&s);
}

TEST(a_full_disk_is_reported_and_the_old_checkpoint_stays)
{
    struct small s, big;
    small_init(&s, 100);
    small_init(&big, 5000);
    if (!small_disk("disk", "128k"))
        test_skip("needs root and mount(2): %s", strerror(errno));
    CHECK_OK(small_save(&s, "disk/r", "x", 1));
    size_t before = entries("disk/r");
    CHECK_FAILS(small_save(&big, "disk/r", "x", 2), CO_EIO, "No space left on device");
    CHECK(test_contains(co_errmsg(), "disk/r/.tmp-x~"), "%s", co_errmsg());
    CHECK(entries("disk/r") == before, "leftovers");
    CHECK_OK(small_load(&s, "disk/r/last", NULL));
    CHECK_OK(small_save(&s, "disk/r", "x", 3)); /* the space is free again */
    small_fini(&s);
    small_fini(&big);
}

TEST(a_read_only_disk_is_reported)
{
    struct small s;
    small_init(&s, 4);
    if (!small_disk("disk", "1m"))
        test_skip("needs root and mount(2): %s", strerror(errno));
    CHECK_OK(small_save(&s, "disk/r", "a", 0));
    CHECK_OK(small_save(&s, "disk/r", "x", 1));
    CHECK(mount("none", "disk", "tmpfs", MS_REMOUNT | MS_RDONLY, NULL) == 0, "%m");
    CHECK_FAILS(small_save(&s, "disk/r", "x", 2), CO_EIO, "disk/r/.tmp-x~");
    CHECK_FAILS(co_ckpt_link("disk/r", "best", "x"), CO_EIO, "Read-only file system");
    CHECK_FAILS(co_ckpt_prune("disk/r", "", 1, NULL), CO_EIO, "disk/r/.tmp-gone-a~");
    CHECK_OK(small_load(&s, "disk/r/last", NULL));
    small_fini(&s);
}

TEST(a_folder_below_a_file_is_reported)
{
    struct small s;
    small_init(&s, 4);
    CHECK_OK(co_fs_write_atomic("file", "x", 1));
    CHECK_FAILS(small_save(&s, "file/r", "x", 1), CO_EIO, "file");
    CHECK_FAILS(small_save(&s, "/proc/no-such", "x", 1), CO_EIO, "/proc/no-such: No such file or directory");
    small_fini(&s);
}

static co_err save_it(void *ctx)
{
    return small_save(ctx, "r", "x", 1);
}

static co_err load_it(void *ctx)
{
    struct small *got = ctx;
    co_ckpt_meta meta = {0};
    co_err err = co_ckpt_load("r/x", &got->l, got->part[0], SMALL_MOMENTS, small_moments, got->part + 1, &meta);
    co_ckpt_meta_fini(&meta);
    return err;
}

TEST(saving_and_loading_survive_each_failing_allocation)
{
    struct small s, got;
    small_init(&s, 4);
    small_init(&got, 4);
    small_fill(&got, 2);
    if (small_disk("disk", "4m")) /* a thousand saves: where it can be, without waiting for a disk */
        CHECK(chdir("disk") == 0, "%m");
    test_each_alloc_fails(save_it, &s);
    CHECK(entries("r") == 2, "leftovers");
    test_each_alloc_fails(load_it, &got);
    for (int p = 0; p <= SMALL_MOMENTS; p++)
        CHECK(memcmp(got.part[p], s.part[p], s.l.count * 4) == 0, "part %d differs", p);
    small_fini(&s);
    small_fini(&got);
}
