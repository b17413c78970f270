/* histograms.c -- logger.histograms: the distribution of each weight, from checkpoints.
 *
 * A process of its own reads the checkpoint that was just saved, so neither the ranks nor the supervisor compute
 * anything. It writes lines of the record into memory that it shares with the supervisor, which appends them when it
 * has ended. A checkpoint that comes while it is busy, or too soon after the last one, is passed over.
 *
 * 64 buckets of one width from the smallest to the largest value. Gradients have no such histograms: they are summed
 * into buffers that are used again before anybody could read them.
 */
#include "cli/train_int.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "proc/crew.h"
#include "tensor/safetensors.h"

enum { BUCKETS = 64, TENSORS_MOST = 2000, READ = 16384, END_MS = 5000, LINES_MOST = 64 << 20 };

struct histogram {
    double lo, hi, sum, squares; /* lo, hi: smallest and largest */
    int64_t num, not_finite, counts[BUCKETS];
    double from, width; /* of the buckets */
};

static void see_range(struct histogram *h, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double v = (double)x[i];
        if (!isfinite(v)) {
            h->not_finite++;
            continue;
        }
        h->lo = h->num == 0 || v < h->lo ? v : h->lo;
        h->hi = h->num == 0 || v > h->hi ? v : h->hi;
        h->sum += v;
        h->squares += v * v;
        h->num++;
    }
}

static void count(struct histogram *h, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            continue;
        double at = ((double)x[i] - h->from) / h->width;
        h->counts[at < 0 ? 0 : at >= BUCKETS ? BUCKETS - 1 : (int)at]++;
    }
}

/* Passes over the tensor's numbers. */
static co_err each_part(co_st_file *file, const co_st_tensor *t, struct histogram *h,
                        void (*use)(struct histogram *, const float *, size_t))
{
    static float part[READ];
    size_t n = (size_t)co_shape_count(&t->shape);

    for (size_t at = 0; at < n; at += READ) {
        size_t some = n - at < READ ? n - at : READ;
        CO_TRY(co_st_read(file, t, at * sizeof *part, part, some * sizeof *part));
        use(h, part, some);
    }
    return CO_OK;
}

static void print(co_str *out, int64_t step, const char *name, const struct histogram *h)
{
    const struct {
        const char *key;
        double value;
    } reals[] = {{"sum", h->sum}, {"sum_squares", h->squares}, {"min", h->lo}, {"max", h->hi}};

    co_str_addf(out, "{\"step\":%lld,\"name\":\"weights/%s\",\"histogram\":{\"edges\":[", (long long)step,
                name);
    for (int i = 0; i <= BUCKETS; i++) {
        co_str_add(out, i ? "," : "");
        co_str_addf64(out, h->from + h->width * i);
    }
    co_str_add(out, "],\"counts\":[");
    for (int i = 0; i < BUCKETS; i++)
        co_str_addf(out, "%s%lld", i ? "," : "", (long long)h->counts[i]);
    co_str_addf(out, "],\"num\":%lld", (long long)h->num);
    for (size_t i = 0; i < CO_COUNT(reals); i++) {
        co_str_addf(out, ",\"%s\":", reals[i].key);
        co_str_addf64(out, reals[i].value);
    }
    if (h->not_finite)
        co_str_addf(out, ",\"not_finite\":%lld", (long long)h->not_finite);
    co_str_add(out, "}}\n");
}

static co_err add_tensor(co_str *out, co_st_file *file, const co_st_tensor *t, int64_t step)
{
    struct histogram h = {0};

    if (t->dtype != CO_F32 || strpbrk(t->name, "\"\\"))
        return CO_OK;
    CO_TRY(each_part(file, t, &h, see_range));
    if (h.num == 0)
        return CO_OK;
    double room = h.hi > h.lo ? 0 : h.hi != 0 ? fabs(h.hi) / 2 : 0.5; /* all the same: around it */
    h.from = h.lo - room;
    h.width = (h.hi + room - h.from) / BUCKETS;
    CO_TRY(each_part(file, t, &h, count));
    print(out, step, t->name, &h);
    return co_str_err(out);
}

/* In the child. */
static int histograms_main(void *ctx)
{
    const training *s = ctx;
    char path[1100];
    co_st_file *file;
    co_str out = {0};

    snprintf(path, sizeof path, "%s/model.safetensors", s->histogram.path);
    if (co_st_open(&file, path) != CO_OK)
        return 1; /* it was pruned already */
    co_err err = CO_OK;
    for (int i = 0; i < co_st_count(file) && i < TENSORS_MOST && !err; i++)
        err = add_tensor(&out, file, co_st_at(file, i), s->histogram.step);
    if (!err)
        err = co_fs_write_all(s->histogram.lines, co_str_text(&out), out.len, "histograms");
    return err ? 1 : 0;
}

void histograms_begin(training *s, int64_t step, const char *checkpoint)
{
    int64_t every = app_histograms(&s->app);

    if (every <= 0 || s->histogram.pid || (s->histogram.last && step - s->histogram.last < every))
        return;
    s->histogram.step = step;
    snprintf(s->histogram.path, sizeof s->histogram.path, "%s", checkpoint);
    s->histogram.lines = memfd_create("histograms", MFD_CLOEXEC);
    if (s->histogram.lines < 0)
        return;
    co_child_spec spec = {.main = histograms_main, .ctx = s};
    co_fds_add(&spec.keep, s->histogram.lines);
    if (co_child_start(&s->histogram.pid, &s->histogram.pidfd, &spec) == CO_OK) {
        s->histogram.last = step;
        return;
    }
    co_errclear();
    s->histogram.pid = 0;
    close(s->histogram.lines);
}

static void record_lines(training *s)
{
    off_t size = lseek(s->histogram.lines, 0, SEEK_END);
    char *text = size > 0 && size < LINES_MOST
                     ? mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, s->histogram.lines, 0)
                     : MAP_FAILED;

    if (text == MAP_FAILED)
        return;
    for (const char *at = text, *end = text + size, *stop; (stop = memchr(at, '\n', (size_t)(end - at)));
         at = stop + 1) {
        json_t *event;
        if (co_json_parse(&event, at, (size_t)(stop - at), "histogram") == CO_OK)
            co_event_json(s->folder, event);
    }
    munmap(text, (size_t)size);
}

static void finish(training *s, int timeout_ms)
{
    struct pollfd p = {.fd = s->histogram.pidfd, .events = POLLIN};
    int status = 1;

    if (!s->histogram.pid || poll(&p, 1, timeout_ms) <= 0)
        return;
    while (waitpid(s->histogram.pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status == 0)
        record_lines(s);
    close(s->histogram.pidfd);
    close(s->histogram.lines);
    s->histogram.pid = 0;
}

void histograms_turn(training *s)
{
    finish(s, 0);
}

void histograms_end(training *s)
{
    finish(s, END_MS);
    if (!s->histogram.pid)
        return;
    kill(s->histogram.pid, SIGKILL); /* one that the kernel holds is left behind */
    finish(s, 1000);
}
