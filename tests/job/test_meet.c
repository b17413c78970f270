/* Which hosts a training has and where they meet: a table of command lines and environments, each with the
 * terms and the meeting that follow from it, or with the refusal. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "job/meet.h"

enum { MOST = 32 };

#define NODE                                                                                                 \
    "SLURM_JOB_ID=12 SLURM_STEP_ID=0 SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=n[1-2] SLURMD_NODENAME=n2 "
#define STEP_OF(n)                                                                                           \
    NODE "SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=1(x2) SLURM_LOCALID=0 SLURM_PROCID=" n            \
         " SLURM_NODEID=" n
#define STEP STEP_OF("1")
#define CROWD                                                                                                \
    NODE "SLURM_STEP_NUM_TASKS=8 SLURM_STEP_TASKS_PER_NODE=4(x2) SLURM_PROCID=0 SLURM_NODEID=0 "             \
         "SLURM_LOCALID=0"
#define LAPTOP                                                                                               \
    "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 "                            \
    "OMPI_COMM_WORLD_LOCAL_RANK=1"

static const struct row {
    const char *env, *flags, *num_nodes; /* num_nodes NULL: trainer.num_nodes is not given */
    const char *is;                      /* as `describe` has it; begins with '!': words of the refusal */
} rows[] = {
    /* one host */
    {"", "", NULL, "alone 1 least 1 ranks 0 host 0"},
    {"", "", "1", "alone 1 least 1 ranks 0 host 0"},
    {"", "--standalone --nproc-per-node=4", NULL, "alone 1 least 1 ranks 4 host 0"},
    {"", "--nnodes=1 --node-rank=0 --nproc-per-node=auto", NULL, "alone 1 least 1 ranks 0 host 0"},
    {"", "--master-addr=127.0.0.1 --master-port=1", NULL, "alone 1 least 1 ranks 0 host 0"},
    {"MASTER_ADDR=10.0.0.1 WORLD_SIZE=1 NODE_RANK=0", "", NULL, "alone 1 least 1 ranks 0 host 0"},
    {"SLURM_JOB_ID=12 SLURM_JOB_NUM_NODES=1", "", NULL, "alone 1 least 1 ranks 0 host 0"},
    {STEP, "--standalone", NULL, "alone 1 least 1 ranks 0 host 0"},
    {"WORLD_SIZE=8 RANK=3", "--standalone", NULL, "alone 1 least 1 ranks 0 host 0"},
    /* flags */
    {"", "--nnodes=2 --rdzv-endpoint=h:48123 --rdzv-id=456 --rdzv-backend=c10d --nproc-per-node=2", NULL,
     "2 least 1 ranks 2 host -1 run 456 at h:48123"},
    {"", "--nnodes=1 --rdzv-endpoint=127.0.0.1:48123 --rdzv-id=456", NULL,
     "1 least 1 ranks 0 host -1 run 456 at 127.0.0.1:48123"},
    {"", "--nnodes=2:4 --rdzv-endpoint=h", NULL, "2:4 least 2 ranks 0 host -1 run none at h:29400"},
    {"", "--nnodes=1:4 --rdzv-endpoint=tcp://h:7", NULL, "1:4 least 1 ranks 0 host -1 run none at h:7"},
    {"", "--nnodes=2 --rdzv-endpoint=[fd00::1]:7", NULL, "2 least 1 ranks 0 host -1 run none at [fd00::1]:7"},
    {"", "--nnodes=2 --node-rank=1 --nproc-per-node=2 --master-addr=10.0.0.1 --master-port=29501", NULL,
     "2 least 1 ranks 2 host 1 run none at 10.0.0.1:29501"},
    {"", "--nnodes=2 --node-rank=0 --master-addr=tcp://10.0.0.1", NULL,
     "2 least 1 ranks 0 host 0 run none at 10.0.0.1:29500"},
    {"", "--nnodes=2 --node-rank=1 --rdzv-endpoint=tcp://10.0.0.1:23456", NULL,
     "2 least 1 ranks 0 host 1 run none at 10.0.0.1:23456"},
    {"", "--rdzv-endpoint=h:1", "3", "3 least 1 ranks 0 host -1 run none at h:1"},
    {"", "--nnodes=2 --rdzv-endpoint=h:1 --insecure --local-addr=10.0.0.9", NULL,
     "2 least 1 ranks 0 host -1 run none at h:1 as 10.0.0.9 insecure"},
    {"", "--nnodes=2 --rdzv-endpoint=h:1 --rdzv-conf=join_timeout=7,is_host=1", NULL,
     "2 least 1 ranks 0 host -1 run none at h:1 serves within 7"},
    {"", "--nnodes=2:3 --rdzv-backend=etcd-v3 --rdzv-endpoint=e1:2379,e2:2379 --rdzv-id=r7", NULL,
     "2:3 least 2 ranks 0 host -1 run r7 at :0 etcd e1:2379,e2:2379"},
    {"PET_NNODES=2 PET_RDZV_ENDPOINT=h:5 PET_NPROC_PER_NODE=3", "", NULL,
     "2 least 1 ranks 3 host -1 run none at h:5"},
    {STEP, "--nnodes=2 --rdzv-endpoint=h:1", NULL, "2 least 1 ranks 0 host -1 run none at h:1"},
    /* flags that are refused */
    {"", "--nnodes=2", NULL, "!--nnodes=2 needs a place where the hosts meet"},
    {"", "", "2", "!trainer.num_nodes=2 needs a place where the hosts meet"},
    {"", "--nnodes=0 --rdzv-endpoint=h:1", NULL, "!--nnodes=0: a whole number from 1"},
    {"", "--nnodes=4:2 --rdzv-endpoint=h:1", NULL, "!--nnodes=4:2: N or MIN:MAX"},
    {"", "--nnodes=65 --rdzv-endpoint=h:1", NULL, "!65 hosts: a training has at most 64"},
    {"", "--node-rank=1", NULL, "!--node-rank=1, but there is no --nnodes"},
    {"", "--nnodes=2 --node-rank=2 --master-addr=h", NULL, "!--node-rank=2: a whole number from 0 to 1"},
    {"", "--standalone --nnodes=2", NULL, "!--standalone is one host, --nnodes=2 is not"},
    {"", "--nnodes=2 --rdzv-backend=etcd-v3 --rdzv-endpoint=e:1", NULL, "!needs --rdzv-id"},
    {"", "--ssh=ssh", NULL, "!--ssh is for --hosts"},
    /* Lightning's and torch's variables */
    {"MASTER_ADDR=172.31.9.56 MASTER_PORT=29501 WORLD_SIZE=2 NODE_RANK=1", "", "2",
     "2 least 1 ranks 0 host 1 run none at 172.31.9.56:29501 (NODE_RANK"},
    {"MASTER_ADDR=172.31.9.56 MASTER_PORT=29501 NODE_RANK=1", "", "2",
     "2 least 1 ranks 0 host 1 run none at 172.31.9.56:29501 (NODE_RANK"},
    {"MASTER_PORT=29501 WORLD_SIZE=2 NODE_RANK=0", "", "2",
     "2 least 1 ranks 0 host 0 run none at :29501 (NODE_RANK"},
    {"MASTER_ADDR=tcp://10.0.0.1:7 WORLD_SIZE=3 RANK=2", "", NULL,
     "3 least 1 ranks 0 host 2 run none at 10.0.0.1:7 (RANK"},
    {"DIST_URL=tcp://10.0.0.1:7 WORLD_SIZE=2 RANK=0", "", NULL,
     "2 least 1 ranks 0 host 0 run none at 10.0.0.1:7 (RANK"},
    {"MASTER_ADDR=h WORLD_SIZE=3 NODE_RANK=0", "--nnodes=2:4", NULL,
     "2:4 least 2 ranks 0 host 0 run none at h:29500"},
    {"MASTER_ADDR=h WORLD_SIZE=2 NODE_RANK=0", "", "3",
     "!WORLD_SIZE=2 in the environment counts hosts here, but trainer.num_nodes=3"},
    {"MASTER_ADDR=h WORLD_SIZE=2 NODE_RANK=2", "", NULL, "!NODE_RANK=2, but there are 2 hosts"},
    {"MASTER_ADDR=h WORLD_SIZE=many NODE_RANK=0", "", NULL, "!WORLD_SIZE=many in the environment"},
    {"WORLD_SIZE=2 NODE_RANK=1", "", "2",
     "!NODE_RANK=1 and WORLD_SIZE=2 are in the environment, but not MASTER_ADDR"},
    {"WORLD_SIZE=4 RANK=3", "", NULL, "!RANK=3 and WORLD_SIZE=4 are in the environment, but not MASTER_ADDR"},
    /* a worker of `cohort launch` or torchrun */
    {"TORCHELASTIC_RUN_ID=r MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 RANK=1 WORLD_SIZE=2 LOCAL_RANK=0 "
     "LOCAL_WORLD_SIZE=1 "
     "NODE_RANK=1",
     "", NULL, "2 least 1 ranks 0 host 1 run none at 10.0.0.1:29500 (RANK"},
    {"TORCHELASTIC_USE_AGENT_STORE=True MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 RANK=1 WORLD_SIZE=2 "
     "LOCAL_RANK=1 "
     "LOCAL_WORLD_SIZE=2",
     "", NULL,
     "2 least 1 ranks 0 host 1 run none at 10.0.0.1:29501 (RANK and WORLD_SIZE of the environment) 2 here"},
    {"MASTER_ADDR=10.0.0.1 RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2", "", "2",
     "!starts 2 tasks on a host. A training has one process on each host"},
    /* schedulers */
    {STEP, "", NULL, "2 least 1 ranks 0 host 1 run slurm-12.0 (Slurm job 12 step 0)"},
    {STEP, "--nproc-per-node=4", "2", "2 least 1 ranks 4 host 1 run slurm-12.0 (Slurm"},
    {STEP, "--nnodes=1:4 --rdzv-id=mine", NULL, "1:4 least 1 ranks 0 host 1 run mine (Slurm"},
    {STEP_OF("0"), "", "4", "!Slurm job 12 step 0 has 2 hosts, but trainer.num_nodes=4"},
    {STEP, "", "4", "!refused; task 0 says why"},
    {STEP_OF("0"), "--node-rank=1", NULL, "!this is host 0, but --node-rank=1"},
    {CROWD, "", NULL, "!`srun --nodes=2 --ntasks=2 --ntasks-per-node=1 cohort train --nproc-per-node=4 ...`"},
    {"SLURM_JOB_ID=12 SLURM_JOB_NUM_NODES=3", "", NULL, "3 least 1 ranks 0 host -1 (Slurm job 12)"},
    {"SLURM_JOB_ID=12 SLURM_JOB_NUM_NODES=3", "", "2", "2 least 1 ranks 0 host -1 (Slurm job 12)"},
    {"SLURM_JOB_ID=12 SLURM_JOB_NUM_NODES=3", "--nnodes=4", NULL,
     "!Slurm job 12 has 3 nodes, --nnodes asks for 4"},
    {LAPTOP, "", NULL, "2 least 1 ranks 0 host 1 run none (mpirun (Open MPI)) 2 here"},
    {LAPTOP, "--nproc-per-node=2", "2", "2 least 1 ranks 2 host 1 run none (mpirun (Open MPI)) 2 here"},
    {LAPTOP, "--nnodes=1:2", NULL, "1:2 least 1 ranks 0 host 1 run none (mpirun (Open MPI)) 2 here"},
    {LAPTOP " OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=0", "--nnodes=3", NULL,
     "!2 tasks on this machine, and each is a host of the training, but --nnodes=3"},
    {"JOB_COMPLETION_INDEX=0", "", NULL, "!how many pods there are is not in the environment"},
    {"JOB_COMPLETION_INDEX=0", "--nnodes=1", NULL, "alone 1 least 1 ranks 0 host 0"},
};

