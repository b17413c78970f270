/* `cohort ps` on the hosts of one run: processes of this machine, each with a list of its own. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "harness.h"
#include "net/net.h"

static bool listed(void *host)
{
    test_run r = test_sh("XDG_RUNTIME_DIR=$PWD/list%d $COHORT ps --json", *(int *)host);
    bool there = test_contains(r.out, "\"computes\"") && !test_contains(r.out, "\"step\":null");

    free(r.out);
    return there;
}

/* The figures of the second host and of its rank are in the first one's record. Both have one name here: they
 * are told apart by their places. */
static bool recorded(void *unused)
{
    (void)unused;
    test_run r = test_sh("grep -c 'system/[^/]*-1/rank.0.compute_percent' 0/r/events.jsonl; "
                         "grep -c 'system/[^/]*-1/cpu_percent' 0/r/events.jsonl");
    int shares = 0, cpus = 0;
    bool there = sscanf(r.out, "%d %d", &shares, &cpus) == 2 && shares > 0 && cpus > 0;

    free(r.out);
    return there;
}

static json_t *row_of(int host)
{
    json_t *row = NULL;
    test_run r = test_sh("XDG_RUNTIME_DIR=$PWD/list%d $COHORT ps --json", host);

    CHECK_OK(co_json_parse(&row, r.out, strlen(r.out), "ps --json"));
    free(r.out);
    return row;
}

/* Both hosts compute, as each host's list says. */
static void check_row(const json_t *row, int host)
{
    const json_t *hosts = json_object_get(row, "hosts");

    CHECK(strcmp(co_json_str(row, "role"), host ? "guest" : "run") == 0 &&
              strcmp(co_json_str(row, "job"), "job7") == 0,
          "host %d", host);
    CHECK(json_is_null(json_object_get(row, "dir")) == (host > 0), "host %d: only the first has the record",
          host);
    CHECK(json_integer_value(json_object_get(row, "view")) >= 1 && json_array_size(hosts) == 2, "host %d",
          host);
    for (size_t i = 0; i < 2; i++) {
        const json_t *one = json_array_get(hosts, i);
        CHECK(strcmp(co_json_str(one, "state"), "computes") == 0 && co_json_str(one, "name") &&
                  json_integer_value(json_object_get(one, "ranks")) == 1 &&
                  json_integer_value(json_object_get(one, "slices")) > 0,
              "host %d lists host %zu", host, i);
    }
    CHECK(strcmp(co_json_str(row, "record_host"), co_json_str(json_array_get(hosts, 0), "name")) == 0,
          "host %d names the host with the record", host);
}

TEST(each_host_of_a_run_lists_it_with_all_its_hosts_and_their_states)
{
    int port, host[2] = {0, 1};
    pid_t pid[2];

    CHECK_OK(co_net_free_port(&port));
    test_run token = test_sh("mkdir -m 700 list0 list1; mkdir 0 1; $COHORT token | head -1 | tr -d '\\n'");
    for (int h = 0; h < 2; h++)
        pid[h] =
            test_spawn(h ? "1.out" : "0.out",
                       "cd %d; COHORT_TOKEN=%s XDG_RUNTIME_DIR=$PWD/../list%d exec $COHORT train --nnodes=2 "
                       "--rdzv-id=job7 --rdzv-endpoint=127.0.0.1:%d --node-rank=%d model=mlp "
                       "trainer.devices=1 trainer.max_epochs=1000000 trainer.max_time=1m run.dir=r",
                       h, token.out, h, port, h);
    for (int h = 0; h < 2; h++)
        test_until(listed, &host[h], 30, "both hosts are listed");
    for (int h = 0; h < 2; h++) {
        json_t *row = row_of(h);
        check_row(row, h);
        json_decref(row);
    }
    test_until(recorded, NULL, 30, "the second host's figures are in the record");
    test_run table = test_sh("for h in 0 1; do XDG_RUNTIME_DIR=$PWD/list$h $COHORT ps; done");
    CHECK(test_contains(table.out, "guest, record on ") && test_contains(table.out, " computes, ") &&
              test_contains(table.out, "/0/r  view "),
          "%s", table.out);
    test_run top = test_sh("for h in 0 1; do XDG_RUNTIME_DIR=$PWD/list$h $COHORT top --once; done");
    CHECK(top.status == 0 && test_contains(top.out, "-1 ") &&
              test_contains(top.out, "guest; the record is on ") &&
              test_contains(top.out, "host           rank"),
          "the first host shows both, the second one itself: %s", top.out);
    test_run attach = test_sh("XDG_RUNTIME_DIR=$PWD/list1 $COHORT attach");
    CHECK(attach.status == 2 && test_contains(attach.out, "is a guest: the record and the progress"), "%s",
          attach.out);
    test_run stop = test_sh("XDG_RUNTIME_DIR=$PWD/list1 $COHORT stop --all --wait");
    CHECK(stop.status == 0 && test_contains(stop.out, "(guest): stopped"), "%s", stop.out);
    for (int h = 0; h < 2; h++)
        CHECK(test_wait(pid[h], 20) == 75, "host %d stops, saved", h);
    test_run after =
        test_sh("for h in 0 1; do XDG_RUNTIME_DIR=$PWD/list$h $COHORT ps --json; done; ls list?/cohort");
    CHECK(!test_contains(after.out, "json") && !test_contains(after.out, "pid"), "nothing is left: %s",
          after.out);
}
