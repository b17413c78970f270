/* What frames carry: every field that comes in is bounded. */
#include "roster/rosters.h"

#include <signal.h>

#include "roster/net/frame_int.h"

static co_leave unpacked(const char *json)
{
    json_t *body = NULL;
    co_leave how;

    CHECK_OK(co_json_parse(&body, json, strlen(json), "test"));
    leave_unpack(&how, body);
    json_decref(body);
    return how;
}

TEST(a_request_to_end_goes_through_a_frame_of_the_roster_unchanged)
{
    for (int origin = CO_ORIGIN_JOB; origin <= CO_ORIGIN_HOST; origin++) {
        co_leave how = {.sig = SIGUSR1, .origin = origin, .status = 75, .host = "node2", .text = "SIGINT on b"},
                 back;
        json_t *body = leave_pack(&how);
        leave_unpack(&back, body);
        json_decref(body);
        CHECK(back.sig == how.sig && back.origin == how.origin && back.status == how.status &&
                  strcmp(back.host, how.host) == 0 && strcmp(back.text, how.text) == 0,
              "origin %d came back as %d, signal %d, status %d, host %s: %s", origin, back.origin, back.sig,
              back.status, back.host, back.text);
    }
}

TEST(a_request_to_end_with_fields_out_of_range_names_no_signal_and_blames_the_host)
{
    static const char *const bad[] = {
        "-1",   "65", "4294967296", "9223372036854775807", "-9223372036854775808",
        "9",    "19", "1.5",        "\"SIGTERM\"",         "null",
        "[15]", "{}"};
    char json[200];

    for (size_t i = 0; i < CO_COUNT(bad); i++) {
        snprintf(json, sizeof json, "{\"sig\": %s, \"origin\": 0, \"status\": 1}", bad[i]);
        CHECK(unpacked(json).sig == 0, "sig %s became %d", bad[i], unpacked(json).sig);
        snprintf(json, sizeof json, "{\"sig\": 15, \"origin\": %s, \"status\": %s}", bad[i], bad[i]);
        co_leave how = unpacked(json);
        CHECK(how.sig == 15 && how.origin == CO_ORIGIN_HOST && how.status >= 0 && how.status <= 255,
              "origin %s became %d, status %d", bad[i], how.origin, how.status);
    }
    co_leave how = unpacked("{\"host\": \"a\\u001b[2Jb\", \"text\": \"\\u0007\"}");
    CHECK(strcmp(how.host, "a?[2Jb") == 0 && strcmp(how.text, "?") == 0, "%s, %s", how.host, how.text);
}

TEST(terms_of_a_roster_are_compared_as_values_and_not_as_they_are_printed)
{
    host_name here = {.name = "a", .addr = "10.0.0.1"}, there = {.name = "b", .addr = "10.0.0.2"};
    char to_b[1024], to_a[1024];
    co_terms a = {.run_id = "r", .min_hosts = 2, .max_hosts = 2, .version = "1.0"}, b = a;

    CHECK(terms_agree(to_b, to_a, sizeof to_b, &a, &b, &here, &there), "%s", to_b);
    memset(a.program, 'x', 250); /* a message shows the first 240 characters */
    memset(b.program, 'x', 249);
    CHECK(!terms_agree(to_b, to_a, sizeof to_b, &a, &b, &here, &there), "two programs count as one");
    CHECK(test_contains(to_b, "Every host must run the same program"), "%s", to_b);
}
