/* Real trainings against the recording server of tests/tools, and against wandb's own program. Long; the
 * second needs $COHORT_PYTHON with the package wandb. */
#include "harness.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "wandb_test.h"

#define DEMO                                                                                                 \
    "$COHORT train experiment=demo logger=wandb console=quiet logger.wandb.project=p logger.wandb.group=g "  \
    "logger.wandb.name=n logger.wandb.notes=t 'logger.wandb.tags=[a,b]' logger.wandb.job_type=train "

static pid_t start_server(int port, char *log)
{
    static int n;
    char out[32];
    snprintf(out, sizeof out, "port.%d", n++);
    pid_t pid = test_spawn(out, "exec python3 %s --port %d --log %s --state state.json",
                           test_repo("tests/tools/wandb_server.py"), port, log);
    test_run r = test_sh("for i in $(seq 100); do [ -s %s ] && exec cat %s; sleep 0.1; done", out, out);
    CHECK(atoi(r.out) > 0, "the server does not start: %s", r.out);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d", atoi(r.out));
    setenv("WANDB_BASE_URL", url, 1);
    setenv("WANDB_API_KEY", "local-0123456789012345678901234567890123456789", 1);
    setenv("WANDB_ERROR_REPORTING", "false", 1);
    setenv("WANDB_MODE", "online", 1);
    setenv("no_proxy", "127.0.0.1", 1);
    return pid;
}

static void needs_python(void)
{
    if (test_sh("python3 -c 'import http.server'").status != 0)
        test_skip("no python3");
}

TEST_LONG(what_is_uploaded_is_what_wandb_s_own_client_and_wandb_sync_send)
{
    const char *python = getenv("COHORT_PYTHON");
    needs_python();
    if (!python || test_sh("'%s' -c 'import wandb'", python).status != 0)
        test_skip("COHORT_PYTHON names no Python with the package wandb");
    pid_t server = start_server(0, "requests.jsonl");
    test_run r =
        test_sh(DEMO "run.dir=live logger.wandb.id=live trainer.max_epochs=4 && " DEMO
                     "run.dir=off logger.wandb.id=off logger.wandb.mode=offline trainer.max_epochs=4");
    CHECK(r.status == 0, "%s", r.out);
    r = test_sh("'%s' -m wandb leet inspect --summary off/wandb/latest-run/run-off.wandb", python);
    CHECK(r.status == 0 && test_contains(r.out, "finished (exit code 0)") && test_contains(r.out, "val/acc"),
          "leet: %d %s", r.status, r.out);
    r = test_sh("'%s' -m wandb sync --yes off/wandb/offline-run-*", python);
    CHECK(r.status == 0 && test_contains(r.out, "Finished syncing"), "sync: %d %s", r.status, r.out);
    r = test_sh("'%s' %s p live off", python, test_repo("tests/tools/wandb_compare.py"));
    kill(server, SIGTERM);
    test_wait(server, 10);
    CHECK(r.status == 0 && test_contains(r.out, ": the same"), "%d %s", r.status, r.out);
    r = test_sh("grep -r -l 0123456789012345 live off requests.jsonl | sort | tr '\\n' ' '");
    CHECK(strcmp(r.out, "requests.jsonl ") == 0, "the key is in %s", r.out);
}

static void control(const char *illness)
{
    CHECK(test_sh("curl -sf -X POST $WANDB_BASE_URL/control -d '%s'", illness).status == 0, "%s", illness);
}

/* Waits until the shell command succeeds. */
static void until(const char *what, const char *command)
{
    char script[1000];
    snprintf(script, sizeof script, "for i in $(seq 1200); do { %s; } && exit 0; sleep 0.1; done; exit 1",
             command);
    CHECK(test_sh("%s", script).status == 0, "%s: %s", what, test_sh("tail -5 run*.log").out);
}

static void until_well(void)
{
    until("the illness is over", "curl -s $WANDB_BASE_URL/ill | grep -q '\"times\": 0,'");
}