/* Words separated by blanks; NULL-terminated, in `pool`. */
static char **split(co_pool *pool, const char *text)
{
    char **words = co_pool_alloc(pool, (MOST + 1) * sizeof *words), *rest = co_pool_str(pool, text),
         *more = NULL;
    int n = 0;

    for (char *w = strtok_r(rest, " ", &more); w && n < MOST; w = strtok_r(NULL, " ", &more))
        words[n++] = w;
    words[n] = NULL;
    return words;
}

static void describe(co_str *out, const co_hosts_line *h)
{
    const co_terms *t = &h->terms;
    const co_meet *m = &h->meet;

    co_str_add(out, h->alone ? "alone " : "");
    co_str_addf(out, t->min_hosts < t->max_hosts ? "%d:%d" : "%d", t->min_hosts, t->max_hosts);
    co_str_addf(out, " least %d ranks %d host %d", t->least_hosts, t->nproc, t->host_rank);
    if (h->alone)
        return;
    if (*t->run_id)
        co_str_addf(out, " run %s", t->run_id);
    if (*m->endpoint)
        co_str_addf(out, " at %s", m->endpoint);
    if (*m->advertise)
        co_str_addf(out, " as %s", m->advertise);
    co_str_add(out, m->insecure ? " insecure" : "");
    co_str_add(out, m->role == CO_MEET_SERVE ? " serves" : m->role == CO_MEET_JOIN ? " joins" : "");
    if (m->join_timeout_s > 0)
        co_str_addf(out, " within %g", m->join_timeout_s);
    if (m->etcd.members)
        co_str_addf(out, " etcd %s", m->etcd.members);
    if (*h->place)
        co_str_addf(out, " (%s)", h->place);
    if (h->neighbours > 1)
        co_str_addf(out, " %d here", h->neighbours);
}

