/* test_tensorboard.c -- TensorBoard's event files: bytes, restarts, cuts, and what TensorBoard itself
 * reads. */
#include "track_test.h"
#include "track/track_int.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/proto.h"
#include "tf_read.h"
#include "track/tfrecord_int.h"

TEST(crc32c_and_records_are_those_of_the_format)
{
    CHECK(tf_crc32c("123456789", 9) == 0xe3069283u, "%08x", tf_crc32c("123456789", 9));
    co_str event = {0}, out = {0};
    char hex[128] = "";
    co_proto_f64(&event, 1, 2.0);
    co_proto_int(&event, 2, 7);
    size_t summary = co_proto_begin(&event, 5), value = co_proto_begin(&event, 1);
    co_proto_text(&event, 1, "loss");
    co_proto_f32(&event, 2, 0.5f);
    co_proto_end(&event, value);
    co_proto_end(&event, summary);
    tfrecord_add(&out, co_str_text(&event), event.len);
    for (size_t i = 0; i < out.len; i++)
        snprintf(hex + 2 * i, 3, "%02x", (unsigned char)out.p[i]);
    CHECK(
        !strcmp(hex, "1a00000000000000129bd82d09000000000000004010072a0d0a0b0a046c6f7373150000003fc33fc24a"),
        "%s", hex);
    const char *payload;
    size_t len;
    CHECK(tfrecord_get(&payload, &len, out.p, out.len) == out.len && len == event.len, "it reads back");
    for (size_t cut = 0; cut < out.len; cut++)
        CHECK(tfrecord_get(&payload, &len, out.p, cut) == 0, "cut at %zu", cut);
    for (size_t i = 0; i < out.len; i++) {
        out.p[i] ^= 16;
        CHECK(tfrecord_get(&payload, &len, out.p, out.len) == 0, "byte %zu changed", i);
        out.p[i] ^= 16;
    }
    co_str_fini(&event);
    co_str_fini(&out);
}

/* --- a record of several starts ------------------------------------------------------------------------- */
struct start {
    int64_t first_step; /* that it continues from */
    size_t from, to;    /* its lines */
};

static char lines[64][256];
static size_t n_lines;

static void add_line(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(lines[n_lines++], sizeof lines[0], fmt, ap);
    va_end(ap);
}

/* Steps from + 1 to `to`, each with a loss, and a validation at the last one that a continued run does
 * again. */
static struct start add_start(int64_t from, int64_t to)
{
    struct start s = {from, n_lines, 0};
    add_line("{\"name\":\"run_start\",\"step\":%lld,\"config\":{\"seed\":1},\"t\":%zu.5}", (long long)from,
             n_lines);
    if (from)
        add_line("{\"step\":%lld,\"name\":\"val/loss\",\"value\":%lld.25,\"t\":%zu}", (long long)from,
                 (long long)from, n_lines);
    for (int64_t step = from + 1; step <= to; step++)
        add_line("{\"step\":%lld,\"name\":\"train/loss_step\",\"value\":%lld.5,\"t\":%zu}", (long long)step,
                 (long long)step, n_lines);
    add_line("{\"step\":%lld,\"name\":\"val/loss\",\"value\":%lld.25,\"t\":%zu}", (long long)to,
             (long long)to, n_lines);
    s.to = n_lines;
    return s;
}

static co_err run_start(const char *dir, const struct start *s, size_t upto)
{
    co_run_facts facts = {
        .dir = dir, .run_id = "r", .task = "t", .config = "none", .host = "h", .first_step = s->first_step};
    struct {
        char *dir, *name;
    } cfg = {0};
    void *self;
    int64_t end = 0;
    CO_TRY(tensorboard_def.open(&self, &facts, &cfg));
    co_err err = CO_OK;
    for (size_t k = 0; k < upto && !err; k++) {
        json_t *v;
        end += (int64_t)strlen(lines[k]) + 1;
        CHECK_OK(co_json_parse(&v, lines[k], strlen(lines[k]), "line"));
        err = tensorboard_def.take(
            self,
            &(co_record_line){
                .text = lines[k], .len = strlen(lines[k]), .json = v, .replayed = k < s->from, .end = end});
        json_decref(v);
        if (!err && k % 3 == 2)
            err = tensorboard_def.flush(self);
    }
    if (!err)
        err = tensorboard_def.flush(self);
    tensorboard_def.close(self);
    return err;
}

/* Steps 1 to 9 once each, and the validations at 4, 6 and 9. */
static void check_shown(const char *dir, const char *what)
{
    char folder[64];
    int twice;
    snprintf(folder, sizeof folder, "%s/tensorboard", dir);
    char *shown = tf_shows(folder, &twice);
    for (int step = 1; step <= 9; step++) {
        char want[64];
        snprintf(want, sizeof want, "%d train/loss_step %d.5\n", step, step);
        CHECK(test_contains(shown, want), "%s: no %s in\n%s", what, want, shown);
    }
    CHECK(test_contains(shown, "4 val/loss 4.25\n") && test_contains(shown, "6 val/loss 6.25\n") &&
              test_contains(shown, "9 val/loss 9.25\n") && !test_contains(shown, "7 val/loss"),
          "%s:\n%s", what, shown);
    CHECK(twice == 0, "%s: %d values twice\n%s", what, twice, shown);
    free(shown);
}

