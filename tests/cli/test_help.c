/* Help: pages that fit the terminal, help on a group, a key or a name, commands that are planned, the
 * program's name. */
#include "cli/runs.h"

#include <string.h>

static int lines_of(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void fits(const char *text, size_t width, const char *what)
{
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, "\r\n");
        CHECK(len <= width, "%s: %zu columns, not %zu: %.*s", what, len, width, (int)len, at);
        at += len + strspn(at + len, "\r\n");
    }
}

TEST(the_first_page_of_train_help_fits_two_screens_of_80_by_24)
{
    test_run r = test_sh("ln -s $COHORT cohort; ./cohort train --help");

    CHECK(r.status == 0 && lines_of(r.out) <= 46, "status %d, %d lines:\n%s", r.status, lines_of(r.out), r.out);
    fits(r.out, 80, "train --help");
    free(r.out);
}

static const char *const pages[] = {"",
                                    "help",
                                    "train --help",
                                    "train --help all",
                                    "help train",
                                    "help plan",
                                    "help test",
                                    "help predict",
                                    "help launch",
                                    "help host",
                                    "help join",
                                    "help logs",
                                    "help ckpt",
                                    "help bench",
                                    "help ps",
                                    "help attach",
                                    "help stop",
                                    "help token",
                                    "help completion",
                                    "train --help habits",
                                    "bench kills --help"};

TEST(no_help_page_is_wider_than_80_columns_where_there_is_no_terminal)
{
    for (size_t i = 0; i < CO_COUNT(pages); i++) {
        test_run r = test_sh("ln -sf $COHORT cohort; ./cohort %s", pages[i]);
        CHECK(r.status == 0 && r.out[0], "%s: status %d\n%s", pages[i], r.status, r.out);
        fits(r.out, 80, pages[i]);
        free(r.out);
    }
}

/* A row of a table, a flag, or words to type. */
static bool is_row(const char *line, size_t len)
{
    size_t indent = strspn(line, " ");
    const char *gap = len > indent ? strstr(line + indent, "  ") : NULL;

    return len == indent || line[indent] == '-' || strncmp(line + indent, "build/cohort", 12) == 0 ||
           (gap && gap < line + len);
}

/* A line of one or two words between two lines of the same paragraph is what a wrap left over. */
static void has_no_leftover(const char *text, const char *what)
{
    const char *line[3] = {"", "", text};
    size_t len[3] = {0, 0, strcspn(text, "\n")};

    while (*line[2]) {
        int words = 0;
        for (size_t i = 0; i < len[1]; i++)
            words += line[1][i] != ' ' && (i == 0 || line[1][i - 1] == ' ');
        bool prose = !is_row(line[0], len[0]) && !is_row(line[1], len[1]) && !is_row(line[2], len[2]);
        bool level =
            strspn(line[0], " ") == strspn(line[1], " ") && strspn(line[1], " ") == strspn(line[2], " ");
        CHECK(!prose || !level || words > 2, "%s: a line of its own for \"%.*s\"", what, (int)len[1], line[1]);
        for (int i = 0; i < 2; i++)
            line[i] = line[i + 1], len[i] = len[i + 1];
        line[2] += len[2] + (line[2][len[2]] == '\n');
        len[2] = strcspn(line[2], "\n");
    }
}

TEST(no_help_page_of_a_command_has_words_that_a_wrap_left_over)
{
    /* build/cohort is longer than the name in the texts, so that lines must be wrapped */
    test_run all = test_sh("mkdir build; ln -s $COHORT build/cohort; build/cohort --help");
    const char *at = strstr(all.out, "Commands:\n");
    int n = 0;

    CHECK(at, "%s", all.out);
    for (at = strchr(at, '\n') + 1; strncmp(at, "  ", 2) == 0; at += strcspn(at, "\n") + 1) {
        char name[32];
        if (at[2] == ' ')
            continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 2, " "), at + 2);
        test_run r = test_sh("build/cohort %s --help", name);
        CHECK(r.status == 0, "%s: status %d\n%s", name, r.status, r.out);
        fits(r.out, 80, name);
        has_no_leftover(r.out, name);
        CHECK(!test_contains(r.out, "\n    build/cohort") && !test_contains(r.out, "cohort \\\n"), "%s: %s",
              name, r.out);
        free(r.out);
        n++;
    }
    CHECK(n >= 15, "only %d commands:\n%s", n, all.out);
    free(all.out);
}

TEST(a_habit_that_does_not_fit_its_line_goes_on_below_itself)
{
    test_run r = test_sh("$COHORT train --help habits");

    CHECK(test_contains(r.out, "\n  train: refused; evaluating is a command of its own: cohort test\n"
                               "      ckpt_path=FOLDER\n"),
          "%s", r.out);
    free(r.out);
}

TEST(help_is_as_wide_as_the_terminal_at_most)
{
    static const char *const narrow[] = {"train --help", "help launch", "train --help all", "help stop"};

    for (size_t i = 0; i < CO_COUNT(narrow); i++) {
        test_run r = test_sh(
            "ln -sf $COHORT cohort; script -qec 'stty cols 50 rows 24; ./cohort %s' /dev/null", narrow[i]);
        CHECK(r.status == 0, "%s: status %d\n%s", narrow[i], r.status, r.out);
        fits(r.out, 50, narrow[i]);
        free(r.out);
    }
}

