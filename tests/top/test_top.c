/* test_top.c -- `cohort top` without a terminal: a state and keys to lines of text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "harness.h"
#include "top/top_int.h"

/* A run of `hosts` hosts with `ranks` ranks each; rank r of host h computes 10 h + r percent of its time. */
static void make_run(top_run *run, int pid, const char *task, int hosts, int ranks)
{
    run->live.pid = pid;
    run->live.started = 1000;
    snprintf(run->live.task, sizeof run->live.task, "%s", task);
    snprintf(run->live.dir, sizeof run->live.dir, "/home/user/logs/%s/runs/2026-11-17_13-00-00", task);
    snprintf(run->log, sizeof run->log, "epoch 2/15  step 46  train loss 0.5868 caf\xc3\xa9 %0200d", 7);
    snprintf(run->metric, sizeof run->metric, "acc");
    run->is_live = run->has_progress = true;
    run->progress = (co_progress){.step = 66,
                                  .steps = 345,
                                  .epoch = 3,
                                  .epochs = 15,
                                  .loss = 0.25,
                                  .metric = 0.9,
                                  .samples_per_s = 1549,
                                  .eta_s = 185};
    for (run->losses = 0; run->losses < 40; run->losses++)
        run->loss[run->losses] = 2.0 / (1 + run->losses);
    run->host = co_array((size_t)hosts, sizeof *run->host);
    run->hosts = hosts;
    run->cpu_percent = 100 * hosts;
    run->memory_mb = 1300;
    for (int h = 0; h < hosts; h++) {
        co_use *use = &run->host[h];
        co_use_clear(use);
        if (h)
            snprintf(use->host, sizeof use->host, "node%d", h + 1);
        use->t = 1184;
        use->ranks = ranks;
        use->figure[CO_HOST_CPU] = 97;
        for (int r = 0; r < ranks; r++) {
            use->rank[r].pid = 4000 + 100 * h + r;
            snprintf(use->rank[r].doing, sizeof use->rank[r].doing, "computing");
            use->rank[r].figure[CO_RANK_CPU] = 50;
            use->rank[r].figure[CO_RANK_COMPUTE] = 10 * h + r;
            use->rank[r].figure[CO_RANK_INPUT] = use->rank[r].figure[CO_RANK_EXCHANGE] = 0;
            use->rank[r].figure[CO_RANK_WAIT] = 20;
        }
    }
}

/* Two runs and a launch on the machine "here". */
static void make_state(top_state *state)
{
    *state = (top_state){.now = 1185, .host = "here", .utf8 = true, .has_machine = true};
    state->machine = (co_sample){.cpu_percent = 97, .host_memory_percent = 41, .load = 12.1};
    state->run = co_array(3, sizeof *state->run);
    state->n = 3;
    make_run(&state->run[0], 101, "digits", 1, 2);
    make_run(&state->run[1], 102, "cifar", 2, 16);
    state->run[2].live.pid = 103;
    state->run[2].live.started = 1100;
    state->run[2].is_live = true;
    snprintf(state->run[2].live.task, 64, "launch");
    snprintf(state->run[2].live.launch, 256, "2 workers on this host: python train.py");
    state->run[2].cpu_percent = 200;
    state->run[2].memory_mb = 40;
}

static const char *text_of(const top_state *state, int rows, int cols)
{
    static char all[1 << 18];
    top_screen screen = {0};
    size_t at = 0;

    top_lines(state, rows, cols, &screen);
    CHECK(rows == 0 || screen.n == rows, "%d lines for %d rows", screen.n, rows);
    all[0] = '\0';
    for (int i = 0; i < screen.n; i++) {
        CHECK(top_width(screen.line[i].text) <= cols, "%d columns: %s", cols, screen.line[i].text);
        at += (size_t)snprintf(all + at, sizeof all - at, "%s\n", screen.line[i].text);
    }
    top_screen_fini(&screen);
    return all;
}

