/* The upload: everything arrives once and in its place, whatever the service does in between. */
#include "harness.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "wandb_test.h"

static service *new_service(void)
{
    co_http *probe;
    if (co_http_open(&probe) != CO_OK)
        test_skip("%s", co_errmsg());
    co_http_close(probe);
    service *s = co_zalloc(sizeof *s);
    service_open(s, 0);
    service_use(s);
    return s;
}

static co_wandb *open_run(const char *dir, const co_wandb_cfg *cfg)
{
    co_wandb *w;
    mkdir(dir, 0777);
    CHECK_OK(co_wandb_open(&w, cfg, &(co_wandb_facts){dir, "my project", "node1"}));
    return w;
}

static void begin(co_wandb *w)
{
    json_t *config = json_pack("{sf si ss}", "optim.lr", 0.5, "data.batch_size", 64, "name", "x");
    CHECK_OK(co_wandb_begin(w, config, 1000));
    json_decref(config);
}

static void steps(co_wandb *w, int from, int to)
{
    for (int i = from; i <= to; i++) {
        CHECK_OK(co_wandb_scalar(w, i, "train/loss", 1.0 / i, 1000 + i));
        CHECK_OK(co_wandb_scalar(w, i, "lr", 0.5, 1000 + i));
        if (i % 10 == 0)
            CHECK_OK(co_wandb_stat(w, "cpu", i, 1000 + i));
    }
}

static void check_steps(const service *s, int base, int n, int first_step)
{
    CHECK(s->lines[CH_HISTORY] >= base + n, "%d lines, wanted %d", s->lines[CH_HISTORY], base + n);
    for (int i = 0; i < n; i++) {
        char want[64];
        snprintf(want, sizeof want, "{\"_step\":%d,", first_step + i);
        CHECK(s->line[CH_HISTORY][base + i] && strncmp(s->line[CH_HISTORY][base + i], want, strlen(want)) == 0,
              "line %d: %s, wanted %s", base + i, s->line[CH_HISTORY][base + i], want);
    }
}

static void drop(service *s)
{
    service_close(s);
    service_forget(s);
    co_free(s);
}

TEST(a_run_arrives_with_its_rows_figures_output_files_and_end)
{
    service *s = new_service();
    co_wandb_cfg cfg = {.group = "g", .tags = "a,b", .name = "n"};
    mkdir("r", 0777);
    test_sh("printf '[2026-11-17 13:25:22] hello\\n[2026-11-17 13:25:23] there\\n' > r/train.log");
    co_wandb *w = open_run("r", &cfg);
    begin(w);
    steps(w, 1, 100);
    CHECK_OK(co_wandb_flush(w));
    CHECK_OK(co_wandb_end(w, 0, 1200, 20));
    co_wandb_close(w);
    check_steps(s, 0, 100, 1);
    CHECK(s->lines[CH_EVENTS] == 10 && s->lines[CH_OUTPUT] == 2 && s->completes == 1 && s->exitcode == 0,
          "%d events, %d lines of output, %d ends, exit code %d", s->lines[CH_EVENTS], s->lines[CH_OUTPUT],
          s->completes, s->exitcode);
    CHECK(strcmp(s->line[CH_HISTORY][1], "{\"_step\":2,\"train/loss\":0.5,\"lr\":0.5,\"global_step\":2,"
                                         "\"_timestamp\":1002,\"_runtime\":2}") == 0,
          "%s", s->line[CH_HISTORY][1]);
    CHECK(strcmp(s->line[CH_EVENTS][0],
                 "{\"_wandb\":true,\"_timestamp\":1010,\"_runtime\":10,\"system.cpu\":10}") == 0,
          "%s", s->line[CH_EVENTS][0]);
    CHECK(test_contains(s->line[CH_OUTPUT][1], ":23.000000 there"), "%s", s->line[CH_OUTPUT][1]);
    CHECK(s->summary && test_contains(s->summary, "\"train/loss\":0.01,") &&
              test_contains(s->summary, "\"_wandb\":{\"runtime\":200}"),
          "%s", s->summary);
    CHECK(strcmp(s->uploaded, "wandb-metadata.json config.yaml wandb-summary.json output.log ") == 0 &&
              s->files == 4,
          "%d: %s", s->files, s->uploaded);
    const json_t *v = s->first_upsert;
    CHECK(strcmp(co_json_str(v, "groupName"), "g") == 0 && strcmp(co_json_str(v, "displayName"), "n") == 0 &&
              strcmp(co_json_str(v, "project"), "my project") == 0 &&
              json_array_size(json_object_get(v, "tags")) == 2 &&
              test_contains(co_json_str(v, "config"), "\"optim\":{\"value\":{\"lr\":0.5}}"),
          "%s", co_json_text(v));
    /* base64 of api:KEY */
    CHECK(test_contains(s->key, "Basic YXBpOmxvY2FsLTAx"), "%s", s->key);
    drop(s);
}

