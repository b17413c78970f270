/* A host that is slower than the others is named once, with the likely reason.
 * The hosts report made-up figures. */
#include "roster/cast.h"

static const co_host_speed usual = {
    .weight = 1000, .compute_us = 5000, .input_us = 100, .cpus = 4, .threads = 4, .mhz = 3000};

/* Everybody reports; host b reports `its`. */
static void report(cast *all, int n, const co_host_speed *its)
{
    for (int i = 0; i < n; i++)
        co_roster_weigh(all->host[i].r, all->host[i].number, i == 1 ? its : &usual);
}

static void begin(cast *all, int n)
{
    for (int i = 0; i < n; i++)
        enter_as(all, i, whole_at_start);
    PLAY_UNTIL(all, in_view(all, n, 1));
    report(all, n, &usual);
}

TEST(a_slow_host_is_named_with_the_likely_reason)
{
    static const struct {
        co_host_speed its;
        const char *says;
    } rows[] = {
        {{.weight = 400, .compute_us = 12000, .input_us = 200, .cpus = 4, .threads = 4, .mhz = 3000, .queued = 55},
         "costs it 12.2 ms of a CPU, the others 5.1 ms. The likely reason: its CPUs are shared with other "
         "programs; its "
         "ranks wait for a CPU for 55 %"},
        {{.weight = 1000, .compute_us = 5000, .input_us = 9000, .cpus = 4, .threads = 4, .queued = 30},
         "it waits for its data (disk, decoding)"},
        {{.weight = 400, .compute_us = 12000, .cpus = 2, .threads = 4, .queued = 50},
         "its ranks have more threads than it has usable CPUs: 2"},
        {{.weight = 400, .compute_us = 12000, .cpus = 4, .threads = 4, .stolen = 40},
         "its CPUs are shared with other virtual machines, which take 40 %"},
        {{.weight = 400, .compute_us = 12000, .cpus = 4, .threads = 4, .mhz = 1200}, "at 1200 MHz"},
        {{.weight = 400, .compute_us = 12000, .cpus = 4, .threads = 4, .mhz = 3000}, "not found"},
        {{.weight = 400, .compute_us = 12000, .cpus = 4, .threads = 4, .queued = 90, .rehearsed = true},
         "it is slow on purpose (fault.host_slow)"},
    };

    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        cast all = cast_of(3, 3, 1);
        begin(&all, 3);
        PLAY_UNTIL(&all, (report(&all, 3, &rows[i].its), all.host[0].slow_lines && all.host[2].slow_lines));
        CHECK(test_contains(all.host[0].talk, "host b (127.0.0.1) is slow: a slice ") &&
                  test_contains(all.host[0].talk, rows[i].says),
              "row %zu: %s", i, all.host[0].talk);
        cast_close(&all);
    }
}

/* One slow measurement may be chance, two that are apart as well; and what is known is not said again. */
TEST(a_host_is_slow_after_two_measurements_in_a_row_and_is_named_once)
{
    co_host_speed slow = usual, nearly = usual;
    cast all = cast_of(2, 2, 1);

    slow.compute_us = 20000;
    nearly.compute_us = 7000;
    begin(&all, 2);
    report(&all, 2, &slow);
    report(&all, 2, &nearly);
    report(&all, 2, &slow);
    report(&all, 2, &usual);
    for (int i = 0; i < 4; i++)
        report(&all, 2, &nearly);
    /* after all of these */
    co_roster_cut(all.host[1].r, all.host[1].number, all.host[1].id, "for an answer");
    PLAY_UNTIL(&all, in_view(&all, 2, 2));
    CHECK(all.host[0].slow_lines == 0, "named without need: %s", all.host[0].talk);
    for (int i = 0; i < 6; i++)
        report(&all, 2, &slow);
    co_roster_cut(all.host[1].r, all.host[1].number, all.host[1].id, "for an answer");
    PLAY_UNTIL(&all, in_view(&all, 2, 3));
    CHECK(all.host[0].slow_lines == 1, "named %d times", all.host[0].slow_lines);
    cast_close(&all);
}
