/* test_run_read.c -- the reader of run folders: rules of the record, growth, limits, garbage. */
#include "track_test.h"

#include <math.h>
#include <sys/stat.h>

#include "track/run_read.h"
#include "track/run_read_int.h"

static void append(const char *text)
{
    FILE *f = fopen("run/events.jsonl", "a");

    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "append");
}

static void replace(const char *path, const char *text)
{
    CHECK_OK(co_fs_write_atomic(path, text, strlen(text)));
}

static co_run *open_run(const char *record, const co_run_limits *limits)
{
    co_run *run;

    mkdir("run", 0777);
    append(record);
    CHECK_OK(co_run_open(&run, "run", limits));
    return run;
}

static const co_series *series_of(const co_run *run, const char *name)
{
    const co_series *s = co_run_series(run, name);

    CHECK(s, "there is no %s", name);
    return s;
}

static void check_points(const co_run *run, const char *name, const char *wanted)
{
    const co_series *s = series_of(run, name);
    co_str got = {0};

    for (size_t i = 0; i < s->n; i++)
        co_str_addf(&got, "%lld:%g ", (long long)s->point[i].step, s->point[i].value);
    CHECK(strcmp(co_str_text(&got), wanted) == 0, "%s: %s wanted %s", name, co_str_text(&got), wanted);
    co_str_fini(&got);
}

TEST(the_run_reader_takes_the_last_line_of_a_step)
{
    co_run *run = open_run("{\"step\":1,\"name\":\"a\",\"value\":1,\"t\":1.5}\n"
                           "{\"step\":2,\"name\":\"a\",\"value\":2,\"t\":2.5}\n"
                           "{\"step\":3,\"name\":\"a\",\"value\":3,\"t\":3.5}\n"
                           "{\"name\":\"resumed_at\",\"step\":1,\"t\":4.5}\n"
                           "{ \"step\": 2, \"name\": \"a\", \"value\": \"nan\", \"t\": 5.5, \"more\": [] }\n"
                           "{\"step\":4,\"name\":\"a\",\"value\":-4e-07,\"t\":6.5}\n",
                           NULL);

    check_points(run, "a", "1:1 2:nan 3:3 4:-4e-07 ");
    CHECK(series_of(run, "a")->lines == 5, "lines %lld", (long long)series_of(run, "a")->lines);
    CHECK(!co_run_series(run, "b"), "no b");
    CHECK(co_run_event_count(run) == 1, "events %zu", co_run_event_count(run));
    CHECK(strcmp(co_json_str(co_run_event(run, 0), "name"), "resumed_at") == 0, "event");
    CHECK(co_run_first_t(run) == 1.5 && co_run_last_t(run) == 6.5, "times");
    CHECK(co_series_least(series_of(run, "a"))->step == 4, "least");
    CHECK(co_series_greatest(series_of(run, "a"))->step == 3, "greatest");
    co_run_close(run);
}

TEST(the_run_reader_keeps_clock_measures_by_time)
{
    co_run *run = open_run("{\"step\":7,\"name\":\"system/load\",\"value\":1,\"t\":1.5}\n"
                           "{\"step\":7,\"name\":\"system/load\",\"value\":2,\"t\":2.5}\n"
                           "{\"step\":3,\"name\":\"system/load\",\"value\":3,\"t\":3.5}\n",
                           NULL);

    check_points(run, "system/load", "7:1 7:2 3:3 ");
    co_run_close(run);
}

TEST(the_run_reader_follows_a_growing_record_and_waits_for_the_end_of_a_line)
{
    co_run *run = open_run("{\"step\":1,\"name\":\"a\",\"value\":1,\"t\":1}\n{\"step\":2,\"na", NULL);

    check_points(run, "a", "1:1 ");
    CHECK_OK(co_run_more(run));
    check_points(run, "a", "1:1 ");
    append("me\":\"a\",\"value\":2,\"t\":2}\n");
    CHECK_OK(co_run_more(run));
    check_points(run, "a", "1:1 2:2 ");
    CHECK(co_run_bad_lines(run) == 0, "bad lines");
    CHECK(!co_run_summary(run) && co_run_state_of(run) == CO_RUN_KILLED, "no summary and no lease: killed");
    replace("run/summary.json", "{\"status\":\"done\",\"hosts\":[{\"name\":\"h1\"}]}");
    CHECK_OK(co_run_more(run));
    CHECK(co_run_state_of(run) == CO_RUN_DONE, "done");
    CHECK(co_run_host_count(run) == 1 && strcmp(co_run_host(run, 0), "h1") == 0, "hosts");
    co_run_close(run);
}