/* More lines of the record, which the service cannot get. */
static void until_more(int lines)
{
    char more[200];
    snprintf(more, sizeof more, "[ $(wc -l < r/events.jsonl) -gt %d ]",
             atoi(test_sh("wc -l < r/events.jsonl").out) + lines);
    until("the run goes on", more);
}

/* The rows on the server are those of the table, each once; the run is a killed and continued one. The
 * service is away for a minute and more. */
TEST_LONG(a_minute_without_the_service_errors_slowness_and_a_kill_lose_no_row)
{
    needs_python();
    setenv("WANDB_X_FILE_STREAM_TRANSMIT_INTERVAL", "1", 1);
    pid_t server = start_server(0, "requests.jsonl");
    int port = atoi(strrchr(getenv("WANDB_BASE_URL"), ':') + 1);
    const char *line = DEMO "'logger=[csv,wandb]' run.dir=r trainer.max_epochs=400 log_every=5";
    pid_t run = test_spawn("run.log", "exec %s", line);
    CHECK(test_sh("for i in $(seq 300); do [ -s requests.jsonl ] && exit 0; sleep 0.1; done; exit 1").status ==
              0,
          "nothing was sent: %s", test_sh("tail -5 run.log").out);
    control("{\"answer\": 429, \"times\": 2, \"retry_after\": 1}");
    until_well();
    control("{\"answer\": 500, \"times\": 3, \"retry_after\": null}");
    until_well();
    kill(server, SIGKILL);
    test_wait(server, 10);
    double since_s = co_now_s();
    until("the outage is noticed", "grep -q 'cannot upload' r/train.log");
    until_more(200);
    kill(run, SIGKILL); /* the trainer with its trackers, in the middle of the outage */
    test_wait(run, 10);
    run = test_spawn("run2.log", "exec %s ckpt_path=auto", line);
    until("the outage is noticed again", "[ $(grep -c 'cannot upload' r/train.log) -ge 2 ]");
    until_more(200);
    while (co_now_s() - since_s < 61)
        until_more(20);
    server = start_server(port, "requests.jsonl");
    control("{\"slow\": 0.5}");
    until("the upload goes on", "grep -q 'the upload goes on' r/train.log");
    test_sh("$COHORT stop r");
    CHECK(test_wait(run, 120) == 75, "%s", test_sh("tail -5 run2.log").out);
    control("{\"slow\": 0, \"cut\": 2}");
    run = test_spawn("run3.log",
                     "exec %s ckpt_path=auto trainer.max_steps=$(($(wc -l < r/csv/metrics.csv) * 5 + 500))",
                     line);
    CHECK(test_wait(run, 400) == 0, "%s", test_sh("tail -5 run3.log").out);
    test_run r = test_sh(
        "curl -s $WANDB_BASE_URL/state > s.json; python3 -c '\n"
        "import json, csv\n"
        "run = list(json.load(open(\"s.json\"))[\"runs\"].values())[0]\n"
        "rows = [json.loads(run[\"history\"][str(i)]) for i in range(len(run[\"history\"]))]\n"
        "assert [r[\"_step\"] for r in rows] == sorted({r[\"_step\"] for r in rows}), \"steps do not grow\"\n"
        "have = {(r[\"global_step\"], k): v for r in rows for k, v in r.items()}\n"
        "n = 0\n"
        "for row in csv.DictReader(open(\"r/csv/metrics.csv\")):\n"
        "    for k, v in row.items():\n"
        "        if v and k != \"step\" and not k.startswith(\"system/\") and k != \"train/data_wait\":\n"
        "            assert have[int(row[\"step\"]), k] == float(v), (row[\"step\"], k, v)\n"
        "            n += 1\n"
        "assert run[\"complete\"] and run[\"exitcode\"] == 0\n"
        "print(n, \"values in\", len(rows), \"rows\")'");
    kill(server, SIGTERM);
    test_wait(server, 10);
    CHECK(r.status == 0 && test_contains(r.out, "values in"), "%d %s", r.status, r.out);
    test_note("%s", r.out);
}
