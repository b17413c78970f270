/* test_use.c -- the machine's figures: their names in the record, their JSON between hosts, and what disks
 * and network have moved. */
#include "track_test.h"

#include <math.h>
#include <stdlib.h>

#include "track/track_int.h"
#include "track/use.h"

static void fill(co_use *u)
{
    char name[CO_USE_LABEL];
    double value;

    co_use_clear(u);
    u->ranks = 3;
    u->gpus = 2;
    u->t = 1000.5;
    snprintf(u->host, sizeof u->host, "node2.lab");
    for (int i = 0; co_use_at(u, i, name, &value); i++)
        CHECK(isnan(value) && co_use_put(u, name, 1.5 + i), "%s", name);
    for (int r = 0; r < 3; r++) {
        u->rank[r].pid = 40 + r;
        snprintf(u->rank[r].doing, sizeof u->rank[r].doing, "computing");
    }
}

TEST(every_figure_of_a_host_has_a_name_that_leads_back_to_it)
{
    co_use u, by_name;
    char name[CO_USE_LABEL], label[CO_USE_LABEL], host[CO_USE_HOST];
    const char *part;
    double value;
    int n = 0;

    fill(&u);
    co_use_clear(&by_name);
    for (; co_use_at(&u, n, name, &value); n++) {
        co_use_label(label, n % 2 ? u.host : "", name);
        CHECK(co_use_split(label, host, &part) && strcmp(host, n % 2 ? "node2.lab" : "") == 0, "%s", label);
        CHECK(co_use_put(&by_name, part, value), "%s", part);
    }
    CHECK(n == CO_HOST_FIGURES + 3 * CO_RANK_FIGURES + 2 * CO_GPU_FIGURES, "%d figures", n);
    CHECK(by_name.ranks == 3 && by_name.gpus == 2 && by_name.rank[2].figure[CO_RANK_WAIT] == value &&
              by_name.gpu[1][CO_GPU_POWER] == u.gpu[1][CO_GPU_POWER],
          "by name");
    static const char *const others[] = {
        "rank.64.cpu_percent", "rank.x.cpu_percent", "rank.1", "rank.1.",
        "gpu.16.percent",      "gpu.0.load",         "",       "rank.00001.load"};
    for (size_t i = 0; i < CO_COUNT(others); i++)
        CHECK(!co_use_put(&by_name, others[i], 1), "%s", others[i]);
    static const char *const labels[] = {"train/loss", "system//load", "system/a/b/load", "systems/load", "lr"};
    for (size_t i = 0; i < CO_COUNT(labels); i++)
        CHECK(!co_use_split(labels[i], host, &part), "%s", labels[i]);
    co_use_host(host, "a b/c\xc3\xa9.d-1_");
    CHECK(strcmp(host, "a_b_c__.d-1_") == 0, "%s", host);
    co_use_host(host, "");
    CHECK(strcmp(host, "_") == 0, "%s", host);
}