static void check_row(const struct row *r)
{
    static char *line[] = {"train", NULL};
    co_pool pool = {0};
    co_str is = {0};
    char **env = split(&pool, r->env);
    co_hosts_line *hosts = NULL;

    clearenv();
    for (int i = 0; env[i]; i++)
        CHECK(putenv(env[i]) == 0, "putenv");
    co_hosts_ask ask = {(const char *const *)split(&pool, r->flags), r->num_nodes, line};
    co_err err = co_hosts_line_make(&hosts, &ask);
    if (err)
        co_str_addf(&is, "!%s", co_errmsg());
    else
        describe(&is, hosts);
    bool refused = r->is[0] == '!';
    const char *text = co_str_text(&is);
    CHECK(refused == (err != CO_OK) && (refused ? err == CO_EINPUT && test_contains(text, r->is + 1) != 0
                                                : strncmp(text, r->is, strlen(r->is)) == 0),
          "[%s] train %s, num_nodes %s: \"%s\" instead of \"%s\"", r->env, r->flags,
          r->num_nodes ? r->num_nodes : "none", text, r->is);
    CHECK(!refused || strncmp(text, "!launch: ", 9) != 0, "another command speaks: %s", text);
    CHECK(err || (hosts->terms.views && strcmp(hosts->terms.program, "train") == 0 && *hosts->terms.version),
          "terms");
    co_hosts_line_free(hosts);
    clearenv();
    co_str_fini(&is);
    co_pool_fini(&pool);
}

