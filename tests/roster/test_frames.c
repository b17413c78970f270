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

static co_err round_of(co_round *r, const char *json)
{
    json_t *body = NULL;

    CHECK_OK(co_json_parse(&body, json, strlen(json), "test"));
    co_err err = round_unpack(r, body);
    json_decref(body);
    return err;
}

TEST(a_round_whose_numbers_contradict_each_other_is_refused)
{
    static const char form[] =
        "{\"number\": %s, \"restarts\": 0, \"hosts\": %s, \"my_host\": %s, \"first_rank\": %s,"
        " \"world\": %s, \"master_port\": %s, \"master_addr\": \"a\", \"my_addr\": \"b\"}";
    static const char *const wrong[][6] = {
        {"1", "2", "2", "0", "4", "29500"},          /* my_host is not one of the hosts */
        {"1", "2", "1", "2147483647", "4", "29500"}, /* first_rank + workers overflows */
        {"1", "2", "1", "4", "4", "29500"},          /* no rank of the world is left */
        {"1", "2", "1", "2", "4", "0"},              /* no port */
        {"1", "2", "1", "2", "4", "65536"},
        {"1", "2", "1", "2", "4", "null"},
        {"4294967295", "2", "1", "2", "4", "1"}, /* HELLO could not name it again */
        {"0", "2", "1", "2", "4", "1"},
        {"1", "0", "0", "0", "4", "1"},
        {"1", "2", "1", "-1", "4", "1"},
        {"1", "2", "1", "0", "2147483648", "1"},
    };
    char json[400];
    co_round r;

    for (size_t i = 0; i < CO_COUNT(wrong); i++) {
        const char *const *w = wrong[i];
        snprintf(json, sizeof json, form, w[0], w[1], w[2], w[3], w[4], w[5]);
        CHECK_FAILS(round_of(&r, json), CO_EFORMAT, "a round");
    }
    snprintf(json, sizeof json, form, "2147483647", "2", "1", "2", "4", "29500");
    CHECK_OK(round_of(&r, json));
    CHECK(r.hosts == 2 && r.my_host == 1 && r.first_rank == 2 && r.world == 4 && r.master_port == 29500,
          "%d hosts, host %d, rank %d of %d", r.hosts, r.my_host, r.first_rank, r.world);
}

TEST(text_from_another_host_has_no_control_characters_and_ends_with_a_whole_character)
{
    static const char *const cases[][2] = {
        {"a\\u009b2Jb", "a?2Jb"},              /* C1: the one-character form of ESC [ */
        {"\\u0080\\u009f\\u00a0", "??\u00a0"}, /* the first and last of C1, and the first that is none */
        {"1234567\\u00e9", "1234567"},         /* 8 bytes with the NUL: the last character does not fit */
        {"12345\\u00e9", "12345\u00e9"},
    };
    char json[100], out[8];

    for (size_t i = 0; i < CO_COUNT(cases); i++) {
        json_t *body = NULL;
        snprintf(json, sizeof json, "{\"text\": \"%s\"}", cases[i][0]);
        CHECK_OK(co_json_parse(&body, json, strlen(json), "test"));
        field_text(out, sizeof out, body, "text");
        json_decref(body);
        CHECK(strcmp(out, cases[i][1]) == 0, "case %zu: \"%s\"", i, out);
    }
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