TEST(the_run_reader_begins_again_if_the_record_is_replaced)
{
    co_run *run = open_run("{\"step\":1,\"name\":\"a\",\"value\":1,\"t\":1}\n", NULL);

    replace("run/events.jsonl", "{\"step\":9,\"name\":\"b\",\"value\":9,\"t\":9}\n");
    CHECK_OK(co_run_more(run));
    CHECK(!co_run_series(run, "a"), "a is gone");
    check_points(run, "b", "9:9 ");
    co_run_close(run);
}

TEST(the_run_reader_skips_garbage_and_says_how_much)
{
    co_run *run = open_run("hello\n\n[1,2]\n{\"step\":1,\"name\":\"a\",\"value\":1,\"t\":1}\n\xff\xfe\n"
                           "{\"step\":01,\"name\":\"a\",\"value\":1,\"t\":1}\n{\"step\":2,\"name\":\"a\"\n"
                           "{\"step\":3,\"name\":\"a\",\"value\":{},\"t\":1}\n",
                           NULL);

    check_points(run, "a", "1:1 ");
    CHECK(co_run_bad_lines(run) == 5, "bad lines: %lld", (long long)co_run_bad_lines(run));
    CHECK(co_run_event_count(run) == 1, "an object without a value is an event");
    co_run_close(run);
}

TEST(the_run_reader_refuses_what_is_no_run_folder)
{
    co_run *run;

    CHECK_FAILS(co_run_open(&run, "nowhere", NULL), CO_EINPUT, "does not exist");
    mkdir("empty", 0777);
    CHECK_FAILS(co_run_open(&run, "empty", NULL), CO_EINPUT, "is no run folder");
    mkdir("odd", 0777);
    CHECK(symlink("/dev/zero", "odd/events.jsonl") == 0 && mkfifo("odd/header.json", 0600) == 0, "odd");
    CHECK_OK(co_run_open(&run, "odd", NULL)); /* neither is read */
    CHECK(co_run_series_count(run) == 0 && !co_run_header(run), "nothing");
    co_run_close(run);
}

TEST(a_long_series_is_thinned_and_keeps_its_extremes)
{
    enum { N = 300000, LOW = 123456, HIGH = 234567 };
    const co_run_limits limits = {.points = 1000, .events = 10};
    co_str lines = {0};

    for (int i = 1; i <= N; i++)
        co_str_addf(&lines, "{\"step\":%d,\"name\":\"loss\",\"value\":%d,\"t\":%d.25}\n", i,
                    i == LOW    ? -5
                    : i == HIGH ? 5000
                                : i % 100,
                    i);
    double began = co_now_s();
    co_run *run = open_run(co_str_text(&lines), &limits);
    const co_series *s = series_of(run, "loss");
    test_note("%d lines read in %.0f ms", N, 1e3 * (co_now_s() - began));
    CHECK(s->n <= 1000 && s->n > 200 && s->thinned && s->lines == N, "n %zu", s->n);
    CHECK(co_series_least(s)->step == LOW && co_series_greatest(s)->step == HIGH, "extremes");
    CHECK(s->point[0].step == 1 && s->point[s->n - 1].step == N, "ends");
    int64_t widest = 0;
    for (size_t i = 1; i < s->n; i++) {
        int64_t gap = s->point[i].step - s->point[i - 1].step;
        CHECK(gap > 0, "order");
        widest = gap > widest ? gap : widest;
    }
    CHECK(widest < N / 50, "all parts are equally fine; the widest gap is %lld", (long long)widest);
    co_run_close(run);
    co_str_fini(&lines);
}

/* Numbers of every length, as the record has them: the quick reader rounds as strtod does. */
TEST(the_run_reader_rounds_numbers_of_every_length_as_strtod_does)
{
    uint64_t state = 11;
    static const char *const hard[] = {
        "9007199254740993.0", "0.3",  "0.1000000000000000055", "1844674407370955.161", "4503599627370497.5",
        "4503599627370498.5", "-0.0", "999999999999999.9999"};

    for (int i = 0; i < 50000; i++) {
        char number[32], line[96];
        int digits = 1 + (int)(test_u32(&state) % 18), point = (int)(test_u32(&state) % (unsigned)digits);
        size_t n = 0;
        if (test_u32(&state) % 2)
            number[n++] = '-';
        number[n++] = (char)(point ? '1' + test_u32(&state) % 9 : '0');
        for (int k = 1; k <= digits; k++) {
            if (k == (point ? point : 1))
                number[n++] = '.';
            number[n++] = (char)('0' + test_u32(&state) % 10);
        }
        number[n] = '\0';
        const char *text = i < (int)CO_COUNT(hard) ? hard[i] : number;
        snprintf(line, sizeof line, "{\"step\":1,\"name\":\"a\",\"value\":%s,\"t\":1}", text);
        scalar s;
        double want = strtod(text, NULL);
        CHECK(scalar_line_read(&s, line, strlen(line)), "%s", line);
        CHECK(memcmp(&s.at.value, &want, sizeof want) == 0, "%s: %.17g, wanted %.17g", text, s.at.value, want);
    }
}

