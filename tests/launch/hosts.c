/* hosts.c -- see hosts.h. */
#include "hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"

pid_t launch_to(const ns_lan *lan, int i, const char *out, const char *env, const char *args)
{
    ns_enter(lan, i);
    pid_t pid = test_spawn(out, "TMPDIR=$PWD OMP_NUM_THREADS=1 %s exec %s launch %s", env, test_cohort(), args);
    ns_leave(lan);
    return pid;
}

pid_t launch(const ns_lan *lan, int i, const char *env, const char *args)
{
    char out[16];

    snprintf(out, sizeof out, "out%d", i);
    return launch_to(lan, i, out, env, args);
}

char *output_of(const char *path)
{
    char *text = NULL;
    size_t len;

    test_may_leak(); /* the output is kept until the end of the test */
    CHECK_OK(co_fs_read(&text, &len, path, 1 << 20));
    return text;
}

char *output(int i)
{
    char path[16];

    snprintf(path, sizeof path, "out%d", i);
    return output_of(path);
}

const char *token_of(uint8_t seed)
{
    static char env[4][64];
    char *at = env[seed % 4];
    co_token t = {{seed, 2}};

    memcpy(at, "COHORT_TOKEN=", 14);
    co_token_text(at + 13, &t);
    return at;
}

const char *token_env(void)
{
    return token_of(4);
}

bool is_file_there(void *path)
{
    return access(path, F_OK) == 0;
}

void two_running(const ns_lan *lan, pid_t pid[2])
{
    for (int i = 0; i < 2; i++)
        pid[i] = launch(lan, i, token_env(),
                        "--nnodes=2 --rdzv-endpoint=10.77.0.1:29400 --no-python sh -c"
                        " 'echo $$ > .b$RANK; mv .b$RANK began$RANK; exec sleep 50'");
    test_until(is_file_there, "began0", 20, "rank 0 to run");
    test_until(is_file_there, "began1", 20, "rank 1 to run");
}

void fault_row(const char *by, const char *fault, double began, double within, int status, int want,
               const char *text, const char *words)
{
    double took = co_now_s() - began;
    const char *at = strstr(text, words), *from = at;

    CHECK(status == want && at, "%s: status %d, wanted %d and \"%s\":\n%s", fault, status, want, words, text);
    CHECK(took < within, "%s: after %.1f s, not within %.0f s:\n%s", fault, took, within, text);
    while (from > text && from[-1] != '\n')
        from--;
    if (strncmp(from, "cohort: ", 8) == 0)
        from += 8;
    test_note("row: | %s | %.*s | %.1f | %d | %s |", fault, (int)strcspn(from, "\n"), from, took, status, by);
}

void fault_ends(const char *by, const char *fault, double began, double within, pid_t pid, int i, int want,
                const char *words)
{
    int status = test_wait(pid, within + 10);

    fault_row(by, fault, began, within, status, want, output(i), words);
}
