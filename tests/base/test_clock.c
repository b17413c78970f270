#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

TEST(the_monotonic_clock_never_goes_back)
{
    uint64_t last = co_now_ns();
    for (int i = 0; i < 100000; i++) {
        uint64_t t = co_now_ns();
        CHECK(t >= last, "%llu after %llu", (unsigned long long)t, (unsigned long long)last);
        last = t;
    }
    CHECK(fabs(co_now_s() - 1e-9 * (double)co_now_ns()) < 1, "seconds and nanoseconds disagree");
}

TEST(the_wall_clock_is_the_systems)
{
    CHECK(fabs(co_wall_s() - (double)time(NULL)) < 5, "%f", co_wall_s());
}

TEST(a_date_is_local_time_and_empty_when_it_does_not_fit)
{
    char text[32];
    setenv("TZ", "UTC-2", 1); /* POSIX counts westward, so this zone is two hours ahead of UTC */
    tzset();
    co_date(text, sizeof text, "%Y-%m-%d %H:%M:%S", 86400.75);
    CHECK(strcmp(text, "1970-01-02 02:00:00") == 0, "%s", text);
    co_date(text, 5, "%Y-%m-%d", 0);
    CHECK(text[0] == '\0', "%s", text);
}