TEST(every_line_and_environment_gives_its_hosts_or_its_refusal)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(&rows[i]);
    test_note("%zu lines", sizeof rows / sizeof *rows);
}

TEST(a_token_of_the_environment_goes_into_the_meeting_and_is_forgotten)
{
    static char *line[] = {"train", NULL};
    static const char *const flags[] = {"--nnodes=2", "--rdzv-endpoint=127.0.0.1:1", NULL};
    co_hosts_line *hosts;

    test_run made = test_sh("$COHORT token");
    made.out[strcspn(made.out, "\n")] = '\0';
    setenv("COHORT_TOKEN", made.out, 1);
    CHECK_OK(co_hosts_line_make(&hosts, &(co_hosts_ask){flags, NULL, line}));
    CHECK(strcmp(hosts->meet.token, made.out) == 0, "%s instead of %s", hosts->meet.token, made.out);
    CHECK(!getenv("COHORT_TOKEN"), "it is still in the environment");
    CHECK_OK(co_hosts_line_meet(hosts));
    CHECK(strcmp(hosts->meet.token, made.out) == 0, "lost on the way");
    co_hosts_line_free(hosts);
    free(made.out);
}

TEST(the_meeting_of_variables_is_complete_without_waiting)
{
    static char *line[] = {"train", NULL};
    static const char *const none[] = {NULL};
    co_hosts_line *hosts;

    clearenv();
    setenv("MASTER_ADDR", "tcp://127.0.0.1:4711", 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("NODE_RANK", "1", 1);
    CHECK_OK(co_hosts_line_make(&hosts, &(co_hosts_ask){none, "2", line}));
    CHECK_OK(co_hosts_line_enter(hosts));
    CHECK_OK(co_hosts_line_meet(hosts));
    CHECK(strcmp(hosts->meet.endpoint, "127.0.0.1:4711") == 0 && hosts->meet.role == CO_MEET_JOIN, "%s %d",
          hosts->meet.endpoint, hosts->meet.role);
    co_hosts_line_free(hosts);
}

static co_err make_one(void *unused)
{
    static char *line[] = {"train", NULL};
    static const char *const flags[] = {"--nnodes=2", "--rdzv-endpoint=h:1", NULL};
    co_hosts_line *hosts;

    CO_TRY(co_hosts_line_make(&hosts, &(co_hosts_ask){flags, NULL, line}));
    co_hosts_line_free(hosts);
    return CO_OK;
}

TEST(a_hosts_line_survives_every_failed_allocation)
{
    test_each_alloc_fails(make_one, NULL);
}
