/* test_tracker.c -- trackers: every row of the table on a known record, and what a slow or broken one may
 * do. */
#include "track_test.h"
#include "track/track_int.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <stddef.h>
#include <sys/stat.h>

#include "track/tracker.h"
#include "tf_read.h"

static const co_run_facts facts = {
    .dir = "run", .run_id = "r", .task = "t", .config = "run/config.yaml", .host = "here"};

/* The record that every tracker gets: scalars, one of them again after a resume, and lines that are not
 * scalars. */
static const char *const record[] = {
    "{\"step\":1,\"name\":\"train/loss\",\"value\":0.5,\"t\":1.5}",
    "{\"step\":1,\"name\":\"epoch\",\"value\":0,\"t\":1.5}",
    "{\"step\":2,\"name\":\"train/loss\",\"value\":0.25,\"t\":1.6}",
    "{\"step\":2,\"name\":\"val,acc\",\"value\":1e-07,\"t\":1.6}",
    "{\"step\":3,\"name\":\"train/loss\",\"value\":9,\"t\":1.7}",
    "{\"name\":\"resumed_at\",\"step\":2,\"t\":1.8}",
    "{\"step\":2,\"name\":\"train/loss\",\"value\":0.125,\"t\":1.9}",
    "{\"step\":3,\"name\":\"train/loss\",\"value\":\"nan\",\"t\":1.9}",
    "{\"step\":3,\"name\":\"epoch\",\"value\":1,\"t\":1.9}",
};

/* A page, which is gone when the tracker closes: test_prometheus.c. */
static char *shows_nothing(const char *dir)
{
    return strdup("");
}

/* What a tracker leaves in the run folder: its one file and the text in it, or a function that reads what it
 * wrote and gives a text (the caller's, free); neither for one that writes nothing. `empty` is the text for a
 * record without lines. A row for every row of co_trackers. */
static const struct {
    const char *tracker, *file, *text, *empty;
    char *(*shows)(const char *dir);
} wanted[] = {
    {"csv", "csv/metrics.csv", "step,epoch,train/loss,\"val,acc\"\n1,0,0.5,\n2,,0.125,1e-07\n3,1,nan,\n",
     "step\n"},
    {"none", NULL, NULL, NULL},
    {"mlflow", NULL, NULL, NULL}, /* no server: nothing is written */
    {"tensorboard",
     NULL, "1 train/loss 0.5\n1 epoch 0\n2 train/loss 0.125\n2 val,acc 1.00000001e-07\n3 train/loss nan\n3 epoch 1\n",
     "", tf_shows_run},
    {"prometheus", NULL, "", "", shows_nothing},
    /* the first value of (step, name) counts, and the run's own keys follow */
    {"wandb", "wandb/latest-run/files/wandb-summary.json",
     "{\"train/loss\":9,\"global_step\":3,\"_step\":3,\"_timestamp\":1.9,\"_runtime\":0.3999999999999999,"
     "\"epoch\":1,\"val,acc\":1e-07,\"_wandb\":{\"runtime\":0}}",
     "{}"},
};

static int wanted_of(const char *tracker)
{
    for (size_t i = 0; i < CO_COUNT(wanted); i++)
        if (strcmp(wanted[i].tracker, tracker) == 0)
            return (int)i;
    CHECK(false, "no case for the tracker %s: add a row to tests/track/test_tracker.c", tracker);
    return -1;
}

static const co_tracker_def *cfg_of;
static int64_t first_step; /* of the next start */

/* With the defaults of its keys. Facts and settings live as long as the tracker. */
static co_err open_in(const co_tracker_def *def, void **self, const char *dir)
{
    static max_align_t cfg[64];
    static co_run_facts here;
    static char where[64];
    snprintf(where, sizeof where, "%s", dir);
    here = facts;
    here.dir = where;
    here.first_step = first_step;
    CHECK(def->cfg_size <= sizeof cfg, "%s: %zu bytes of settings", def->name, def->cfg_size);
    if (!cfg_of || cfg_of != def) {
        if (cfg_of && cfg_of->options)
            co_options_fini(cfg_of->options, cfg);
        cfg_of = NULL;
        if (def->options)
            CO_TRY(co_options_default(def->options, cfg));
        cfg_of = def;
    }
    return def->open(self, &here, cfg);
}

/* Line k of the record. */
static void take_line(const co_tracker_def *def, void *self, size_t k, bool replayed)
{
    const char *text = record[k];
    json_t *v;
    int64_t end = 0;
    for (size_t i = 0; i <= k; i++)
        end += (int64_t)strlen(record[i]) + 1;
    CHECK_OK(co_json_parse(&v, text, strlen(text), "line"));
    CHECK_OK(def->take(
        self,
        &(co_record_line){.text = text, .len = strlen(text), .json = v, .replayed = replayed, .end = end}));
    json_decref(v);
}