static void has(const top_state *state, int rows, int cols, const char *words)
{
    const char *text = text_of(state, rows, cols);

    CHECK(test_contains(text, words), "no \"%s\" in\n%s", words, text);
}

TEST(every_size_of_terminal_gets_its_lines_and_none_is_too_long)
{
    top_state state;

    make_state(&state);
    for (int view = TOP_RUNS; view <= TOP_HELP; view++)
        for (int rows = 3; rows <= 60; rows += rows < 26 ? 1 : 11)
            for (int cols = 20; cols <= 220; cols += 20) {
                state.view = (top_view)view;
                state.chosen = (rows + cols) % 3;
                text_of(&state, rows, cols);
            }
    top_state_fini(&state);
    state = (top_state){.chosen = -1, .host = "here"};
    has(&state, 24, 80, "no runs on this machine");
    state.view = TOP_RUN;
    has(&state, 24, 80, "no runs on this machine");
}

TEST(the_list_has_runs_and_launches_and_what_is_left_of_the_screen_is_the_chosen_one)
{
    top_state state;

    make_state(&state);
    has(&state, 24, 80, "cohort top  here  2 runs, 1 launch  cpu 97%  memory 41%  load 12.1");
    has(&state, 24, 80,
        "    pid task       state             step        left samples/s      loss   cpu\n"
        "    101 digits     running         66/345  3 min 05 s      1549      0.25  100%\n"
        "    102 cifar      running         66/345  3 min 05 s      1549      0.25  200%\n"
        "    103 launch     launch               -           -         -         -  200%\n");
    has(&state, 24, 80, "/home/user/logs/digits/runs/");
    has(&state, 24, 80, "log   epoch 2/15  step 46  train loss 0.5868 café 000");
    has(&state, 24, 80, "s sort (start)");
    has(&state, 50, 200, "2 workers on this host: python train.py");
    has(&state, 50, 200, "█▄▂▂▁▁▁");
    state.utf8 = false;
    has(&state, 50, 200, "#-..____");
    has(&state, 50, 200, "caf? 000");
    for (const char *at = text_of(&state, 50, 200); *at; at++)
        CHECK(*at == '\n' || (*at >= ' ' && *at < 127), "a byte that is no ASCII");
    top_state_fini(&state);
}

TEST(the_view_of_a_run_has_its_hosts_its_ranks_and_their_time)
{
    top_state state;

    make_state(&state);
    state.view = TOP_RUN;
    state.chosen = 1;
    has(&state, 24, 80, "step  66/345 19 %  epoch 3/15  1549 samples/s  3 min 05 s left\n");
    has(&state, 50, 200, "step  66/345 ████░░░░░░░░░░░░░░░░ 19 %  epoch 3/15");
    has(&state, 50, 200,
        "node2            15     4115   50%      -    0%     25%       0%   20%   55% "
        "#####wwww........... computing");
    has(&state, 24, 80, "loss  0.25  acc 0.9  █");
    /* 32 ranks do not fit: the last ones come by scrolling, and never past the end. */
    CHECK(!test_contains(text_of(&state, 24, 80), "node2            15"), "too long");
    top_key(&state, TOP_KEY_END, 24);
    has(&state, 24, 80, "node2            15");
    top_key(&state, TOP_KEY_HOME, 24);
    has(&state, 24, 80, "here              0");
    /* A host that is silent, and a rank that hangs. */
    state.run[1].host[1].t = 1100;
    has(&state, 50, 200, "not heard of for 85 s");
    state.run[1].host[0].rank[3].still_s = 7;
    has(&state, 50, 200, "computing, 7 s without progress");
    CHECK(strcmp(top_state_text(&state.run[1]), "stalled") == 0, "stalled");
    state.run[1].recoveries = 2;
    has(&state, 24, 80, "2 ranks replaced");
    /* The same run later: it has ended. */
    state.run[1].is_live = false;
    state.run[1].state = CO_RUN_KILLED;
    has(&state, 24, 80, "killed");
    CHECK(!test_contains(text_of(&state, 50, 200), "without progress"), "it has ended");
    state.run[1].hosts = 0;
    has(&state, 24, 80, "no figures of hosts and ranks yet");
    top_state_fini(&state);
}