TEST(the_run_reader_stops_when_its_time_is_over_and_goes_on_with_the_next_call)
{
    enum { N = 100000 };
    const co_run_limits limits = {.points = 1000, .most_ms = 1};
    co_str lines = {0};
    int calls = 1;
    double share = 0;

    for (int i = 1; i <= N; i++)
        co_str_addf(&lines, "{\"step\":%d,\"name\":\"loss\",\"value\":%d.5,\"t\":%d.25}\n", i, i % 100, i);
    co_run *run = open_run(co_str_text(&lines), &limits);
    for (; co_run_share_read(run) < 1; calls++) {
        const co_series *part = series_of(run, "loss");
        CHECK(part->point[part->n - 1].step == part->lines && co_run_share_read(run) > share, "it grows");
        share = co_run_share_read(run);
        CHECK_OK(co_run_more(run));
    }
    CHECK(calls > 2 && series_of(run, "loss")->lines == N, "%d calls, %lld lines", calls,
          (long long)series_of(run, "loss")->lines);
    test_note("%d lines read in %d calls", N, calls);
    co_run_close(run);
    co_str_fini(&lines);
}

TEST(of_many_events_the_run_reader_keeps_the_newest_and_of_long_ones_the_head)
{
    const co_run_limits limits = {.events = 3};
    co_str lines = {0};

    for (int i = 0; i < 5; i++)
        co_str_addf(&lines, "{\"name\":\"recovery\",\"step\":%d,\"t\":1}\n", i);
    co_str_add(&lines, "{\"name\":\"picture\",\"step\":9,\"t\":2,\"png\":\"");
    for (int i = 0; i < 100000; i++)
        co_str_add(&lines, "A");
    co_str_add(&lines, "\"}\n");
    co_run *run = open_run(co_str_text(&lines), &limits);
    long long step = 0;
    CHECK(co_run_event_count(run) == 3 && co_run_events_dropped(run) == 3, "kept");
    CHECK(co_json_i64(co_run_event(run, 0), "step", &step) && step == 3, "step %lld", step);
    CHECK(json_object_get(co_run_event(run, 2), "left_out_bytes") &&
              !json_object_get(co_run_event(run, 2), "png"),
          "the long one keeps its head");
    co_run_close(run);
    co_str_fini(&lines);
}

TEST(pictures_histograms_and_tables_are_not_among_the_events_of_the_run_reader)
{
    const co_run_limits limits = {.events = 2};
    co_run *run = open_run("{\"name\":\"recovery\",\"step\":1,\"t\":1}\n"
                           "{\"name\":\"a\",\"step\":1,\"image\":{\"file\":\"a.png\"},\"t\":2}\n"
                           "{\"name\":\"b\",\"step\":1,\"histogram\":{\"edges\":[]},\"t\":3}\n"
                           "{\"name\":\"c\",\"step\":1,\"table\":{\"file\":\"a.json\"},\"t\":4}\n"
                           "{\"name\":\"note\",\"step\":1,\"image\":\"a word\",\"t\":3}\n",
                           &limits);

    CHECK(co_run_event_count(run) == 2 && co_run_events_dropped(run) == 0 && co_run_bad_lines(run) == 0,
          "kept");
    CHECK(strcmp(co_json_str(co_run_event(run, 0), "name"), "recovery") == 0, "the first stays");
    CHECK(co_run_last_t(run) == 4, "their times count");
    co_run_close(run);
}

static co_err open_and_close(void *ctx)
{
    co_run *run;

    (void)ctx;
    CO_TRY(co_run_open(&run, "run", NULL));
    co_run_close(run);
    return CO_OK;
}

TEST(the_run_reader_survives_every_failed_allocation)
{
    co_run_close(open_run("{\"step\":1,\"name\":\"a\",\"value\":1,\"t\":1}\n{\"name\":\"x\"}\n", NULL));
    replace("run/header.json", "{\"format\":1}");
    test_each_alloc_fails(open_and_close, NULL);
}
