/* Completion and manual pages: both come from the tables; they are tested with a real shell and pager. */
#include <string.h>

#include "cli/runs.h"

/* Is `word` a line of its own? */
static bool has_line(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = text; (at = strstr(at, word)) != NULL; at += n)
        if ((at == text || at[-1] == '\n') && (at[n] == '\n' || at[n] == '\0'))
            return true;
    return false;
}

static void offers(const char *words, const char *candidate)
{
    test_run r = test_sh("$COHORT complete -- %s", words);

    CHECK(r.status == 0 && has_line(r.out, candidate), "complete %s: no %s in\n%s", words, candidate, r.out);
    free(r.out);
}

static void offers_not(const char *words, const char *candidate)
{
    test_run r = test_sh("$COHORT complete -- %s", words);

    CHECK(r.status == 0 && !has_line(r.out, candidate), "complete %s: %s", words, r.out);
    free(r.out);
}

TEST(candidates_are_commands_flags_keys_choices_and_files)
{
    offers("''", "train");
    offers("tr", "train");
    offers_not("tr", "test");
    offers("--v", "--version");
    offers("train --", "--config-dir");
    offers("train --", "--multirun");
    offers("train -", "-m");
    offers("test --split ''", "val");
    offers("train --config-dir ''", "<files>");
    offers("ckpt ''", "verify");
    offers("ckpt verify ''", "<files>");
    offers("train mod", "model=");
    offers("train ''", "trainer.");
    offers("train trainer.max_e", "trainer.max_epochs=");
    offers("train model=", "model=cnn");
    offers_not("train model=c", "model=mlp");
    offers("train model=cnn model.", "model.width=");
    offers_not("train model=cnn model.", "model.hidden=");
    offers("train model.", "model.hidden=");
    offers("train trainer.on_nan=", "trainer.on_nan=skip");
    offers("train test=", "test=false");
    offers("train ckpt_path=", "<files>");
    offers("train experiment=", "experiment=demo");
    offers_not("nonsense ''", "train");
    offers("completion ''", "bash");
    offers("completion ''", "zsh");
    offers("join --", "--log-dir");
    offers_not("join --", "--json");
    offers_not("join ''", "<files>");
    offers("logs --", "--json");
    offers_not("token ''", "<files>");
    offers("token --", "--help");
    offers("launch ''", "<files>");
    offers("launch --rdzv-backend=", "--rdzv-backend=c10d");
    offers_not("launch --rdzv-backend=s", "--rdzv-backend=c10d");
    offers("launch --rdzv-backend ''", "c10d");
    offers("launch --log-dir=", "<files>");
}

/* Types the line in a bash that has sourced the script, and asks for what readline would be given. */
static test_run typed(const char *line)
{
    return test_sh(
        "ln -sf $COHORT cohort; PATH=$PWD:$PATH bash -c 'source <(cohort completion bash); "
        "COMP_LINE=\"%s\"; COMP_POINT=${#COMP_LINE}; _cohort; printf \"%%s\\n\" \"${COMPREPLY[@]}\"'",
        line);
}

static void bash_offers(const char *line, const char *candidate)
{
    test_run r = typed(line);

    CHECK(r.status == 0 && has_line(r.out, candidate), "\"%s\": no %s in\n%s", line, candidate, r.out);
    free(r.out);
}

TEST(bash_completes_by_the_words_that_readline_sees)
{
    test_run r = test_sh("bash --version");
    if (r.status != 0)
        test_skip("bash is not installed");
    free(r.out);
    bash_offers("cohort tra", "train");
    bash_offers("cohort train model=", "cnn"); /* readline splits the word at = */
    bash_offers("cohort train optim=sgd optim.l", "optim.lr=");
    bash_offers("cohort test --split v", "val");
    bash_offers("cohort launch --rdzv-backend=c", "c10d");
    succeeds("mkdir some_run");
    bash_offers("cohort test ckpt_path=some", "some_run");
    bash_offers("cohort ckpt ls some", "some_run");
    r = test_sh("$COHORT completion bash > script && bash -n script");
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
}

TEST(zsh_completes_by_the_same_candidates)
{
    test_run r = test_sh("command -v zsh");
    if (r.status != 0)
        test_skip("zsh is not installed");
    free(r.out);
    r = test_sh(
        "ln -sf $COHORT cohort; $COHORT completion zsh > script; zsh -n script && PATH=$PWD:$PATH zsh -f -c '"
        "compdef() { : }; compadd() { print -l -- ${(P)@[-1]} }; source ./script; "
        "words=(cohort train model=); CURRENT=3; _cohort'");
    CHECK(r.status == 0 && has_line(r.out, "model=cnn"), "%s", r.out);
    free(r.out);
}

TEST(there_is_a_manual_page_for_every_command_and_every_key_is_in_one)
{
    test_run r = test_sh("set -e; $COHORT help --man > cohort.1; for c in $($COHORT complete -- ''); do "
                         "$COHORT help --man $c > cohort-$c.1; grep -q \"^.fB$c\" cohort.1; done; "
                         "tr -d '\\\\' < cohort-train.1 > plain");
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT help --man nonsense");
    CHECK(r.status == 2 && strstr(r.out, "no command \"nonsense\""), "%d %s", r.status, r.out);
    free(r.out);
    r = test_sh("$COHORT train --help --markdown | sed -n 's/^| `\\([^`]*\\)`.*/\\1/p' | sort -u > keys; "
                "test -s keys || "
                "echo no keys; sed -n 's/^fB\\([^=]*\\)fR=.*/\\1/p' plain | sort -u | comm -23 keys -");
    CHECK(r.out[0] == '\0', "not in cohort-train.1: %s", r.out);
    free(r.out);
    r = test_sh("command -v groff");
    if (r.status != 0)
        test_skip("groff is not installed");
    free(r.out);
    r = test_sh("for f in *.1; do groff -man -ww -z $f; done");
    CHECK(r.out[0] == '\0', "%s", r.out);
    free(r.out);
}
