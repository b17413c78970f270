/* Settings, netrc, the login, and rows. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "wandb_test.h"

static void clean(void)
{
    static const char *const names[] = {
        "WANDB_MODE",      "WANDB_DISABLED", "WANDB_RESUME",   "WANDB_PROJECT", "WANDB_ENTITY",
        "WANDB_RUN_GROUP", "WANDB_NAME",     "WANDB_TAGS",     "WANDB_NOTES",   "WANDB_RUN_ID",
        "WANDB_DIR",       "WANDB_API_KEY",  "WANDB_BASE_URL", "WANDB_SILENT",  "WANDB_HTTP_TIMEOUT",
        "WANDB_JOB_TYPE",  "NETRC"};
    for (size_t i = 0; i < CO_COUNT(names); i++)
        unsetenv(names[i]);
    setenv("HOME", "/nonexistent", 1);
}

static const co_wandb_facts facts = {"run", "task", "node1"};

TEST(keys_of_the_configuration_win_over_wandb_variables_which_win_over_defaults)
{
    wandb_settings s;
    clean();
    CHECK_OK(settings_read(&s, &(co_wandb_cfg){0}, &facts));
    CHECK(strcmp(s.project, "task") == 0 && !s.entity && !s.id && strcmp(s.dir, "run") == 0 && !s.key &&
              s.mode == CO_WANDB_ONLINE && strcmp(s.base_url, "https://api.wandb.ai") == 0,
          "%s %s", s.project, s.base_url);
    settings_fini(&s);
    setenv("WANDB_PROJECT", "p", 1);
    setenv("WANDB_ENTITY", "e", 1);
    setenv("WANDB_RUN_GROUP", "g", 1);
    setenv("WANDB_NAME", "n", 1);
    setenv("WANDB_TAGS", "a, b,,c", 1);
    setenv("WANDB_NOTES", "x", 1);
    setenv("WANDB_RUN_ID", "id1", 1);
    setenv("WANDB_DIR", "/tmp", 1);
    setenv("WANDB_BASE_URL", "http://here:8080/", 1);
    setenv("WANDB_MODE", "dryrun", 1);
    setenv("WANDB_RESUME", "must", 1);
    setenv("WANDB_SILENT", "true", 1);
    setenv("WANDB_HTTP_TIMEOUT", "7", 1);
    CHECK_OK(settings_read(&s, &(co_wandb_cfg){.project = "mine", .tags = "[\"z\"]"}, &facts));
    CHECK(strcmp(s.project, "mine") == 0 && strcmp(s.entity, "e") == 0 && strcmp(s.group, "g") == 0 &&
              strcmp(s.name, "n") == 0 && strcmp(s.notes, "x") == 0 && strcmp(s.id, "id1") == 0 &&
              strcmp(s.dir, "/tmp") == 0 && strcmp(s.base_url, "http://here:8080") == 0 &&
              s.mode == CO_WANDB_OFFLINE && s.resume == CO_WANDB_MUST && s.silent && s.timeout_s == 7,
          "%s", s.base_url);
    CHECK(json_array_size(s.tags) == 1 && strcmp(json_string_value(json_array_get(s.tags, 0)), "z") == 0,
          "tags");
    settings_fini(&s);
    CHECK_OK(settings_read(&s, &(co_wandb_cfg){0}, &facts));
    CHECK(json_array_size(s.tags) == 3 && strcmp(json_string_value(json_array_get(s.tags, 1)), "b") == 0,
          "tags");
    settings_fini(&s);
}

TEST(a_wandb_variable_that_means_nothing_is_refused_with_what_it_may_be)
{
    static const struct {
        const char *name, *value, *says;
    } rows[] = {{"WANDB_MODE", "onlien", "WANDB_MODE=onlien means nothing; it may be online, offline"},
                {"WANDB_RESUME", "perhaps", "allow, must"},
                {"WANDB_RUN_ID", "a/b", "WANDB_RUN_ID=a/b: an id has no /"},
                {"WANDB_BASE_URL", "api.wandb.ai", "does not begin with http"},
                {"WANDB_HTTP_TIMEOUT", "-1", "no number of seconds"},
                {"WANDB_API_KEY", "short", "WANDB_API_KEY is no W&B key"}};
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        wandb_settings s;
        clean();
        setenv(rows[i].name, rows[i].value, 1);
        CHECK_FAILS(settings_read(&s, &(co_wandb_cfg){0}, &facts), CO_EINPUT, rows[i].says);
    }
}

TEST(netrc_has_the_key_of_each_service_by_its_host)
{
    static const char text[] = "# comment machine api.wandb.ai password no\n"
                               "machine example.org login a password b\n"
                               "macdef init\nmachine api.wandb.ai password no\n\n"
                               "machine api.wandb.ai\n\tlogin user\n\tpassword \"the key\"\n"
                               "machine here:8080 login user password two\ndefault login x password three\n";
    static const struct {
        const char *machine, *key;
    } rows[] = {{"example.org", "b"}, {"api.wandb.ai", "the key"}, {"here:8080", "two"}, {"other", NULL}};
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        char *key = netrc_find(text, sizeof text - 1, rows[i].machine);
        CHECK((!key && !rows[i].key) || (key && rows[i].key && strcmp(key, rows[i].key) == 0), "%s: %s",
              rows[i].machine, key);
        co_http_wipe(key);
    }
    for (size_t cut = 0; cut < sizeof text; cut++) /* at any byte */
        co_http_wipe(netrc_find(text, cut, "api.wandb.ai"));
    co_str out = {0};
    netrc_put(&out, text, sizeof text - 1, "api.wandb.ai", "user", "new");
    char *key = netrc_find(out.p, out.len, "api.wandb.ai"), *other = netrc_find(out.p, out.len, "here:8080");
    CHECK(strcmp(key, "new") == 0 && strcmp(other, "two") == 0 && !test_contains(out.p, "the key") &&
              test_contains(out.p, "default login x"),
          "%s", out.p);
    co_http_wipe(key);
    co_http_wipe(other);
    co_str_fini(&out);
}

