/* logger.wandb.per_rank: a run for each rank, through the tracker, live and offline. */
#include "harness.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "track/track_int.h"
#include "track/wandb_ranks_int.h"
#include "wandb_test.h"

static void give(void *self, bool replayed, const char *line)
{
    json_t *v;
    CHECK_OK(co_json_parse(&v, line, strlen(line), "line"));
    CHECK_OK(wandb_def.take(
        self, &(co_record_line){.text = line, .len = strlen(line), .json = v, .replayed = replayed}));
    json_decref(v);
}

/* A start of a run of three ranks on two hosts. */
static void give_start(void *self, bool replayed, int step)
{
    char line[200];
    give(self, replayed,
         "{\"name\":\"run_start\",\"step\":0,\"host\":\"node1\",\"config\":{\"optim.lr\":0.5},\"t\":1000}");
#define LINE(name, value)                                                                                    \
    snprintf(line, sizeof line, "{\"step\":%d,\"name\":\"%s\",\"value\":%d,\"t\":%d}", step, name, value,    \
             1000 + step),                                                                                   \
        give(self, replayed, line)
    LINE("train/loss_step", 7);
    LINE("system/load", 1);
    LINE("system/rank.0.compute_percent", 90);
    LINE("system/rank.1.compute_percent", 80);
    LINE("system/rank.1.wait_percent", 20);
    LINE("system/node2/rank.0.compute_percent", 70);
    give(self, replayed, "{\"name\":\"run_end\",\"status\":\"done\",\"t\":1200}");
}

static void track(const char *dir, int starts)
{
    co_wandb_cfg cfg = {.id = "run7", .per_rank = true, .resume = CO_WANDB_MUST};
    co_run_facts facts = {.dir = dir, .run_id = "r", .task = "my project", .host = "node1"};
    void *self;
    cfg.resume = starts > 1 ? CO_WANDB_MUST : CO_WANDB_RESUME_UNSET;
    mkdir(dir, 0777);
    CHECK_OK(wandb_def.open(&self, &facts, &cfg));
    for (int i = 1; i <= starts; i++)
        give_start(self, i < starts, i);
    CHECK_OK(wandb_def.flush(self));
    wandb_def.close(self);
}

static void check_run(service *s, const char *id, const char *name, const char *job, const char *figure,
                      int rows)
{
    service *run = service_run(s, id);
    CHECK(run, "no run %s", id);
    const json_t *v = run->first_upsert;
    CHECK(strcmp(co_json_str(v, "groupName"), "run7") == 0 &&
              strcmp(co_json_str(v, "displayName"), name) == 0 && strcmp(co_json_str(v, "jobType"), job) == 0 &&
              test_contains(co_json_str(v, "config"), "\"lr\":0.5"),
          "%s", co_json_text(v));
    CHECK(run->lines[CH_EVENTS] == 2 && run->times[CH_EVENTS][0] == 1 && run->lines[CH_HISTORY] == rows,
          "%s: %d lines of figures, %d rows", id, run->lines[CH_EVENTS], run->lines[CH_HISTORY]);
    CHECK(test_contains(run->line[CH_EVENTS][1], figure), "%s: %s", id, run->line[CH_EVENTS][1]);
    CHECK(run->completes == 2 && run->exitcode == 0, "%s: %d ends", id, run->completes);
}

TEST(each_rank_has_a_run_of_wandb_in_the_group_of_the_run_and_goes_on_after_a_resume)
{
    co_http *probe;
    if (co_http_open(&probe) != CO_OK)
        test_skip("%s", co_errmsg());
    co_http_close(probe);
    service *s = co_zalloc(sizeof *s);
    service_open(s, 0);
    service_use(s);
    track("r", 1);
    track("r", 2);
    check_run(s, "run7", "run7-rank0", "main", "\"system.load\":1,\"system.rank.compute_percent\":90}", 2);
    check_run(s, "run7-rank1", "run7-rank1", "worker",
              "\"system.rank.compute_percent\":80,\"system.rank.wait_percent\":20}", 0);
    check_run(s, "run7-node2-rank0", "run7-node2-rank0", "worker", "\"system.rank.compute_percent\":70}", 0);
    CHECK(!s->other[2], "a fourth run: %s", s->other[2]->id);
    service_close(s);
    service_forget(s);
    co_free(s);
}