TEST(keys_sort_filter_open_and_stop_only_after_a_yes)
{
    top_state state;

    make_state(&state);
    top_key(&state, 's', 24); /* by CPU: the launch and cifar have 200 % */
    has(&state, 24, 80, "cpu\n    102 cifar");
    top_key(&state, 'r', 24);
    has(&state, 24, 80, "cpu\n    101 digits");
    top_key(&state, '/', 24);
    for (const char *at = "cifx"; *at; at++)
        top_key(&state, *at, 24);
    has(&state, 24, 80, "no run matches the filter");
    top_key(&state, TOP_KEY_BACK, 24);
    has(&state, 24, 80, "filter: cif_");
    top_key(&state, TOP_KEY_ENTER, 24);
    CHECK(!test_contains(text_of(&state, 16, 80), "101 digits"), "filtered");
    CHECK(!state.types && state.view == TOP_RUNS, "typed");
    top_key(&state, TOP_KEY_DOWN, 24);
    CHECK(state.chosen == 1, "only cifar can be chosen");
    top_key(&state, TOP_KEY_ENTER, 24);
    CHECK(state.view == TOP_RUN, "opened");
    for (int i = 0; i < 4; i++)
        top_key(&state, 's', 24);
    has(&state, 50, 200, "doing\nnode2            15"); /* it computes most */
    top_key(&state, 'k', 24);
    has(&state, 24, 80, "stop run 102 (cifar)? It saves and ends. y: yes, any other key: no");
    CHECK(top_key(&state, 'n', 24) == TOP_GO_ON && !state.asks && state.chosen == 1, "no");
    top_key(&state, 'k', 24);
    CHECK(top_key(&state, 'y', 24) == TOP_STOP_RUN, "yes");
    CHECK(top_key(&state, 'y', 24) == TOP_GO_ON, "only once");
    top_key(&state, 'h', 24);
    has(&state, 24, 80, "stop the run: it saves and ends. Asks first");
    top_key(&state, 'x', 24);
    CHECK(state.view == TOP_RUN, "back");
    top_key(&state, TOP_KEY_ESCAPE, 24);
    CHECK(state.view == TOP_RUNS && top_key(&state, 3, 24) == TOP_QUIT && top_key(&state, 'q', 24) == TOP_QUIT,
          "end");
    state.run[1].is_live = false;
    top_key(&state, 'k', 24);
    has(&state, 24, 80, "this run does not run on this machine");
    top_state_fini(&state);
}

TEST(a_row_of_small_bars_shows_values_of_any_number_and_kind)
{
    static const struct {
        double value[8];
        int n, cols;
        const char *ascii;
    } cases[] = {{{1, 2, 3, 4, 5, 6, 7, 8}, 8, 8, "_.:-=+*#"},
                 {{1, 2, 3, 4, 5, 6, 7, 8}, 8, 4, "_:+#"},
                 {{5, 5, 5}, 3, 8, "___"},
                 {{1, NAN, 8}, 3, 3, "_ #"},
                 {{1, 1000}, 2, 2, "_#"},
                 {{1, 10, 100}, 3, 3, "_=#"}, /* logarithmic */
                 {{0}, 0, 8, ""},
                 {{INFINITY, NAN}, 2, 2, "  "}};

    for (size_t i = 0; i < CO_COUNT(cases); i++) {
        co_str text = {0};
        top_spark(&text, cases[i].value, cases[i].n, cases[i].cols, false);
        CHECK(strcmp(co_str_text(&text), cases[i].ascii) == 0, "case %zu: \"%s\"", i, co_str_text(&text));
        co_str_fini(&text);
    }
}