TEST(nothing_is_lost_when_the_service_is_ill_slow_or_away)
{
    service *s = new_service();
    co_wandb *w = open_run("r", &(co_wandb_cfg){0});
    begin(w);
    atomic_store(&s->answer_429, 1);
    atomic_store(&s->answer_500, 2);
    atomic_store(&s->cut, 2);
    for (int i = 0; i < 20; i++) {
        steps(w, 1 + 10 * i, 10 + 10 * i);
        CHECK_OK(co_wandb_flush(w));
        if (i == 5) { /* away, and back at the same place */
            int port = s->port;
            service_close(s);
            poll(NULL, 0, 100);
            service_open(s, port);
        }
        if (i == 10)
            atomic_store(&s->slow_ms, 20);
        if (i % 7 == 3)
            atomic_fetch_add(&s->answer_500, 1);
        if (i % 5 == 2)
            atomic_fetch_add(&s->cut, 1);
        poll(NULL, 0, 10);
    }
    CHECK_OK(co_wandb_end(w, 0, 1300, 30));
    char text[600], all[4000] = "";
    while (co_wandb_notice(w, text, sizeof text))
        strncat(all, text, sizeof all - strlen(all) - 1);
    CHECK(test_contains(all, "cannot upload: ") && test_contains(all, "it tries again") &&
              test_contains(all, "the upload goes on"),
          "%s", all);
    co_wandb_close(w);
    check_steps(s, 0, 200, 1);
    CHECK(s->completes == 1 && s->lines[CH_EVENTS] == 20, "%d %d", s->completes, s->lines[CH_EVENTS]);
    CHECK(s->gap_s >= 0.9, "Retry-After: 1, and the next request came after %g s", s->gap_s);
    drop(s);
}

TEST(a_service_that_is_away_at_the_end_is_given_up_and_sync_sends_the_rest)
{
    service *s = new_service();
    int port = s->port;
    co_wandb *w = open_run("r", &(co_wandb_cfg){0});
    begin(w);
    steps(w, 1, 10);
    CHECK_OK(co_wandb_flush(w));
    service_close(s);
    CHECK_FAILS(co_wandb_end(w, 0, 1100, 0.3), CO_ETIMEOUT, "not everything was uploaded");
    co_wandb_close(w);
    service_open(s, port);
    w = open_run("r", &(co_wandb_cfg){0}); /* what `cohort wandb sync` does */
    begin(w);
    steps(w, 1, 10);
    CHECK_OK(co_wandb_end(w, 0, 1100, 20));
    co_wandb_close(w);
    check_steps(s, 0, 10, 1);
    CHECK(s->completes == 1, "%d", s->completes);
    drop(s);
}

TEST(a_continued_run_goes_on_where_the_service_is_and_sends_no_line_twice)
{
    service *s = new_service();
    char first[64], again[64];
    for (int start = 0; start < 3; start++) {
        co_wandb *w = open_run("r", &(co_wandb_cfg){0});
        snprintf(start ? again : first, 64, "%s", w ? strrchr(co_wandb_files(w), '-') : "");
        CHECK(start == 0 || strcmp(first, again) == 0, "another id: %s, before %s", again, first);
        /* the lines of earlier starts come first; a kill repeats some */
        for (int old = 0; old < start; old++) {
            begin(w);
            steps(w, 1 + 50 * old - (old ? 20 : 0), 50 + 50 * old);
            CHECK_OK(co_wandb_end(w, 75, 1100, 0));
        }
        begin(w);
        steps(w, 1 + 50 * start - (start ? 20 : 0), 50 + 50 * start);
        CHECK_OK(co_wandb_end(w, start == 2 ? 0 : 75, 1200, 20));
        co_wandb_close(w);
    }
    check_steps(s, 0, 150, 1);
    for (int i = 0; i < 150; i++)
        CHECK(s->times[CH_HISTORY][i] == 1, "line %d came %d times", i, s->times[CH_HISTORY][i]);
    CHECK(s->completes == 3 && s->exitcode == 0, "%d %d", s->completes, s->exitcode);
    drop(s);
}