static void check_output(const char *dir, int row, const char *text)
{
    const char *file = wanted[row].file;
    char path[256];
    if (wanted[row].shows) {
        char *shown = wanted[row].shows(dir);
        CHECK(strcmp(shown, text) == 0, "%s of %s shows:\n%s\nwanted:\n%s", wanted[row].tracker, dir, shown,
              text);
        free(shown);
        return;
    }
    if (!file) {
        test_run r = test_sh("ls -A %s | grep -v -e events.jsonl -e lease.json", dir);
        CHECK(!*r.out, "%s has %s", dir, r.out);
        return;
    }
    snprintf(path, sizeof path, "%s/%s", dir, file);
    char *got = slurp(path);
    CHECK(strcmp(got, text) == 0, "%s:\n%s\nwanted:\n%s", path, got, text);
    co_free(got);
}

TEST(every_tracker_makes_of_a_known_record_what_is_expected)
{
    for (int i = 0; co_trackers[i]; i++) {
        const co_tracker_def *def = co_trackers[i];
        int want = wanted_of(def->name);
        void *self;
        CHECK(def->help && *def->help, "%s has no help", def->name);
        CHECK(mkdir(def->name, 0777) == 0, "mkdir %s", def->name);
        CHECK_OK(open_in(def, &self, def->name));
        CHECK_OK(def->flush(self));
        check_output(def->name, want, wanted[want].empty);
        for (size_t k = 0; k < CO_COUNT(record); k++) {
            take_line(def, self, k, false);
            if (k == 3)
                CHECK_OK(def->flush(self)); /* a flush in the middle changes nothing */
        }
        CHECK_OK(def->flush(self));
        check_output(def->name, want, wanted[want].text);
        def->close(self);
    }
}

TEST(a_tracker_opened_on_a_record_that_has_lines_gives_what_one_run_would)
{
    for (int i = 0; co_trackers[i]; i++) {
        const co_tracker_def *def = co_trackers[i];
        int want = wanted_of(def->name);
        for (size_t cut = 0; cut <= CO_COUNT(record); cut++) {
            char dir[64];
            void *self;
            snprintf(dir, sizeof dir, "%s-%zu", def->name, cut);
            CHECK(mkdir(dir, 0777) == 0, "mkdir %s", dir);
            for (int start = 0; start < 2; start++) {
                first_step = start ? 1000 : 0; /* so that no line of the first start is recorded again */
                CHECK_OK(open_in(def, &self, dir));
                for (size_t k = 0; k < (start ? CO_COUNT(record) : cut); k++)
                    take_line(def, self, k, start && k < cut);
                CHECK_OK(def->flush(self));
                def->close(self);
            }
            check_output(dir, want, wanted[want].text);
        }
    }
}

struct walk {
    const co_tracker_def *def;
    json_t *line;
};

static co_err walk_body(void *ctx)
{
    const struct walk *w = ctx;
    void *self;
    CO_TRY(open_in(w->def, &self, "."));
    co_err err =
        w->def->take(self, &(co_record_line){.text = record[0], .len = strlen(record[0]), .json = w->line});
    if (!err)
        err = w->def->flush(self);
    w->def->close(self);
    return err;
}

TEST(a_tracker_without_memory_says_so_and_leaks_nothing)
{
    struct walk w;
    CHECK_OK(co_json_parse(&w.line, record[0], strlen(record[0]), "line"));
    for (int i = 0; (w.def = co_trackers[i]); i++)
        if (strcmp(w.def->name, "none") != 0) /* it allocates nothing */
            test_each_alloc_fails(walk_body, &w);
    json_decref(w.line);
}

/* --- through the pump ----------------------------------------------------------------------------------- */
static char told[2048];
static int times_told;
static void remember(void *ctx, const char *text)
{
    times_told++;
    snprintf(told, sizeof told, "%s", text);
}

TEST(the_pump_hands_every_line_over_once_and_in_order)
{
    const co_tracker_pick defs[] = {{&csv_def, &(int){0}}, {&none_def}};
    co_folder *f;
    co_tracking *t;
    CHECK_OK(co_folder_open(&f, "run", "t"));
    CHECK_OK(co_tracking_open(&t, f, &facts, defs, 2));
    for (int i = 1; i <= 5000; i++) {
        co_event_scalar(f, i, "loss", i);
        if (i % 100 == 0) {
            CHECK_OK(co_events_flush(f));
            co_tracking_more(t);
        }
    }
    co_tracking_close(t, 30, remember, NULL);
    CHECK(!times_told, "%s", told);
    test_run r = test_sh(
        "awk -F, 'NR == 1 || $1 != NR - 1 || $2 != NR - 1' run/csv/metrics.csv; wc -l < run/csv/metrics.csv");
    CHECK(strcmp(r.out, "step,loss\n5001\n") == 0, "%s", r.out);
    co_folder_close(f);
}

