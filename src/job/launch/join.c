/* join.c -- `cohort join`: takes part in a job that `cohort host` began elsewhere. All it needs is the code
 * that the host shows:
 *
 *     code -> address, token -> the host sends its command line (roster/code.h) -> run it as `cohort launch`
 *     does
 *
 * The code is never an argument, because every user of a machine can read arguments. The host may send only
 * flags of a list (job_flags) and a program. Flags on this host's own command line come later and win.
 */
#include "job/launch/launch_int.h"

#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "roster/code.h"
#include "job/times_int.h"

/* What may differ from host to host. */
static const char *const own_flags[] = {"--nproc-per-node",
                                        "--local-addr",
                                        "--log-dir",
                                        "--redirects",
                                        "--tee",
                                        "--local-ranks-filter",
                                        "--log-prefix",
                                        "--log-line-prefix-template",
                                        "--grace",
                                        "--shutdown-timeout",
                                        "--stall-after",
                                        "--virtual-local-rank",
                                        "--insecure",
                                        NULL};

const char co_join_usage[] =
    "  cohort join                                   asks for the code\n"
    "  cohort join --nproc-per-node=4                not the first host's number\n"
    "  COHORT_JOIN=CODE cohort join                  in a script\n\n"
    "  Runs what the first host runs, in the same folder if it exists here. The code\n"
    "  is the one that `cohort host` shows, and a secret: it is asked for, read from\n"
    "  COHORT_JOIN or from standard input, never given as an argument, because others\n"
    "  on this machine can read arguments.\n\n"
    "  --nproc-per-node N    workers on this host\n"
    "  --log-dir FOLDER      files of this host's workers\n"
    "  --local-addr HOST     this host's address for the others\n"
    "  --redirects 0|1|2|3   this and the next: see `cohort launch --help`\n"
    "  --tee 0|1|2|3\n"
    "  --local-ranks-filter N,N\n"
    "  --log-prefix auto|none|rank\n"
    "  --log-line-prefix-template TEXT\n"
    "  --grace SECONDS\n"
    "  --stall-after SECONDS\n"
    "  --virtual-local-rank\n"
    "  --insecure            accept a code without a token: anybody on the\n"
    "                        network path could then choose what runs here\n";

static bool is_in(const char *name, const char *const *list)
{
    while (name && *list && strcmp(name, *list) != 0)
        list++;
    return name && *list;
}

static void quiet(const char *text) {}

/* --- this host's own line ------------------------------------------------------------------------------- */
/* CO_EINPUT if it has a flag that only the first host may give. *help, *insecure: the line has --help,
 * --insecure. */
static co_err check_line(int argc, char **argv, bool *help, bool *insecure)
{
    static char end[] = "--", none[] = "program";
    char **all = co_array((size_t)argc + 3, sizeof *all);
    launch_args a = {0};
    co_err err = all ? CO_OK : CO_ENOMEM;

    for (int i = 1; i < argc && !err; i++) {
        *help |= strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
        const char *name = launch_flag_name(argv[i]);
        if (name && !is_in(name, own_flags))
            err = co_fail(CO_EINPUT,
                          "join: only the first host may give %s: put it into its `cohort host` line", name);
    }
    if (!err && !*help) {
        memcpy(all, argv, (size_t)argc * sizeof *all);
        all[argc] = end;
        all[argc + 1] = none;
        err = launch_parse(&a, argc + 2, all, quiet);
    }
    if (!err && !*help && a.program[0] != none)
        err = co_fail(CO_EINPUT,
                      "join: only flags are accepted. The code must not be an argument, because other users "
                      "of this machine could read it. Type `cohort join` alone: it asks for the code");
    else if (!err && !*help && a.n > 1)
        err = co_fail(CO_EINPUT, "join: no flag %s (cohort join --help)", a.program[1]);
    *insecure = a.insecure;
    launch_args_free(&a);
    co_free(all);
    return err;
}

/* --- the code ------------------------------------------------------------------------------------------- */
static co_err take_code(void *ctx, const char *typed)
{
    return co_code_parse(ctx, typed);
}

static co_err read_code(co_code *out)
{
    char typed[512] = "", *given = co_secret_take("COHORT_JOIN");
    bool there = isatty(STDIN_FILENO), taken = false;
    co_err err = CO_OK;

    if (given) {
        err = co_code_parse(out, given);
        explicit_bzero(given, strlen(given));
        co_free(given);
        return err ? co_fail_in(err, "COHORT_JOIN") : CO_OK;
    }
    if (there)
        taken = ask_secret("Code of the job (`cohort host` shows it)", take_code, out);
    else if (fgets(typed, sizeof typed, stdin)) {
        taken = true;
        err = co_code_parse(out, typed);
        explicit_bzero(typed, sizeof typed);
    }
    if (!taken && *co_errmsg() && there)
        return co_fail_in(CO_EINPUT, "join");
    if (!taken)
        return co_fail(
            CO_EINPUT,
            "join: there is no code, and no terminal to ask for it: run `cohort join` in a terminal, or put "
            "COHORT_JOIN=CODE before it; `cohort host -- PROGRAM` on the first host shows the code");
    return err ? co_fail_in(err, "join") : CO_OK;
}

