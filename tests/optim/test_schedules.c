/* test_schedules.c -- every schedule against torch.optim.lr_scheduler, step by step
 * (tests/golden/make_schedules.py), and the option values that are refused. */
#include "optim/optim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "harness.h"

/* A schedule as set up by words "key=value". */
struct seat {
    const co_schedule_def *def;
    void *cfg;
    double base, start;
    int64_t warmup;
    co_pace pace;
};

static void sit(struct seat *s, const char *name)
{
    *s = (struct seat){.def = co_schedule_find(name), .pace.drop = 1};
    CHECK(s->def, "no schedule %s", name);
    s->cfg = co_zalloc(s->def->cfg_size + 1);
    CHECK_OK(co_options_default(s->def->options, s->cfg));
}

static void leave(struct seat *s)
{
    co_options_fini(s->def->options, s->cfg);
    co_free(s->cfg);
}

static void set(struct seat *s, const char *key, const char *value)
{
    const co_option *row = co_option_find(s->def->options, key);

    if (strcmp(key, "base") == 0)
        s->base = strtod(value, NULL);
    else if (strcmp(key, "steps") == 0)
        s->pace.steps = strtoll(value, NULL, 10);
    else if (strcmp(key, "steps_per_epoch") == 0)
        s->pace.steps_per_epoch = strtoll(value, NULL, 10);
    else if (strcmp(key, "warmup") == 0)
        s->warmup = strtoll(value, NULL, 10);
    else if (strcmp(key, "start") == 0)
        s->start = strtod(value, NULL);
    else {
        CHECK(row, "%s has no option %s", s->def->name, key);
        CHECK_OK(co_option_set(row, s->cfg, key, value));
    }
}

/* "case NAME key=value ..." */
static void read_head(struct seat *s, char *line)
{
    char *rest, *word = strtok_r(line, " ", &rest);

    word = strtok_r(NULL, " ", &rest);
    sit(s, word);
    while ((word = strtok_r(NULL, " ", &rest))) {
        char *value = strchr(word, '=');
        CHECK(value, "golden-schedules.txt: \"%s\" is no key=value", word);
        *value++ = 0;
        set(s, word, value);
    }
    if (s->def->check)
        CHECK_OK(s->def->check(s->cfg));
}

static double apart(double got, double want)
{
    return fabs(got - want) / fmax(fabs(want), 1e-300);
}

/* Lines "rate" or "rate momentum", one a step. */
static double follow_steps(struct seat *s, char **lines)
{
    double rate = 0, momentum = 0, worst = 0;
    int values = 0;

    for (int64_t step = 0; step < s->pace.steps; step++) {
        const char *line = strtok_r(NULL, "\n", lines);
        CHECK(line, "golden-schedules.txt is cut off");
        if (strcmp(line, "=") != 0)
            values = sscanf(line, "%lf %lf", &rate, &momentum);
        s->pace.step = step;
        double lr = co_schedule_lr(s->def, s->cfg, s->base, s->warmup, s->start, &s->pace);
        double m = co_schedule_momentum(s->def, s->cfg, s->warmup, &s->pace);
        worst = fmax(worst, apart(lr, rate));
        CHECK(apart(lr, rate) <= 1e-12,
              "%s, step %lld: rate %.17g, PyTorch has %.17g: relative difference %.2g", s->def->name,
              (long long)step, lr, rate, apart(lr, rate));
        CHECK(values == 2 ? apart(m, momentum) <= 1e-12 : m == 0,
              "%s, step %lld: momentum %.17g, PyTorch has %.17g", s->def->name, (long long)step, m, momentum);
    }
    return worst;
}