TEST(lines_that_are_cut_or_too_long_or_no_objects_are_passed_over)
{
    const co_tracker_pick defs[] = {{&csv_def, &(int){0}}, {&none_def}};
    co_folder *f;
    co_tracking *t;
    co_str s = {0};
    CHECK_OK(co_fs_mkdirs("run"));
    co_str_add(&s, "not json\n[1]\n{\"step\":1}\n{\"step\":\"x\",\"name\":\"a\",\"value\":1}\n\n");
    for (int i = 0; i < (1 << 20) + 5; i++) /* longer than any event */
        co_str_add(&s, "x");
    co_str_add(&s, "\n{\"step\":7,\"name\":\"a\",\"value\":1}\n{\"step\":8,\"na");
    CHECK_OK(co_fs_write_atomic("run/events.jsonl", co_str_text(&s), s.len));
    CHECK_OK(co_folder_open(&f, "run", "t"));
    CHECK_OK(co_tracking_open(&t, f, &facts, defs, 1));
    co_tracking_close(t, 30, remember, NULL);
    CHECK(!times_told, "%s", told);
    char *text = slurp("run/csv/metrics.csv");
    CHECK(!strcmp(text, "step,a\n7,1\n"), "%s", text);
    co_free(text);
    co_folder_close(f);
    co_str_fini(&s);
}

/* A tracker runs in a process of its own: what it counts is in memory that both see. */
static struct {
    int old, fresh;
} * lines;
static co_err count_open(void **out, const co_run_facts *run, const void *cfg)
{
    *out = NULL;
    return CO_OK;
}
static co_err count_take(void *self, const co_record_line *line)
{
    if (line->replayed && lines->fresh)
        return co_fail(CO_EFAIL, "a replayed line after a new one");
    lines->old += line->replayed;
    lines->fresh += !line->replayed;
    return CO_OK;
}
static co_err count_flush(void *self)
{
    return CO_OK;
}
static void count_close(void *self) {}
static const co_tracker_def counting = {"counting", "", count_open, count_take, count_flush, count_close};