/* --- what the host says --------------------------------------------------------------------------------- */
/* The line to run: the host's flags, then ours, then the program. */
static co_err put_together(char ***out, int *n, const co_job_plan *plan, int argc, char **argv)
{
    static char name[] = "launch";
    char **all = co_array((size_t)(plan->n + argc + 2), sizeof *all);
    int k = 0, at = 0;

    if (!all)
        return CO_ENOMEM;
    all[k++] = name;
    for (; at < plan->n && strcmp(plan->words[at], "--") != 0; at++) {
        const char *flag_name = launch_flag_name(plan->words[at]);
        if (flag_name && strcmp(flag_name, "--env") == 0)
            continue; /* set_variables */
        if (!is_in(flag_name, job_flags)) {
            char shown[61];
            co_utf8_clean(shown, sizeof shown, plan->words[at]);
            co_free(all);
            return co_fail(CO_EINPUT,
                           "host %.200s (cohort %s) says %s, which this version (%s) does not know: the "
                           "same version is needed on all hosts",
                           plan->host, plan->version, shown, COHORT_VERSION);
        }
        all[k++] = plan->words[at];
    }
    for (int i = 1; i < argc; i++)
        all[k++] = argv[i];
    for (; at < plan->n; at++)
        all[k++] = plan->words[at];
    *out = all;
    *n = k;
    return CO_OK;
}

/* Sets the host's --env variables in our own environment, as if we had been started with them. */
static co_err set_variables(const co_job_plan *plan, co_pool *pool)
{
    for (int i = 0; i < plan->n && strcmp(plan->words[i], "--") != 0; i++)
        if (strncmp(plan->words[i], "--env=", 6) == 0)
            CO_TRY(variable_set(plan->words[i] + 6, pool));
    return CO_OK;
}

static void go_there(const co_job_plan *plan)
{
    char here[1024] = "?", there[300];

    if (*plan->cwd == '/' && chdir(plan->cwd) == 0)
        return;
    if (!getcwd(here, sizeof here))
        here[0] = '\0';
    co_utf8_clean(there, sizeof there, plan->cwd);
    co_notice("%.200s runs in %s, which does not exist here: running in %s", plan->host, there, here);
}

/* Says in one line what will run here: at most 300 bytes, without control characters. The program gets its
 * words as the host sent them. */
static void announce(const launch_args *a, const launch_plan *p, const co_job_plan *plan)
{
    co_str s = {0};
    char line[301];

    for (int i = a->train; i < a->n && s.len < 300; i++) /* a training: without the program's path */
        co_str_addf(&s, "%s%.200s", i > a->train ? " " : "", a->program[i]);
    co_utf8_clean(line, sizeof line, co_str_text(&s));
    for (char *at = line; *at; at++)
        *at = *at == '\n' || *at == '\t' ? ' ' : *at;
    int n = p->spec.terms.nproc;
    char workers[40] = "";
    if (!a->train)
        snprintf(workers, sizeof workers, " (%d worker%s)", n, n == 1 ? "" : "s");
    co_notice("will run: %s%s%s as part of job %s with host %s; %s", line, s.len >= sizeof line ? " ..." : "",
              workers, p->spec.terms.run_id, plan->host,
              p->spec.terms.min_hosts < p->spec.terms.max_hosts ? "Ctrl-C to leave it"
                                                                : "Ctrl-C ends it for all");
    co_str_fini(&s);
}

static void only_the_code(launch_args *a, const co_meet *where)
{
    a->standalone = a->insecure = false;
    a->node_rank = a->master_addr = a->master_port = a->backend = NULL;
    a->endpoint = where->endpoint;
}

static co_err make_plan(launch_plan *p, const co_job_plan *plan, const co_code *code, int argc, char **argv)
{
    co_meet where = {0};
    launch_args a = {0};
    char **all = NULL;
    int n = 0;
    co_err err = put_together(&all, &n, plan, argc, argv);

    co_code_meet(&where, code);
    if (!err)
        err = launch_parse(&a, n, all, quiet);
    if (!err)
        err = own_training(&a);
    if (!err) {
        only_the_code(&a, &where);
        err = set_variables(plan, &p->pool);
    }
    if (!err)
        err = plan_make(p, &a);
    if (!err) {
        co_code_meet(&p->meet, code);
        announce(&a, p, plan);
    }
    launch_args_free(&a);
    co_free(all);
    return err;
}

static void tell(void *ctx, const char *text)
{
    co_notice("%s", text);
}

static int run(const co_code *code, int argc, char **argv, const co_launch_calls *calls)
{
    co_patience p = co_patience_s(REACH_S);
    launch_plan *mine = co_zalloc(sizeof *mine);
    co_job_plan plan = {{0}};
    co_meet where = {0};
    co_ask *ask = NULL;
    co_err err = mine ? CO_OK : CO_ENOMEM;

    co_code_meet(&where, code);
    if (!err)
        err = co_ask_open(&ask, &plan, &where, &p, tell, NULL);
    if (!err) {
        go_there(&plan);
        err = make_plan(mine, &plan, code, argc, argv);
    }
    co_ask_close(ask, err ? co_errmsg() : NULL);
    int status = err ? co_say_error(err) : launch_run(mine, calls);
    co_job_plan_free(&plan);
    if (mine)
        plan_free(mine);
    co_free(mine);
    return status;
}

int co_join_run(int argc, char **argv, const co_launch_calls *calls)
{
    bool wants_help = false, insecure = false;
    co_code code;
    co_err err = check_line(argc, argv, &wants_help, &insecure);

    if (wants_help)
        return calls->help("join");
    if (!err)
        err = read_code(&code);
    if (!err && !code.has_token && !insecure)
        err = co_fail(CO_EINPUT,
                      "join: this code has no token (its host runs with --insecure), so anybody on the "
                      "network path could choose what runs here; `cohort join --insecure` accepts that");
    return err ? co_say_error(err) : run(&code, argc, argv, calls);
}