TEST(help_on_a_key_a_name_or_a_group_shows_that_alone)
{
    static const struct {
        const char *word, *has, *has_not;
        int status;
    } rows[] = {{"trainer.max_steps", "trainer.max_steps (default", "trainer.max_epochs (default", 0},
                {"optim", "optim=adamw", "trainer.devices", 0},
                {"callbacks.early_stopping", "callbacks.early_stopping.patience (default", "save_top_k", 0},
                {"model.optimizer.lr", "optim.lr (default 1e-3", "optim.momentum", 0},
                {"model.stem=cifar", "model=resnet18, model=resnet34", "model.hidden", 0},
                {"all", "trainer.max_steps", NULL, 0},
                {"trainer.max_step", "did you mean trainer.max_steps?", NULL, 2}};

    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        test_run r = test_sh("$COHORT train --help %s", rows[i].word);
        CHECK(r.status == rows[i].status && test_contains(r.out, rows[i].has), "%s: status %d\n%s",
              rows[i].word, r.status, r.out);
        CHECK(!rows[i].has_not || !test_contains(r.out, rows[i].has_not), "%s shows %s:\n%s", rows[i].word,
              rows[i].has_not, r.out);
        free(r.out);
    }
}

TEST(every_key_on_the_first_page_has_help_of_its_own)
{
    test_run r =
        test_sh("set -e; n=0; for k in $($COHORT train --help | grep -o '^  [a-z_.]*=[A-Zax]' | tr -d ' ' |"
                " sed 's/=.*//'); do $COHORT train --help $k >/dev/null || echo no help on $k; n=$((n+1)); "
                "done; test $n -ge 8");

    CHECK(r.status == 0 && !test_contains(r.out, "no "), "%s", r.out);
    free(r.out);
}

TEST(commands_of_the_design_that_do_not_exist_yet_say_what_to_do_meanwhile)
{
    static const char *const names[] = {"fit", "doctor", "gcp", "k8s", "slurm", "ssh"};

    for (size_t i = 0; i < CO_COUNT(names); i++) {
        test_run r = test_sh("$COHORT %s; test $? = 2 && $COHORT help %s", names[i], names[i]);
        CHECK(r.status == 2 && test_contains(r.out, "planned, not built yet") &&
                  test_contains(r.out, "meanwhile:\n  ") && !test_contains(r.out, "did you mean"),
              "%s: status %d\n%s", names[i], r.status, r.out);
        free(r.out);
    }
    test_run r = test_sh("$COHORT trian");
    CHECK(r.status == 2 && test_contains(r.out, "did you mean train?"), "%s", r.out);
    free(r.out);
}

TEST(lines_to_type_name_the_program_as_it_was_called)
{
    test_run r = test_sh("mkdir -p build 'a b'; ln -s $COHORT build/cohort; ln -s $COHORT 'a b/cohort'; "
                         "build/cohort train " SMALL " trainer.max_steps=2 run.dir=r 2>&1");

    CHECK(r.status == 0 && test_contains(r.out, "next      build/cohort test ckpt_path=r\n") &&
              test_contains(r.out, "reproduce: build/cohort train "),
          "status %d\n%s", r.status, r.out);
    free(r.out);
    r = test_sh("'a b/cohort' train " SMALL " trainer.max_steps=2 run.dir=q 2>&1");
    CHECK(test_contains(r.out, "next      'a b/cohort' test ckpt_path=q\n"), "%s", r.out);
    free(r.out);
    r = test_sh("PATH=$PWD/build:$PATH; cohort train " SMALL
                " trainer.max_steps=2 run.dir=p 2>&1; cohort; cohort help stop");
    CHECK(test_contains(r.out, "next      cohort test ckpt_path=p\n") &&
              test_contains(r.out, "\n  cohort train --help ") &&
              test_contains(r.out, "\n  cohort stop 12345\n"),
          "%s", r.out);
    free(r.out);
    r = test_sh("build/cohort; build/cohort help stop; build/cohort completion bash | tail -1");
    CHECK(test_contains(r.out, "\n  build/cohort train --help ") &&
              test_contains(r.out, "\n  build/cohort stop 12345\n") &&
              test_contains(r.out, "complete -F _cohort cohort"),
          "%s", r.out);
    free(r.out);
}

TEST(the_help_on_hosts_names_every_way_to_meet)
{
    static const char *const says[] = {"--hosts node1,node2", "--nnodes=2 --rdzv-endpoint=node1:29400",
                                       "host -- train",       "srun cohort train",
                                       "mpirun -n 2",         "NODE_RANK"};
    test_run r = test_sh("$COHORT train --help hosts");

    for (size_t i = 0; i < CO_COUNT(says); i++)
        CHECK(r.status == 0 && test_contains(r.out, says[i]), "no \"%s\": %s", says[i], r.out);
    free(r.out);
}