TEST(lines_from_before_this_start_come_first_and_are_marked)
{
    const co_tracker_pick defs[] = {{&counting}};
    lines = mmap(NULL, sizeof *lines, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(lines != MAP_FAILED, "mmap");
    for (int start = 1; start <= 3; start++) {
        co_folder *f;
        co_tracking *t;
        lines->old = lines->fresh = 0;
        CHECK_OK(co_folder_open(&f, "run", "t"));
        CHECK_OK(co_tracking_open(&t, f, &facts, defs, 1));
        for (int i = 0; i < 10; i++)
            co_event_scalar(f, i, "loss", 1);
        CHECK_OK(co_events_flush(f));
        co_tracking_close(t, 30, remember, NULL);
        CHECK(!times_told && lines->old == 10 * (start - 1) && lines->fresh == 10,
              "start %d: %d old, %d new; %s", start, lines->old, lines->fresh, told);
        co_folder_close(f);
    }
}

/* A tracker that waits for ever in take, like one whose server does not answer. */
static sem_t never;
static co_err stuck_take(void *self, const co_record_line *line)
{
    while (sem_wait(&never) != 0)
        ;
    return CO_OK;
}
static const co_tracker_def stuck = {"stuck", "", count_open, stuck_take, count_flush, count_close};

static co_err broken_take(void *self, const co_record_line *line)
{
    return co_fail(CO_EIO, "the server said no");
}
static const co_tracker_def broken = {"broken", "", count_open, broken_take, count_flush, count_close};

TEST(a_stuck_tracker_costs_the_supervisor_nothing_and_is_left_at_the_end)
{
    const co_tracker_pick defs[] = {{&stuck}, {&csv_def, &(int){0}}};
    co_folder *f;
    co_tracking *t;
    CHECK(sem_init(&never, 0, 0) == 0, "sem_init");
    CHECK_OK(co_folder_open(&f, "run", "t"));
    CHECK_OK(co_tracking_open(&t, f, &facts, defs, 2));
    double before = co_now_s();
    for (int i = 0; i < 200; i++) {
        co_event_scalar(f, i, "loss", 1);
        CHECK_OK(co_events_flush(f));
        co_tracking_more(t);
        co_tracking_troubles(t, remember, NULL);
    }
    CHECK(co_now_s() - before < 10 && !times_told, "took %g s; told: %s", co_now_s() - before, told);
    co_tracking_close(t, 3, remember, NULL);
    CHECK(times_told == 1 && test_contains(told, "logger=stuck was dropped: it had not finished 3 s after"),
          "%s", told);
    CHECK(co_fs_exists("run/csv/metrics.csv"), "the other one is done all the same");
    co_folder_close(f);
}

static bool is_told(void *tracking)
{
    co_tracking_troubles(tracking, remember, NULL);
    return times_told > 0;
}

TEST(a_tracker_that_fails_is_dropped_with_one_warning)
{
    const co_tracker_pick defs[] = {{&broken}, {&csv_def, &(int){0}}};
    co_folder *f;
    co_tracking *t;
    CHECK_OK(co_folder_open(&f, "run", "t"));
    CHECK_OK(co_tracking_open(&t, f, &facts, defs, 2));
    co_event_scalar(f, 1, "loss", 1);
    CHECK_OK(co_events_flush(f));
    co_tracking_more(t);
    test_until(is_told, t, 30, "the warning");
    co_event_scalar(f, 2, "loss", 1);
    CHECK_OK(co_events_flush(f));
    co_tracking_close(t, 30, remember, NULL);
    CHECK(times_told == 1 &&
              test_contains(told, "logger=broken was dropped: the server said no; events.jsonl"),
          "%d: %s", times_told, told);
    char *text = slurp("run/csv/metrics.csv");
    CHECK(!strcmp(text, "step,loss\n1,1\n2,1\n"), "%s", text);
    co_free(text);
    co_folder_close(f);
}

static co_err crashing_take(void *self, const co_record_line *line)
{
    raise(SIGKILL);
    return CO_OK;
}
static const co_tracker_def crashing = {"crashing", "", count_open, crashing_take, count_flush, count_close};

TEST(a_tracker_that_crashes_costs_the_run_nothing_and_its_death_is_reported)
{
    const co_tracker_pick defs[] = {{&crashing}, {&csv_def, &(int){0}}};
    co_folder *f;
    co_tracking *t;
    CHECK_OK(co_folder_open(&f, "run", "t"));
    CHECK_OK(co_tracking_open(&t, f, &facts, defs, 2));
    co_event_scalar(f, 1, "loss", 1);
    CHECK_OK(co_events_flush(f));
    co_tracking_close(t, 30, remember, NULL);
    CHECK(times_told == 1 &&
              test_contains(told, "logger=crashing was dropped: its process ended: killed by SIGKILL"),
          "%s", told);
    char *text = slurp("run/csv/metrics.csv");
    CHECK(!strcmp(text, "step,loss\n1,1\n"), "%s", text);
    co_free(text);
    co_folder_close(f);
}

TEST(a_tracker_writes_nothing_into_a_folder_that_another_run_has_taken)
{
    const co_tracker_pick defs[] = {{&csv_def, &(int){0}}, {&none_def}};
    co_folder *f;
    co_tracking *t;
    json_t *v;
    CHECK_OK(co_folder_open(&f, "run", "t"));
    CHECK_OK(co_tracking_open(&t, f, &facts, defs, 1));
    co_event_scalar(f, 1, "loss", 1);
    CHECK_OK(co_events_flush(f));
    CHECK_OK(co_json_read(&v, "run/lease.json", 1 << 16));
    json_object_set_new(v, "run_id", json_string("another"));
    CHECK_OK(co_json_write(v, "run/lease.json"));
    json_decref(v);
    co_tracking_close(t, 30, remember, NULL);
    CHECK(times_told == 1 && test_contains(told, "was taken over by pid"), "%s", told);
    CHECK(!co_fs_exists("run/csv"), "it wrote");
    co_folder_close(f);
}

static bool always_stop(void *self)
{
    return true;
}
static const co_tracker_def stopping = {
    "stopping", "", count_open, count_take, count_flush, count_close, .wants_stop = always_stop};

/* The feed says it while it reads the last lines. A signal for it would have every other feed killed. */
TEST(a_stop_that_a_tracker_hears_of_when_the_run_has_ended_is_nobody_s_business)
{
    const co_tracker_pick defs[] = {{&stopping}, {&csv_def, &(int){0}}};
    co_folder *f;
    co_tracking *t;
    lines = mmap(NULL, sizeof *lines, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK_OK(co_folder_open(&f, "run", "t"));
    CHECK_OK(co_tracking_open(&t, f, &facts, defs, 2));
    co_tracking_on_stop(t, remember, NULL);
    co_event_scalar(f, 1, "loss", 1);
    CHECK_OK(co_events_flush(f));
    co_tracking_close(t, 30, remember, NULL);
    CHECK(!times_told, "%s", told);
    CHECK(co_fs_exists("run/csv/metrics.csv"), "the other tracker was not killed");
    co_folder_close(f);
}