TEST(the_trouble_of_a_rank_s_run_is_said_with_the_name_of_the_rank)
{
    co_http *probe;
    if (co_http_open(&probe) != CO_OK)
        test_skip("%s", co_errmsg());
    co_http_close(probe);
    service *s = co_zalloc(sizeof *s);
    co_wandb_cfg cfg = {.id = "run7", .per_rank = true};
    co_run_facts facts = {.dir = "r", .run_id = "r", .task = "my project", .host = "node1"};
    char text[600], all[8000] = "";
    void *self;
    service_open(s, 0);
    service_use(s);
    atomic_store(&s->refuse_key, 1);
    mkdir("r", 0777);
    CHECK_OK(wandb_def.open(&self, &facts, &cfg));
    give(self, false,
         "{\"name\":\"run_start\",\"step\":0,\"host\":\"node1\",\"ranks\":3,\"config\":{},\"t\":1000}");
    for (double until_s = co_now_s() + 20; !strstr(all, "rank2") && co_now_s() < until_s; poll(NULL, 0, 5))
        while (wandb_def.notice(self, text, sizeof text))
            snprintf(all + strlen(all), sizeof all - strlen(all), "<%s>", text);
    wandb_def.close(self);
    CHECK(test_contains(all, "<cannot upload: ") && test_contains(all, "<rank1: cannot upload: ") &&
              test_contains(all, "<rank2: cannot upload: "),
          "%s", all);
    service_close(s);
    service_forget(s);
    co_free(s);
}

TEST(memory_for_the_run_of_each_rank_is_planned)
{
    co_wandb_cfg one = {0}, each = {.per_rank = true};
    size_t of_two = wandb_def.more_memory(&each, 2);
    CHECK(wandb_def.more_memory(&one, 8) == 0 && wandb_def.more_memory(&each, 1) == 0, "no runs of ranks");
    CHECK(of_two > 0 && wandb_def.more_memory(&each, 8) == 7 * of_two, "%zu for two ranks, %zu for eight",
          of_two, wandb_def.more_memory(&each, 8));
    CHECK(wandb_def.more_memory(&each, 100000) == WANDB_RANKS_MOST * of_two, "there are not more runs");
}

TEST(a_picture_that_every_validation_shows_is_uploaded_once)
{
    co_http *probe;
    if (co_http_open(&probe) != CO_OK)
        test_skip("%s", co_errmsg());
    co_http_close(probe);
    service *s = co_zalloc(sizeof *s);
    co_wandb_cfg cfg = {0};
    void *self;
    service_open(s, 0);
    service_use(s);
    test_sh("mkdir -p r/media; printf one > r/media/a.png; printf '{\"columns\":[\"image\"],"
            "\"data\":[[{\"image\":\"media/a.png\"}]]}' > r/media/t.json");
    CHECK_OK(wandb_def.open(
        &self, &(co_run_facts){.dir = "r", .run_id = "r", .task = "my project", .host = "node1"}, &cfg));
    for (int step = 1; step <= 3; step++) {
        char line[200];
        snprintf(line, sizeof line,
                 "{\"step\":%d,\"name\":\"samples\",\"image\":{\"file\":\"media/a.png\"},\"t\":2}", step);
        give(self, false, line);
        snprintf(line, sizeof line,
                 "{\"step\":%d,\"name\":\"table\",\"table\":{\"file\":\"media/t.json\"},\"t\":2}", step);
        give(self, false, line);
    }
    give(self, false, "{\"name\":\"run_end\",\"status\":\"done\",\"t\":1200}");
    wandb_def.close(self);
    int pictures = 0;
    for (const char *at = s->uploaded; (at = strstr(at, ".png")); at++)
        pictures++;
    CHECK(pictures == 1, "%s", s->uploaded);
    CHECK(s->files == 8 && s->lines[CH_HISTORY] == 3, "%d files, %d rows: %s", s->files, s->lines[CH_HISTORY],
          s->uploaded);
    service_close(s);
    service_forget(s);
    co_free(s);
}

TEST(a_training_kept_offline_for_wandb_has_a_folder_for_each_rank_with_that_rank_s_log)
{
    test_run r = test_sh("$COHORT train model.hidden=8 trainer.max_steps=40 trainer.devices=2 test=false "
                         "run.dir=r logger=wandb "
                         "logger.wandb.mode=offline logger.wandb.per_rank=true logger.wandb.name=mine > out "
                         "2>&1 && ls r/wandb && "
                         "readlink r/wandb/latest-run && grep -a -c mine-rank1 r/wandb/*-rank1/*.wandb && "
                         "grep -h '\"id\"' r/wandb/run*.json");
    CHECK(r.status == 0, "%s %s", r.out, test_sh("cat out").out);
    test_run ls = test_sh("ls r/wandb | wc -l; ls r/wandb/*-rank1/files; grep 'wandb sync' out");
    CHECK(atoi(ls.out) == 5 && test_contains(r.out, "run-rank1.json") &&
              test_contains(ls.out, "config.yaml") && test_contains(ls.out, "*` uploads it"),
          "%s %s", r.out, ls.out);
    CHECK(!strstr(test_sh("readlink r/wandb/latest-run").out, "rank"), "%s", r.out);
}
