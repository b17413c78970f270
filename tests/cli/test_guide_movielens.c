/* test_guide_movielens.c -- every command of docs/guides/movielens.md, in its order, in one folder. The
 * ratings are the made-up ones; user 15 is among them. */
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "harness.h"

/* Runs the command of a line such as "    $ cohort test ..."; other lines are passed over. */
static int run_line(char *text)
{
    static const char mark[] = "    $ cohort ";
    size_t n = strlen(mark);

    if (strncmp(text, mark, n) != 0)
        return 0;
    CHECK(text[strlen(text) - 1] != '\\', "one line per command: %s", text);
    test_run r = test_sh("$COHORT %s", text + n);
    CHECK(r.status == 0, "%s: exit status %d\n%s", text, r.status, r.out);
    if (strstr(text, "user=15"))
        CHECK(test_contains(r.out, "Comma, The (1995)"), "%s: %s", text, r.out);
    if (strstr(text, "--nproc_per_node="))
        CHECK(test_contains(r.out, "weights_sha256 "), "%s: %s", text, r.out);
    return 1;
}

TEST_WITHIN(every_command_of_the_guide_on_movielens_runs, 180)
{
    char *text;
    size_t len;
    int commands = 0;

    CHECK(test_sh("cp -r %s ml-latest-small", test_repo("tests/data/movielens/csv")).status == 0,
          "no ratings");
    CHECK_OK(co_fs_read(&text, &len, test_repo("docs/guides/movielens.md"), 1 << 20));
    for (char *at = text, *end; at && *at; at = end) {
        end = strchr(at, '\n');
        if (end)
            *end++ = 0;
        commands += run_line(at);
    }
    CHECK(commands >= 10, "only %d commands in the guide", commands);
    free(text);
}