/* Lines "value rate": the rate after an evaluation that gave the value. */
static double follow_values(struct seat *s, char **lines)
{
    co_plateau p = {.drop = 1};
    double worst = 0, value, rate;
    int drops = 0;

    for (int64_t i = 0; i < s->pace.steps; i++) {
        const char *line = strtok_r(NULL, "\n", lines);
        CHECK(line && sscanf(line, "%lf %lf", &value, &rate) == 2, "golden-schedules.txt is cut off");
        double before = p.drop;
        co_plateau_see(s->cfg, s->base, value, &p);
        drops += p.drop != before;
        s->pace.drop = p.drop;
        double lr = co_schedule_lr(s->def, s->cfg, s->base, 0, 0, &s->pace);
        worst = fmax(worst, apart(lr, rate));
        CHECK(apart(lr, rate) <= 1e-12, "value %lld: rate %.17g, PyTorch has %.17g", (long long)i, lr, rate);
    }
    CHECK(drops >= 2, "%d drops: the case shows nothing", drops);
    return worst;
}

TEST(every_schedule_s_rates_are_those_of_pytorch)
{
    double worst[16] = {0};
    int cases[16] = {0}, n = 0;
    char *text, *lines;

    CHECK_OK(co_fs_read(&text, NULL, test_repo("tests/optim/golden-schedules.txt"), 1 << 20));
    for (char *line = strtok_r(text, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
        struct seat s;
        if (line[0] == '#')
            continue;
        CHECK(strncmp(line, "case ", 5) == 0, "\"%s\" where a case begins", line);
        read_head(&s, line);
        int row = 0;
        while (co_schedules[row] != s.def)
            row++;
        worst[row] = fmax(worst[row], (s.def->watches ? follow_values : follow_steps)(&s, &lines));
        cases[row]++;
        n++;
        leave(&s);
    }
    for (int row = 0; co_schedules[row]; row++) {
        CHECK(cases[row] > 1, "%s has %d cases", co_schedules[row]->name, cases[row]);
        test_note("%-12s %d cases, worst relative difference %.1e", co_schedules[row]->name, cases[row],
                  worst[row]);
    }
    CHECK(n == 38, "%d cases", n);
    co_free(text);
}

TEST(every_schedule_gives_a_rate_for_runs_of_any_length)
{
    for (int row = 0; co_schedules[row]; row++)
        for (int64_t steps = 0; steps <= 12; steps++)
            for (int64_t warmup = 0; warmup <= 3; warmup++) {
                struct seat s;
                sit(&s, co_schedules[row]->name);
                s.pace.steps = steps;
                for (s.pace.step = 0; s.pace.step < steps + 3; s.pace.step++) {
                    s.pace.steps_per_epoch = steps / 2;
                    double lr = co_schedule_lr(s.def, s.cfg, 0.1, warmup, 0, &s.pace);
                    double m = co_schedule_momentum(s.def, s.cfg, warmup, &s.pace);
                    CHECK(lr >= 0 && lr <= 1 && m >= 0 && m < 1, "%s, step %lld of %lld: rate %g, momentum %g",
                          s.def->name, (long long)s.pace.step, (long long)steps, lr, m);
                }
                leave(&s);
            }
}

/* PyTorch divides by zero here: the rise ends at step 0. */
TEST(one_cycle_whose_rise_takes_one_step_starts_at_the_top)
{
    struct seat s;

    sit(&s, "one_cycle");
    set(&s, "pct_start", "0.1");
    s.pace.steps = 10;
    CHECK(s.def->lr(s.cfg, 0.5, &s.pace) == 0.5, "got %g", s.def->lr(s.cfg, 0.5, &s.pace));
    leave(&s);
}

TEST(warm_up_begins_at_its_start_and_the_schedule_after_it_at_its_own_first_step)
{
    struct seat s;

    sit(&s, "cosine");
    s.pace.steps = 110;
    CHECK(co_schedule_lr(s.def, s.cfg, 0.4, 10, 0.25, &s.pace) == 0.1, "the first step");
    s.pace.step = 10;
    CHECK(co_schedule_lr(s.def, s.cfg, 0.4, 10, 0.25, &s.pace) == 0.4, "the first step after it");
    s.pace.step = 60;
    CHECK(fabs(co_schedule_lr(s.def, s.cfg, 0.4, 10, 0.25, &s.pace) - 0.2) < 1e-16, "half of the rest");
    leave(&s);
    sit(&s, "one_cycle");
    s.pace.steps = 110;
    CHECK(fabs(co_schedule_momentum(s.def, s.cfg, 10, &s.pace) - 0.95) < 1e-15, "the momentum waits");
    leave(&s);
}

TEST(a_plateau_lets_values_that_are_not_finite_count_as_no_better)
{
    struct seat s;
    co_plateau p = {.drop = 1};

    sit(&s, "plateau");
    set(&s, "patience", "1");
    co_plateau_see(s.cfg, 1, NAN, &p);
    CHECK(p.bad == 1 && p.seen == 0, "a nan is no best");
    co_plateau_see(s.cfg, 1, 3, &p);
    CHECK(p.best == 3 && p.bad == 0, "the first number is");
    co_plateau_see(s.cfg, 1, INFINITY, &p);
    co_plateau_see(s.cfg, 1, -INFINITY, &p);
    CHECK(p.best == 3 && p.drop == 0.1, "best %g, drop %g", p.best, p.drop);
    leave(&s);
}

TEST(a_plateau_s_mode_follows_from_what_it_watches)
{
    static const struct {
        const char *monitor, *mode;
        bool up;
    } want[] = {{"val/loss", "auto", false}, {"val/mae", "auto", false}, {"val/acc", "auto", true},
                {"val/acc5", "auto", true},  {"val/acc", "min", false},  {"val/loss", "max", true}};

    for (size_t i = 0; i < CO_COUNT(want); i++) {
        struct seat s;
        co_plateau p = {.drop = 1};
        sit(&s, "plateau");
        set(&s, "monitor", want[i].monitor);
        set(&s, "mode", want[i].mode);
        co_plateau_see(s.cfg, 1, 0.5, &p);
        co_plateau_see(s.cfg, 1, 0.6, &p);
        CHECK((p.best == 0.6) == want[i].up, "%s, %s", want[i].monitor, want[i].mode);
        CHECK(strcmp(co_plateau_monitor(s.cfg), want[i].monitor) == 0, "monitor %s", co_plateau_monitor(s.cfg));
        leave(&s);
    }
}

TEST(milestones_are_read_with_and_without_brackets_and_must_rise)
{
    static const char *const good[] = {"2,5", "[2,5]", " [ 2 , 5 ] ", "2,5,"};
    static const char *const bad[] = {"",    "null", "[]",   "two", "5,2",       "0,2",
                                      "2,2", "2;5",  "2,-5", "2.5", "9999999999"};
    struct seat s;

    sit(&s, "multistep");
    s.pace.steps_per_epoch = 4;
    for (size_t i = 0; i < CO_COUNT(good); i++) {
        set(&s, "milestones", good[i]);
        CHECK_OK(s.def->check(s.cfg));
        s.pace.step = 7;
        CHECK(s.def->lr(s.cfg, 1, &s.pace) == 1, "\"%s\" drops early", good[i]);
        s.pace.step = 20;
        CHECK(fabs(s.def->lr(s.cfg, 1, &s.pace) - 0.01) < 1e-17, "\"%s\": two drops", good[i]);
    }
    for (size_t i = 0; i < CO_COUNT(bad); i++) {
        set(&s, "milestones", bad[i]);
        CHECK_FAILS(s.def->check(s.cfg), CO_EINPUT, "schedule.milestones: \"");
    }
    leave(&s);
}

TEST(options_of_schedules_that_do_not_go_together_are_refused)
{
    struct seat s;

    sit(&s, "one_cycle");
    set(&s, "three_phase", "true");
    CHECK_OK(s.def->check(s.cfg));
    set(&s, "pct_start", "0.6");
    CHECK_FAILS(s.def->check(s.cfg), CO_EINPUT, "0.5 at most");
    leave(&s);
    sit(&s, "plateau");
    set(&s, "monitor", "null");
    CHECK_FAILS(s.def->check(s.cfg), CO_EINPUT, "try schedule.monitor=val/loss");
    leave(&s);
}
