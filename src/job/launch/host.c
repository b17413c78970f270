/* host.c -- `cohort host`: the first host of a job that other hosts join with a code instead of an address.
 * It listens and shows a code that holds its addresses, its port and the token. `cohort join` on the other
 * hosts asks for the code and gets everything else from this host.
 */
#include "job/launch/launch_int.h"

#include <string.h>

#include "roster/code.h"

const char co_host_usage[] =
    "  cohort host train.py --epochs 10                          this host and one more\n"
    "  cohort host --nnodes=4 --nproc-per-node=8 -- train.py     this one and three more\n"
    "  cohort host --nnodes=1:4 --max-restarts=3 -- train.py     starts alone, up to three join\n"
    "  cohort host -- train data=digits model=cnn                `cohort train` on both\n\n"
    "  It prints a code. `cohort join` on the other hosts asks for the code and runs\n"
    "  the same program there. The code is a secret: whoever has it can join the job.\n\n"
    "  --nnodes N|MIN:MAX    hosts, this one among them (default 2)\n"
    "  --nproc-per-node N    workers on each host (default 1)\n"
    "  --local-addr HOST     this host's address, as the other hosts reach it\n"
    "  --master-port PORT    where it listens (default: any free port)\n"
    "  --log-dir FOLDER      files on every host; cohort logs shows them as one\n"
    "\n  The other flags of `cohort launch --help` apply to all hosts.\n";

static co_err refuse_flag(const char *name)
{
    return co_fail(
        CO_EINPUT,
        "host: %s does not go with `cohort host`, which is the first of several hosts and waits for the "
        "others: leave it out, or use `cohort launch`",
        name);
}

static co_err choose_place(launch_args *a, co_pool *pool)
{
    if (a->standalone)
        return refuse_flag("--standalone");
    if (a->node_rank)
        return refuse_flag("--node-rank");
    if (a->hosts || a->hostfile)
        return refuse_flag(a->hosts ? "--hosts" : "--hostfile");
    if (a->ssh)
        return refuse_flag("--ssh");
    if (a->backend && strcmp(a->backend, "static") != 0 && strcmp(a->backend, "c10d") != 0)
        return refuse_flag("--rdzv-backend");
    if (!a->nnodes)
        a->nnodes = "2";
    if (strcmp(a->nnodes, "1") == 0)
        return co_fail(CO_EINPUT, "host: --nnodes=1 leaves nobody to join: `cohort launch` runs on one host");
    if (!a->endpoint && a->master_addr)
        a->endpoint = co_pool_printf(pool, "%s:%s", a->master_addr, a->master_port ? a->master_port : "0");
    if (!a->endpoint)
        a->endpoint = co_pool_printf(pool, ":%s", a->master_port ? a->master_port : "0");
    if (!a->endpoint)
        return CO_ENOMEM;
    return a->rdzv_id ? CO_OK : name_job(pool, &a->rdzv_id);
}

/* The description of the job that joiners get; owned by the caller. */
static char *plan_words(const launch_args *a, co_pool *pool)
{
    size_t most = JOB_FLAGS_MOST + LAUNCH_ENV_MOST + 1 + (size_t)a->n;
    const char **words = co_pool_alloc(pool, most * sizeof *words), *env[LAUNCH_ENV_MOST + 1] = {0};
    int n = words ? launch_words(words, pool, a, job_flags) : 0;

    if (!words || variables_list(env, pool, a, NULL))
        return NULL;
    for (int i = 0; env[i]; i++)
        if (!(words[n++] = co_pool_printf(pool, "--env=%s", env[i])))
            return NULL;
    words[n++] = "--";
    for (int i = 0; i < a->n; i++)
        words[n++] = a->program[i];
    return co_job_plan_text(COHORT_VERSION, words, n);
}

static co_err invite(const launch_plan *p)
{
    const co_terms *t = &p->spec.terms;
    char text[CO_CODE_TEXT], others[64] = "the other host";
    co_code code;

    CO_TRY(co_code_of(&code, &p->meet));
    co_code_text(text, &code);
    if (t->max_hosts > 2)
        snprintf(others, sizeof others, "%s%d other hosts", t->min_hosts < t->max_hosts ? "up to " : "",
                 t->max_hosts - 1);
    if (co_addr_is_loopback(&code.at[0]))
        co_notice("this host has no network: only processes on it can join");
    co_notice("on %s type `cohort join` and give it this code (it is a secret: whoever has it can "
              "join):\n\n   "
              " "
              "%s\n",
              others, text);
    explicit_bzero(text, sizeof text);
    return CO_OK;
}

co_err host_listen(launch_plan *p)
{
    CO_TRY(co_meet_listen(&p->meet));
    p->meet.plan = p->told;
    return invite(p);
}

static co_err prepare(launch_plan *p, launch_args *a)
{
    CO_TRY(choose_place(a, &p->pool));
    CO_TRY(own_training(a));
    CO_TRY(variables_set(a, &p->pool));
    CO_TRY(plan_make(p, a));
    p->told = plan_words(a, &p->pool);
    if (!p->told)
        return CO_EINPUT;
    return a->train ? CO_OK : host_listen(p); /* a training shows the code once its own words are checked */
}

static int run(launch_args *a, const co_launch_calls *calls)
{
    launch_plan *p = co_zalloc(sizeof *p);
    co_err err = p ? prepare(p, a) : CO_ENOMEM;
    int status = err ? co_say_error(err) : launch_run(p, calls);

    if (p) {
        co_free(p->told);
        plan_free(p);
    }
    co_free(p);
    return status;
}

static void note(const char *text)
{
    co_notice("%s", text);
}

int co_host_run(int argc, char **argv, const co_launch_calls *calls)
{
    launch_args a;
    co_err err = launch_parse(&a, argc, argv, note);

    if (err)
        return co_say_error(err);
    a.line = argv;
    int status = a.help ? calls->help("host") : run(&a, calls);
    launch_args_free(&a);
    return status;
}