TEST(another_folder_with_the_same_id_joins_the_run_and_its_steps_if_resume_allows)
{
    service *s = new_service();
    for (int i = 0; i < 2; i++) {
        co_wandb *w = open_run(i ? "b" : "a", &(co_wandb_cfg){.id = "pod-7", .resume = CO_WANDB_ALLOW});
        begin(w);
        steps(w, 1, 5);
        CHECK_OK(co_wandb_end(w, 0, 1100, 20));
        co_wandb_close(w);
    }
    check_steps(s, 0, 5, 1);
    check_steps(s, 5, 5, 7); /* after the last step of the other, even if this one had a step 0 */
    CHECK(test_contains(s->line[CH_HISTORY][5], "\"global_step\":1,"), "%s", s->line[CH_HISTORY][5]);
    co_wandb *w = open_run("c", &(co_wandb_cfg){.id = "pod-7", .resume = CO_WANDB_NEVER});
    begin(w);
    CHECK_FAILS(co_wandb_end(w, 0, 1100, 0.3), CO_ETIMEOUT, "resume=never");
    co_wandb_close(w);
    drop(s);
}

TEST(a_key_that_is_refused_is_said_and_is_in_no_file)
{
    service *s = new_service();
    atomic_store(&s->refuse_key, 1);
    co_wandb *w = open_run("r", &(co_wandb_cfg){0});
    begin(w);
    steps(w, 1, 5);
    CHECK_FAILS(co_wandb_end(w, 0, 1100, 0.3), CO_ETIMEOUT, "the key is refused");
    char text[600];
    CHECK(co_wandb_notice(w, text, sizeof text) && test_contains(text, "cohort wandb login"), "%s", text);
    co_wandb_close(w);
    test_run r = test_sh("grep -r -e 0123456789012345 -e YXBpOmxvY2 r; find r -name '*.wandb' -size +100c");
    CHECK(test_contains(r.out, ".wandb") && !test_contains(r.out, "0123456789"), "%s", r.out);
    drop(s);
}

static bool has_files(void *ctx)
{
    return ((const service *)ctx)->files >= 3;
}

static bool has_lines(void *ctx)
{
    return ((const service *)ctx)->lines[CH_HISTORY] >= 4;
}

TEST(lines_do_not_wait_until_all_pictures_are_sent)
{
    enum { PICTURES = 40 };
    service *s = new_service();
    co_wandb *w = open_run("r", &(co_wandb_cfg){0});
    begin(w);
    test_sh("mkdir -p %s/media", co_wandb_files(w));
    atomic_store(&s->slow_ms, 20); /* 1.6 s for all pictures, which have two requests each */
    for (int i = 0; i < PICTURES; i++) {
        char name[64];
        snprintf(name, sizeof name, "media/%d.png", i);
        test_sh("echo %d > %s/%s", i, co_wandb_files(w), name);
        CHECK_OK(co_wandb_media(w, name));
    }
    test_until(has_files, s, 20, "the first files");
    steps(w, 1, 5);
    CHECK_OK(co_wandb_flush(w));
    test_until(has_lines, s, 20, "the lines");
    CHECK(s->files < PICTURES, "the lines came after all %d files", s->files);
    atomic_store(&s->slow_ms, 0);
    CHECK_OK(co_wandb_end(w, 0, 1100, 20));
    co_wandb_close(w);
    CHECK(s->files == PICTURES + 4 && s->completes == 1, "%d files, %d ends", s->files, s->completes);
    CHECK(test_contains(s->uploaded, " media/0.png ") && test_contains(s->uploaded, " media/39.png "), "%s",
          s->uploaded);
    drop(s);
}

