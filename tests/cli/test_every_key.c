/* Every key of the option tables gets unexpected values: the answer must be a plan or one error message.
 *
 * Each key has a process of its own, so that a crash or a hang is reported with the key. Nothing is started:
 * the plan has read all keys. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/runs.h"
#include "cli/train_int.h"

enum { DEADLINE_S = 20 };

static const char *const odd[] = {
    "null", "", "99999999999999999999", "9000000000000000000", "1e300", "-1", "-1e30", "[1,2]", "0.5", "nan"};

/* The first line of the error message; "" if there is a plan. */
static void plan_of(char *said, size_t room, const char *choice, const char *key, const char *value)
{
    char name[] = "train", word[512], group[128];
    char *argv[] = {name, "trainer.devices=1", "data=digits", "model=mlp", "model.hidden=16", group, word};
    int argc = 7;
    line l;
    training s = {0};

    if (strncmp(choice, "model", 5) == 0)
        argv[4] = "seed=0";
    snprintf(group, sizeof group, "%s", choice);
    snprintf(word, sizeof word, "%s=%s", key, value);
    co_err err = line_parse(&l, argc, argv, true, NULL);
    if (!err) {
        err = training_plan(&s, &l);
        line_free(&l);
    }
    snprintf(said, room, "%s", err ? co_errmsg() : "");
    CHECK(!err || (co_exit_of(err) == CO_EXIT_USAGE && *said), "%s: error %d \"%s\"", word, (int)err, said);
    training_close(&s);
}

/* Run in a child: 0 if every value had an answer. */
static void try_key(const char *choice, const char *key)
{
    char said[4096];

    for (size_t i = 0; i < CO_COUNT(odd); i++) {
        FILE *last = fopen("last", "w");
        CHECK(last && fprintf(last, "%s %s=%s", choice, key, odd[i]) > 0, "cannot note the value");
        fclose(last);
        plan_of(said, sizeof said, choice, key, odd[i]);
        CHECK(!strchr(said, '\n'), "%s=%s: more than a line: %s", key, odd[i], said);
    }
}

static int tried;

static void answers(const char *choice, const char *key)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        alarm(DEADLINE_S);
        co_say_to(NULL, NULL);
        if (!freopen("said", "w", stderr))
            _exit(3);
        try_key(choice, key);
        _exit(0);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid, "fork");
    test_run r = test_sh("cat last said | tail -c 600");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %s %d: %s", key,
          WIFSIGNALED(status) ? "signal" : "exit",
          WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), r.out);
    free(r.out);
    tried++;
}

TEST_LONG_WITHIN(every_key_answers_odd_values_with_a_plan_or_a_sentence, 120)
{
    const co_conf_spec *spec = app_conf_spec(NULL);
    char key[256], choice[256];

    for (int t = 0; t < spec->n_tables; t++)
        for (const co_option *o = spec->tables[t].options; o->key; o++) {
            snprintf(key, sizeof key, "%s%s", spec->tables[t].prefix, o->key);
            answers("seed=0", key);
        }
    for (int g = 0; g < spec->n_groups; g++) {
        answers("seed=0", spec->groups[g].name);
        for (int r = 0; r < spec->groups[g].n_rows; r++) {
            const co_conf_row *row = &spec->groups[g].rows[r];
            snprintf(choice, sizeof choice, "%s=%s", spec->groups[g].name, row->name);
            for (const co_option *o = row->options; o->key; o++) {
                snprintf(key, sizeof key, "%s.%s", spec->groups[g].name, o->key);
                answers(choice, key);
            }
        }
    }
    test_note("%d keys, %d values each", tried, (int)CO_COUNT(odd));
}
