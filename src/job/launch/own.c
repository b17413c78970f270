/* own.c -- our own training as the program of `cohort launch`, `cohort host` or --hosts:
 *
 *     cohort host -- train data=digits            the word `train`, if there is no program of that name
 *     cohort launch --nnodes=2 cohort train ...   this binary itself, by its name or path
 *
 * No worker is started. On every host the launcher's process becomes `cohort train`, with the meeting that
 * the launcher knows. Other hosts are sent /proc/self/exe train WORDS, which means the same everywhere,
 * whatever files they have.
 */
#include "job/launch/launch_int.h"

#include <string.h>
#include <sys/stat.h>

static bool is_this_binary(co_pool *pool, const char *word)
{
    const char *path = program_is_file(word) ? word : program_in_path(pool, word);
    struct stat a, b;

    return path && stat(path, &a) == 0 && stat(OWN_PROGRAM, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Where the words of the training begin; 0: it is another program. */
static int first_word(co_pool *pool, const launch_args *a)
{
    bool plain = a->n > 0 && !a->module && !a->no_python && !a->run_path;

    if (plain && strcmp(a->program[0], "train") == 0 && !program_is_file("train") &&
        !program_in_path(pool, "train"))
        return 1;
    if (plain && a->n > 1 && strcmp(a->program[1], "train") == 0 && is_this_binary(pool, a->program[0]))
        return 2;
    return 0;
}

/* Flags of the launcher that mean nothing to a training. */
static void tell_unused(const launch_args *a)
{
    static const char *const unused[] = {
        "--max-restarts",       "--log-dir",           "--redirects", "--tee",
        "--local-ranks-filter", "--log-prefix",        "--role",      "--stall-after",
        "--virtual-local-rank", "--legacy-local-rank", "--use-env",   NULL};
    const char *words[CO_COUNT(unused)];
    co_pool pool = {0};
    int n = launch_words(words, &pool, a, unused);

    for (int i = 0; i < n; i++)
        co_notice("%s has no effect on a training, which watches its own ranks and keeps their files in its "
                  "run folder",
                  words[i]);
    co_pool_fini(&pool);
}

co_err own_training(launch_args *a)
{
    co_pool pool = {0};
    int first = first_word(&pool, a), n = a->n - first;

    co_pool_fini(&pool);
    if (!first)
        return CO_OK;
    const char **program = co_array((size_t)n + 3, sizeof *program);
    if (!program)
        return CO_ENOMEM;
    program[0] = OWN_PROGRAM;
    program[1] = "train";
    memcpy(program + 2, a->program + first, (size_t)n * sizeof *program);
    co_free(a->program);
    a->program = program;
    a->n = n + 2;
    a->train = true;
    tell_unused(a);
    return CO_OK;
}

co_err plan_own_training(launch_plan *p, const launch_args *a)
{
    p->n_train = a->n - 1;
    p->train = co_pool_alloc(&p->pool, ((size_t)p->n_train + 1) * sizeof *p->train);
    if (!p->train)
        return CO_ENOMEM;
    for (int i = 0; i < p->n_train; i++)
        p->train[i] = (char *)(uintptr_t)a->program[i + 1];
    p->train[p->n_train] = NULL;
    return CO_OK;
}