/* The path of the one event file, and its size. */
static int only_file(char *path, size_t room, const char *dir)
{
    char folder[64], **names;
    size_t n;
    struct stat st;
    snprintf(folder, sizeof folder, "%s/tensorboard", dir);
    CHECK_OK(co_fs_list(&names, &n, folder));
    CHECK(n == 1, "%zu files", n);
    snprintf(path, room, "%s/%s", folder, names[0]);
    CHECK(stat(path, &st) == 0 && st.st_size > 100, "%s", path);
    co_fs_list_free(names, n);
    return (int)st.st_size;
}

TEST(after_kills_and_resumes_every_value_is_shown_once_wherever_the_file_was_cut)
{
    struct start first =
        add_start(0, 7); /* killed; its checkpoint is of step 4, val/loss at 7 is not done again */
    struct start second = add_start(4, 6); /* stopped */
    struct start third = add_start(6, 9);
    char dir[32], file[256];
    /* nothing lost, then the first file cut at many bytes, and at each of the last ones, as if the tracker
     * had been killed there */
    for (int cut = -1, size = 0;; cut += cut < 0 || cut > size - 200 ? 1 : 7) {
        snprintf(dir, sizeof dir, "r%d", cut);
        CHECK(mkdir(dir, 0777) == 0, "mkdir");
        CHECK_OK(run_start(dir, &first, first.to));
        size = only_file(file, sizeof file, dir);
        if (cut >= size)
            break;
        CHECK(cut < 0 || truncate(file, cut) == 0, "truncate");
        CHECK_OK(run_start(dir, &second, second.to));
        CHECK_OK(run_start(dir, &third, third.to));
        snprintf(file, sizeof file, "cut at %d of %d", cut, size);
        check_shown(dir, file);
        if (cut >= 0)
            CHECK_OK(co_fs_remove_tree(dir));
    }
}

TEST(a_folder_with_the_events_of_another_run_is_refused)
{
    struct start s = add_start(0, 2);
    CHECK(mkdir("r", 0777) == 0, "mkdir");
    CHECK_OK(run_start("r", &s, s.to));
    snprintf(lines[0], sizeof lines[0], "{\"name\":\"run_start\",\"step\":0,\"config\":{\"seed\":2},\"t\":9}");
    CHECK_FAILS(run_start("r", &s, s.to), CO_EINPUT, "has the events of another run");
}

/* A limit on the size of files is a full disk that can be tried anywhere. */
TEST(a_full_disk_tears_no_event_and_everything_is_written_when_there_is_room_again)
{
    struct start s = add_start(0, 9);
    co_run_facts facts = {.dir = ".", .run_id = "r", .task = "t", .config = "none", .host = "h"};
    struct {
        char *dir, *name;
    } cfg = {0};
    struct rlimit all, few = {.rlim_max = RLIM_INFINITY};
    void *self;
    int64_t end = 0;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &all) == 0, "getrlimit");
    few.rlim_max = all.rlim_max;
    CHECK_OK(tensorboard_def.open(&self, &facts, &cfg));
    for (size_t k = 0; k < s.to; k++) {
        json_t *v;
        end += (int64_t)strlen(lines[k]) + 1;
        CHECK_OK(co_json_parse(&v, lines[k], strlen(lines[k]), "line"));
        co_record_line line = {.text = lines[k], .len = strlen(lines[k]), .json = v, .end = end};
        CHECK_OK(tensorboard_def.take(self, &line));
        json_decref(v);
        few.rlim_cur = 40 * k;
        CHECK(setrlimit(RLIMIT_FSIZE, &few) == 0, "setrlimit");
        co_err err = tensorboard_def.flush(self);
        CHECK(setrlimit(RLIMIT_FSIZE, &all) == 0, "setrlimit");
        CHECK(err == CO_EIO || err == CO_OK, "%d: %s", (int)err, co_errmsg());
        free(tf_shows("tensorboard", NULL)); /* it checks the sums */
        if (k % 3 == 2)
            CHECK_OK(tensorboard_def.flush(self));
    }
    CHECK_OK(tensorboard_def.flush(self));
    tensorboard_def.close(self);
    int twice;
    char *shown = tf_shows("tensorboard", &twice);
    CHECK(!twice && test_contains(shown, "1 train/loss_step 1.5\n") && test_contains(shown, "9 val/loss 9.25\n"),
          "%s", shown);
    free(shown);
}