TEST(cohort_wandb_login_stores_the_key_for_its_owner_alone_and_shows_it_nowhere)
{
    struct stat st;
    test_run r = test_sh(
        "export HOME=$PWD; unset NETRC WANDB_BASE_URL; printf 'machine a login b password c' > .netrc;"
        "chmod 644 .netrc; echo 0123456789abcdef0123456789abcdef01234567 | $COHORT wandb login");
    CHECK(r.status == 0 && test_contains(r.out, "api.wandb.ai") && !test_contains(r.out, "abcdef"), "%d %s",
          r.status, r.out);
    CHECK(stat(".netrc", &st) == 0 && (st.st_mode & 0777) == 0600, "mode %o", st.st_mode);
    r = test_sh("cat .netrc");
    CHECK(test_contains(r.out,
                        "machine a login b password c\nmachine api.wandb.ai\n  login user\n  password 0123"),
          "%s", r.out);
    r = test_sh(
        "export HOME=$PWD; unset NETRC; echo short | $COHORT wandb login --host http://here:80; cat .netrc");
    CHECK(test_contains(r.out, "no W&B key") && !test_contains(r.out, "here"), "%s", r.out);
    r = test_sh("$COHORT wandb login 0123456789abcdef0123456789abcdef01234567");
    CHECK(r.status == 2 && test_contains(r.out, "no key on the command line"), "%d %s", r.status, r.out);
    r = test_sh("$COHORT wandb; $COHORT wandb sync; $COHORT wandb sync nowhere; $COHORT wandb --nonsense");
    CHECK(test_contains(r.out, "login or sync?") && test_contains(r.out, "which run?") &&
              test_contains(r.out, "nowhere is no run folder") &&
              test_contains(r.out, "--nonsense is not known"),
          "%s", r.out);
}

TEST(each_scalar_is_in_one_row_and_the_rows_of_a_step_have_growing_steps)
{
    row_maker r = {.last_step = -1};
    bool is_new;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < 5000; i++) {
            CHECK_OK(co_seen_add_at(&r.seen, &is_new, i / 2, i % 2 ? "a" : "b"));
            CHECK(is_new == (pass == 0), "scalar %d, pass %d", i, pass);
        }
    static const struct {
        int64_t step, row_step;
    } rows[] = {{1, 1}, {10, 10}, {10, 11}, {10, 12}, {11, 13}, {20, 20}};
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        r.step = rows[i].step;
        int64_t got = rows_close(&r);
        CHECK(got == rows[i].row_step, "row %zu: %lld", i, (long long)got);
    }
    rows_fini(&r);
}