TEST(figures_of_a_host_travel_as_json_and_what_is_not_right_is_refused_by_name)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"[]", "\"host\""},
        {"{\"host\":7}", "\"host\""},
        {"{\"host\":\"a/b\",\"t\":1,\"ranks\":[],\"gpus\":[]}", "characters"},
        {"{\"host\":\"a\\u001b[1m\",\"t\":1,\"ranks\":[],\"gpus\":[]}", "\"host\""},
        {"{\"host\":\"a\",\"t\":\"now\",\"ranks\":[],\"gpus\":[]}", "\"t\""},
        {"{\"host\":\"a\",\"t\":1,\"ranks\":7,\"gpus\":[]}", "no list"},
        {"{\"host\":\"a\",\"t\":1,\"ranks\":[7],\"gpus\":[]}", "a rank"},
        {"{\"host\":\"a\",\"t\":1,\"ranks\":[{\"pid\":-1,\"still_s\":0,\"doing\":\"\"}],\"gpus\":[]}",
         "a rank"},
        {"{\"host\":\"a\",\"t\":1,\"ranks\":[{\"pid\":1,\"still_s\":-1,\"doing\":\"\"}],\"gpus\":[]}",
         "a rank"},
        {"{\"host\":\"a\",\"t\":1,\"ranks\":[{\"pid\":1,\"still_s\":0,\"doing\":\"\\n\"}],\"gpus\":[]}",
         "a rank"}};
    co_use u, back;
    json_t *v;
    char name[CO_USE_LABEL];
    double x, y;

    fill(&u);
    CHECK((v = co_use_json(&u)), "no memory");
    CHECK_OK(co_use_read(&back, v));
    json_decref(v);
    for (int i = 0; co_use_at(&u, i, name, &x); i++)
        CHECK(co_use_at(&back, i, name, &y) && x == y, "%s", name);
    CHECK(back.rank[2].pid == 42 && strcmp(back.host, "node2.lab") == 0 && back.t == 1000.5, "all of it");
    for (size_t i = 0; i < CO_COUNT(bad); i++) {
        CHECK_OK(co_json_parse(&v, bad[i].text, strlen(bad[i].text), "test"));
        back.ranks = 77;
        CHECK_FAILS(co_use_read(&back, v), CO_EFORMAT, bad[i].words);
        CHECK(back.ranks == 77, "written although refused");
        json_decref(v);
    }
    json_t *many = json_array();
    for (int i = 0; i <= CO_USE_RANKS; i++)
        json_array_append_new(many, json_object());
    v = json_pack("{s:s, s:i, s:o, s:[]}", "host", "a", "t", 1, "ranks", many, "gpus");
    CHECK_FAILS(co_use_read(&back, v), CO_EFORMAT, "too long");
    json_decref(v);
    /* Figures that are no numbers are not known; those of a later version are passed over. */
    const char *odd = "{\"host\":\"\",\"t\":1,\"figures\":{\"load\":\"x\",\"cpu_percent\":1e300,\"warp\":9},"
                      "\"ranks\":[],\"gpus\":[[]]}";
    CHECK_OK(co_json_parse(&v, odd, strlen(odd), "test"));
    CHECK_OK(co_use_read(&back, v));
    CHECK(isnan(back.figure[CO_HOST_LOAD]) && isnan(back.figure[CO_HOST_CPU]) && back.gpus == 1, "odd ones");
    json_decref(v);
}

TEST(a_long_run_and_one_of_many_ranks_write_no_more_than_a_small_one)
{
    double at = 0, t = 0;
    int lines = 0;

    CHECK(co_use_pause(2, 60, 22) == 2 && co_use_pause(2, 6000, 22) == 20 && co_use_pause(30, 6000, 22) == 30,
          "pauses");
    CHECK(co_use_pause(2, 0, 96) == 4, "16 ranks");
    for (; t < 36000; t++)
        if (t >= at) {
            lines++;
            at = t + co_use_pause(2, t, 48);
        }
    CHECK(lines > 1000 && lines < 2000, "%d lines in ten hours", lines);
}

TEST(bytes_of_disks_and_networks_count_once)
{
    flow f;

    flow_disks("   8       0 sda 10 0 200 0 20 0 400 0 0 0 0\n"
               "   8       1 sda1 9 0 190 0 19 0 390 0 0 0 0\n"
               " 259       0 nvme0n1 1 0 2 0 3 0 8 0 0 0 0\n"
               " 259       1 nvme0n1p1 1 0 2 0 3 0 8 0 0 0 0\n"
               "   7       0 loop0 1 0 5000 0 3 0 5000 0 0 0 0\n"
               " 253       0 dm-0 1 0 5000 0 3 0 5000 0 0 0 0\nnonsense\n",
               &f);
    CHECK(f.in == 202 * 512 && f.out == 408 * 512, "%g %g", f.in, f.out);
    flow_net("Inter-|   Receive                                                |  Transmit\n"
             " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n"
             "    lo: 5000 1 0 0 0 0 0 0 5000 1 0 0 0 0 0 0\n"
             "  eth0:1000 1 0 0 0 0 0 0 300 1 0 0 0 0 0 0\n"
             "  ib0: 20 1 0 0 0 0 0 0 4 1 0 0 0 0 0 0\n"
             "vethab: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n cut: 1 2",
             &f);
    CHECK(f.in == 1020 && f.out == 304, "%g %g", f.in, f.out);
    flow_net("", &f);
    CHECK(isnan(f.in) && isnan(f.out), "nothing is known");
    flow_net("a\nb\n lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n", &f);
    CHECK(f.in == 0 && f.out == 0, "only loopback: nothing moves");
    CHECK(co_disk_free_mb(".") > 0 && isnan(co_disk_free_mb("/no/such/place")), "free space");
}
