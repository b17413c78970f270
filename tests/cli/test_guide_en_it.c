/* test_guide_en_it.c -- every command of docs/guides/en-it-transformer.md, in its order, in one folder,
 * with made-up pairs and a smaller model. */
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/str.h"
#include "harness.h"

static void make_pairs(void)
{
    co_str text = {0};

    for (int i = 0; i < 48; i++)
        co_str_addf(&text, "The %s is number %d.\tIl %s ha il numero %d.\n", i % 2 ? "cat" : "dog", i,
                    i % 2 ? "gatto" : "cane", i);
    CHECK_OK(co_fs_mkdirs("en-it"));
    CHECK_OK(co_fs_write_atomic("en-it/tatoeba.en-it.tsv", co_str_text(&text), text.len));
    co_str_fini(&text);
}

/* Runs the command of a line such as "    $ cohort test ..."; other lines are passed over. */
static int run_line(char *text)
{
    static const char mark[] = "    $ cohort ";
    static const char small[] = "model.layers=1 model.heads=2 model.d_ff=32 model.d_model=16 logger=none";
    size_t n = strlen(mark);

    if (strncmp(text, mark, n) != 0)
        return 0;
    test_run r = test_sh("$COHORT %s %s", text + n, strncmp(text + n, "train", 5) == 0 ? small : "");
    CHECK(r.status == 0, "%s: exit status %d\n%s", text, r.status, r.out);
    free(r.out);
    return 1;
}

TEST(every_command_of_the_guide_on_translation_runs)
{
    char *text;
    size_t len;
    int commands = 0;

    make_pairs();
    CHECK_OK(co_fs_read(&text, &len, test_repo("docs/guides/en-it-transformer.md"), 1 << 20));
    for (char *at = text, *end; at && *at; at = end) {
        end = strchr(at, '\n');
        if (end)
            *end++ = 0;
        commands += run_line(at);
    }
    CHECK(commands >= 6, "only %d commands in the guide", commands);
    free(text);
}