TEST(a_run_that_is_not_uploaded_in_time_says_how_long_all_runs_had)
{
    service *s = new_service();
    co_wandb *w[2];
    atomic_store(&s->slow_ms, 30); /* so the first run takes some of the time */
    w[0] = open_run("a", &(co_wandb_cfg){0});
    setenv("WANDB_BASE_URL", "http://127.0.0.1:1", 1);
    w[1] = open_run("b", &(co_wandb_cfg){0});
    begin(w[0]);
    begin(w[1]);
    CHECK_FAILS(co_wandb_end_all(w, 2, 0, 1100, 1.5), CO_ETIMEOUT, "not everything was uploaded after 1.5 s");
    co_wandb_close(w[0]);
    co_wandb_close(w[1]);
    CHECK(s->completes == 1, "%d", s->completes);
    drop(s);
}

TEST(a_run_that_cannot_be_written_at_its_end_does_not_keep_the_others_from_ending)
{
    service *s = new_service();
    co_wandb *w[2] = {open_run("a", &(co_wandb_cfg){.id = "one"}),
                      open_run("b", &(co_wandb_cfg){.id = "two"})};
    for (int i = 0; i < 2; i++) {
        begin(w[i]);
        steps(w[i], 1, 5);
    }
    test_sh("rm -r %s", co_wandb_files(w[0]));
    CHECK_FAILS(co_wandb_end_all(w, 2, 0, 1100, 20), CO_EIO, "wandb-summary.json");
    co_wandb_close(w[0]);
    co_wandb_close(w[1]);
    const service *two = service_run(s, "two");
    CHECK(two && two->completes == 1 && two->lines[CH_HISTORY] == 5, "the second run did not end");
    drop(s);
}

/* Steps, one by one, until the answer to some line was heard. */
static bool hears_stop(co_wandb *w, int *step)
{
    for (double until_s = co_now_s() + 10; !co_wandb_stop_asked(w) && co_now_s() < until_s; poll(NULL, 0, 5)) {
        steps(w, *step, *step);
        ++*step;
        CHECK_OK(co_wandb_flush(w));
    }
    return co_wandb_stop_asked(w);
}

TEST(the_button_stop_on_the_run_s_page_is_heard_once_and_not_again_after_a_resume)
{
    service *s = new_service();
    co_wandb *w = open_run("r", &(co_wandb_cfg){0});
    int step = 1;
    begin(w);
    while (atomic_load(&s->requests) < 6) { /* the first lines were answered without it */
        steps(w, step, step);
        step++;
        CHECK_OK(co_wandb_flush(w));
        poll(NULL, 0, 5);
    }
    CHECK(!co_wandb_stop_asked(w), "nobody has asked");
    atomic_store(&s->stopped, true);
    CHECK(hears_stop(w, &step), "it was not heard");
    CHECK_OK(co_wandb_end(w, 75, 1100, 20));
    co_wandb_close(w);
    int before = atomic_load(&s->requests);
    w = open_run("r", &(co_wandb_cfg){0});
    begin(w);
    steps(w, 1, step + 5);
    CHECK_OK(co_wandb_end(w, 0, 1200, 20));
    CHECK(!co_wandb_stop_asked(w) && atomic_load(&s->requests) > before, "the old request counts again");
    co_wandb_close(w);
    drop(s);
}

TEST(stop_on_the_page_of_wandb_saves_the_run_and_ends_it_as_sigterm_does)
{
    service *s = new_service();
    pid_t run =
        test_spawn("run.log", "exec $COHORT train model.hidden=8 trainer.max_epochs=-1 trainer.devices=1 "
                              "log_every=50 console=quiet run.dir=r logger=wandb");
    for (double until_s = co_now_s() + 15; s->lines[CH_HISTORY] == 0 && co_now_s() < until_s;)
        poll(NULL, 0, 5);
    atomic_store(&s->stopped, true);
    CHECK(test_wait(run, 30) == 75, "%s", test_sh("tail -n 5 run.log").out);
    test_run r = test_sh("grep 'wandb .*asked there' r/train.log && ls r/checkpoints/last/model.safetensors");
    CHECK(r.status == 0, "%s", r.out);
    drop(s);
}
