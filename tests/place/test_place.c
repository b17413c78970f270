/* Reading the environment into a place: a table of every scheduler's variables, and the text that schedulers
 * send, well formed and malformed. */
#include "proc/command.h"
#include "place/place_int.h"

#include <stdlib.h>
#include <string.h>

#include "harness.h"

/* ---- host lists ---- */
static void names(const char *list, const char *want)
{
    char out[CO_HOST_NAME], all[2048] = "";
    int n = 1;

    for (int i = 0; i < n; i++) {
        CHECK_OK(hostlist_get(out, sizeof out, &n, list, i));
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "", out);
    }
    CHECK(strcmp(all, want) == 0, "%s is \"%s\", wanted \"%s\"", list, all, want);
}

TEST(host_lists_expand_as_scontrol_does_it)
{
    names("node1", "node1");
    names("gpu[001-003,7],login", "gpu001 gpu002 gpu003 gpu7 login");
    names("rack[0-1]n[1-2]", "rack0n1 rack0n2 rack1n1 rack1n2");
    names("a[9-11]", "a9 a10 a11");
    names("a[08-10]", "a08 a09 a10");
    names("x[1-2]-ib,y,x1", "x1-ib x2-ib y x1");
}

TEST(host_lists_that_are_hostile_are_refused_and_cost_nothing)
{
    static const char *const bad[] = {"",
                                      ",",
                                      "a,",
                                      "a,,b",
                                      "a[",
                                      "a]",
                                      "a[]",
                                      "a[1",
                                      "a[1-",
                                      "a[1-]",
                                      "a[-1]",
                                      "a[2-1]",
                                      "a[1,]",
                                      "a[1,,2]",
                                      "a[x]",
                                      "a[1-2-3]",
                                      "a[[1]]",
                                      "a b",
                                      "a\n",
                                      "a[0-99999999]",
                                      "a[0-4294967295]",
                                      "a[0000000000001]",
                                      "a[0-9999][0-9999]",
                                      "[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]"};
    char out[CO_HOST_NAME], longest[600];

    for (size_t i = 0; i < CO_COUNT(bad); i++)
        CHECK(hostlist_get(out, sizeof out, NULL, bad[i], 0) == CO_EINPUT, "\"%s\" was taken", bad[i]);
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    CHECK_FAILS(hostlist_get(out, sizeof out, NULL, longest, 0), CO_EINPUT, "too long");
    CHECK_FAILS(hostlist_get(out, 4, NULL, "node1", 0), CO_EINPUT, "too long");
    CHECK_FAILS(hostlist_get(out, sizeof out, NULL, "a,b", 2), CO_EINPUT, "has 2 names");
}

TEST(tasks_on_each_node_are_read)
{
    int here, most, nodes;

    CHECK_OK(tasks_parse(&here, &most, &nodes, "2(x3),1", 3));
    CHECK(here == 1 && most == 2 && nodes == 4, "%d %d %d", here, most, nodes);
    CHECK_OK(tasks_parse(&here, &most, &nodes, "1(x2)", 1));
    CHECK(here == 1 && most == 1 && nodes == 2, "%d %d %d", here, most, nodes);
    CHECK_OK(tasks_parse(&here, &most, &nodes, "8", 0));
    CHECK(here == 8 && most == 8 && nodes == 1, "%d %d %d", here, most, nodes);
    static const char *const bad[] = {"",     ",",      "1,",    "x",     "1(x",          "1(x)",
                                      "1(x2", "1(x0)",  "0",     "-1",    "1(x99999999)", "999999999",
                                      "1 2",  "1(x2)3", "1(y2)", "1(x2),"};
    for (size_t i = 0; i < CO_COUNT(bad); i++)
        CHECK(tasks_parse(&here, &most, &nodes, bad[i], 0) == CO_EINPUT, "\"%s\" was taken", bad[i]);
    CHECK_FAILS(tasks_parse(&here, &most, &nodes, "1(x2)", 2), CO_EINPUT, "nothing about node 2");
}

TEST(what_scontrol_prints_is_searched_for_whole_names)
{
    char out[64];
    const char *text =
        "   XNodeAddr=no NodeAddr=10.0.0.7 NodeHostName=n7\nAuthInfo                = socket=/run/m,ttl=5\n"
        "Empty=\n";

    CHECK(scontrol_value(out, sizeof out, text, "NodeAddr") && strcmp(out, "10.0.0.7") == 0, "%s", out);
    CHECK(scontrol_value(out, sizeof out, text, "AuthInfo") && strcmp(out, "socket=/run/m,ttl=5") == 0, "%s",
          out);
    CHECK(!scontrol_value(out, sizeof out, text, "Addr") && !scontrol_value(out, sizeof out, text, "Empty"),
          "%s", out);
    CHECK(!scontrol_value(out, 4, text, "NodeAddr"), "longer than there is room");
}

TEST(a_program_that_is_asked_may_be_absent_fail_or_never_answer)
{
    char out[16];
    const char *absent[] = {"no-such-scontrol", "show", NULL}, *fails[] = {"sh", "-c", "exit 3", NULL},
               *slow[] = {"sleep", "30", NULL}, *much[] = {"sh", "-c", "yes | head -c 100000", NULL};

    CHECK_FAILS(co_command_read(out, sizeof out, absent, 5), CO_EIO, "no-such-scontrol");
    CHECK_FAILS(co_command_read(out, sizeof out, fails, 5), CO_EIO, "status 3");
    CHECK_FAILS(co_command_read(out, sizeof out, slow, 0.1), CO_EIO, "not answered");
    CHECK_OK(co_command_read(out, sizeof out, much, 5));
    CHECK(strlen(out) == sizeof out - 1, "%zu bytes", strlen(out));
}

/* ---- what launchers send each other ---- */
TEST(a_card_comes_back_as_it_was_and_nothing_else_is_one)
{
    co_token token = {{1, 2, 3}};
    card c = {.endpoint = "node1:29400", .also = "10.0.0.1,fe80::1"}, back;
    char text[CARD_TEXT], more[CARD_TEXT + 10];
    static const char *const bad[] = {"",      "|",    "||",      "a:1",      "a:1|",   "a:1||x",   "a||",
                                      "a:0||", ":1||", "a b:1||", "a:1|x=y|", "a:1|||", "a:99999||"};

    co_token_text(c.token, &token);
    CHECK_OK(card_text(text, &c));
    CHECK_OK(card_parse(&back, text));
    CHECK(memcmp(&c, &back, sizeof c) == 0, "%s", text);
    for (size_t i = 0; i < CO_COUNT(bad); i++)
        CHECK(card_parse(&back, bad[i]) == CO_EFORMAT, "\"%s\" was taken", bad[i]);
    snprintf(more, sizeof more, "%s|more", text);
    CHECK_FAILS(card_parse(&back, more), CO_EFORMAT, "card");
    text[strlen(text) - 1] ^= 1;
    CHECK_FAILS(card_parse(&back, text), CO_EFORMAT, "token");
}

TEST(a_greeting_is_of_this_run_and_of_another_seat)
{
    char text[200];
    int seat = 0;

    lobby_greeting(text, sizeof text, "slurm-7.0", 3);
    CHECK(lobby_greeted(&seat, text, "slurm-7.0", 4) && seat == 3, "seat %d", seat);
    CHECK(!lobby_greeted(&seat, text, "slurm-7.0", 3), "a seat too many");
    CHECK(!lobby_greeted(&seat, text, "slurm-7", 4) && !lobby_greeted(&seat, text, "slurm-7.1", 4),
          "another run");
    static const char *const bad[] = {"",
                                      "cohort-lobby",
                                      "cohort-lobby slurm-7.0 ",
                                      "cohort-lobby slurm-7.0 0",
                                      "cohort-lobby slurm-7.0 -1",
                                      "cohort-lobby slurm-7.0 1x",
                                      "cohort-lobby slurm-7.0 99999999999999999999"};
    for (size_t i = 0; i < CO_COUNT(bad); i++)
        CHECK(!lobby_greeted(&seat, bad[i], "slurm-7.0", 4), "\"%s\" was taken", bad[i]);
}

TEST(words_of_pmi_are_found_by_their_whole_key)
{
    char out[16];

    CHECK(pmi_value(out, sizeof out, "cmd=get_result rc=0 msg=all well value=a|b", "value") &&
              !strcmp(out, "a|b"),
          "%s", out);
    CHECK(pmi_value(out, sizeof out, "cmd=x rc=", "rc") && !*out, "empty");
    CHECK(!pmi_value(out, sizeof out, "xcmd=a", "cmd") && !pmi_value(out, sizeof out, "cmd", "cmd"),
          "a part of a word");
    CHECK(!pmi_value(out, sizeof out, "cmd=12345678901234567890", "cmd"), "longer than there is room");
    CHECK(!pmi_value(out, sizeof out, "cmd=a\nrc=1", "rc"), "beyond the line");
}

TEST(a_mapping_of_pmi_gives_every_rank_a_host_or_is_none)
{
    static const char *const bad[] = {"",
                                      "(vector",
                                      "(vector)",
                                      "(vector,)",
                                      "(vector,(0,1,2)",
                                      "(vector,(0,1,2),)",
                                      "(vector,(0,1,2)) ",
                                      "(vector,(0,1,2)(1,1,1))",
                                      "(vector,(0,1))",
                                      "(vector,(0,1,2,3))",
                                      "(vector,(0,0,1))",
                                      "(vector,(0,1,0))",
                                      "(vector,(-1,1,1))",
                                      "(vector,(0,1,99999999))",
                                      "(vectors,(0,1,1))",
                                      "vector,(0,1,1)",
                                      "(matrix,(0,1,1))"};
    static const int want[] = {0, 1, 5, 5, 0, 1};
    int host[6];

    CHECK(pmi_hosts(host, 6, "(vector,(0,2,1),(5,1,2))"), "refused");
    for (int i = 0; i < 6; i++)
        CHECK(host[i] == want[i], "rank %d on host %d", i, host[i]);
    CHECK(pmi_hosts(host, 6, "(vector,(0,9999999,9999999))") && host[5] == 0, "large numbers");
    for (size_t i = 0; i < CO_COUNT(bad); i++)
        CHECK(!pmi_hosts(host, 6, bad[i]), "\"%s\" was taken", bad[i]);
}

/* ---- the table ---- */
static const char *const known[] = {"RANK",
                                    "WORLD_SIZE",
                                    "NODE_RANK",
                                    "LOCAL_RANK",
                                    "LOCAL_WORLD_SIZE",
                                    "MASTER_ADDR",
                                    "MASTER_PORT",
                                    "DIST_URL",
                                    "INIT_METHOD",
                                    "TORCHELASTIC_RUN_ID",
                                    "OMPI_COMM_WORLD_RANK",
                                    "OMPI_COMM_WORLD_SIZE",
                                    "OMPI_COMM_WORLD_LOCAL_RANK",
                                    "OMPI_COMM_WORLD_LOCAL_SIZE",
                                    "PMIX_RANK",
                                    "PMIX_NAMESPACE",
                                    "PMI_RANK",
                                    "PMI_SIZE",
                                    "PMI_FD",
                                    "MPI_LOCALRANKID",
                                    "MPI_LOCALNRANKS",
                                    "SLURM_JOB_ID",
                                    "SLURM_STEP_ID",
                                    "SLURM_PROCID",
                                    "SLURM_STEP_NUM_TASKS",
                                    "SLURM_STEP_NUM_NODES",
                                    "SLURM_NODEID",
                                    "SLURM_LOCALID",
                                    "SLURM_STEP_NODELIST",
                                    "SLURM_STEP_TASKS_PER_NODE",
                                    "SLURM_JOB_NUM_NODES",
                                    "SLURM_RESTART_COUNT",
                                    "SLURMD_NODENAME",
                                    "JOB_COMPLETION_INDEX"};

/* Sets "A=1 B=2" and unsets every other variable that a place reads. */
static co_err find_in(co_place *p, const char *env, int nnodes, int nproc)
{
    co_place_ask ask = {.min_hosts = nnodes, .max_hosts = nnodes, .nproc = nproc, .node_rank = -1};
    char *words = strdup(env), *more = NULL;

    for (size_t i = 0; i < CO_COUNT(known); i++)
        unsetenv(known[i]);
    for (char *w = strtok_r(words, " ", &more); w; w = strtok_r(NULL, " ", &more)) {
        char *eq = strchr(w, '=');
        *eq = '\0';
        setenv(w, eq + 1, 1);
    }
    free(words);
    return co_place_find(p, &ask);
}

#define STEP                                                                                                 \
    "SLURM_JOB_ID=12 SLURM_STEP_ID=0 SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=7 SLURM_STEP_NUM_NODES=4 "          \
    "SLURM_NODEID=2 "                                                                                        \
    "SLURM_LOCALID=1 SLURM_STEP_NODELIST=gpu[01-03],login SLURM_STEP_TASKS_PER_NODE=2(x3),1 "                \
    "SLURMD_NODENAME=gpu03"
#define PAIR                                                                                                 \
    "SLURM_JOB_ID=12 SLURM_STEP_ID=3 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2 "          \
    "SLURM_NODEID=1 "                                                                                        \
    "SLURM_LOCALID=0 SLURM_STEP_NODELIST=a,b SLURM_STEP_TASKS_PER_NODE=1(x2) SLURMD_NODENAME=b"
#define OMPI                                                                                                 \
    "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=3 "                            \
    "OMPI_COMM_WORLD_LOCAL_SIZE=4"

typedef struct row {
    const char *env;
    int nnodes, nproc;
    const char *name; /* how the place's name begins; NULL: refused, with the text in the next field */
    const char *words;
    int seats, seat, nodes, node, tasks, task;
} row;

static const row table[] = {
    {"HOME=/", 0, 4, "", "", 1, 0, 0, -1, 1, 0},
    /* RANK and WORLD_SIZE: hosts, unless --nnodes says otherwise */
    {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=2222", 0, 1, "RANK", "a:2222", 2, 1, 2, 1, 1, 0},
    {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=tcp://a:2222", 0, 1, "RANK", "a:2222", 2, 1, 2, 1, 1, 0},
    {"RANK=1 WORLD_SIZE=2 DIST_URL=tcp://10.0.0.1:2222", 0, 1, "RANK", "10.0.0.1:2222", 2, 1, 2, 1, 1, 0},
    {"RANK=1 WORLD_SIZE=4 MASTER_ADDR=a", 0, 4, "RANK", "a:29500", 4, 1, 4, 1, 1, 0},
    {"RANK=1 WORLD_SIZE=8 MASTER_ADDR=a", 2, 4, "RANK", "a:29500", 2, 1, 2, 1, 1, 0},
    {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=a", 2, 4, "RANK", "a:29500", 2, 1, 2, 1, 1, 0},
    {"NODE_RANK=1 WORLD_SIZE=2 MASTER_ADDR=a", 0, 4, "NODE_RANK", "a:29500", 2, 1, 2, 1, 1, 0},
    {"RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=a", 0, 1, "RANK", "a:29500", 4, 3, 0,
     -1, 2, 1},
    {"RANK=1 WORLD_SIZE=6 MASTER_ADDR=a", 2, 4, NULL, "WORLD_SIZE=6 in the environment is neither --nnodes=2"},
    {"RANK=2 WORLD_SIZE=8 MASTER_ADDR=a", 2, 4, NULL, "RANK=2, but there are 2 hosts"},
    {"RANK=x WORLD_SIZE=2 MASTER_ADDR=a", 0, 1, NULL, "RANK=x in the environment"},
    {"RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=99999", 0, 1, NULL, "MASTER_PORT=99999"},
    {"RANK=0 WORLD_SIZE=2", 0, 1, NULL, "but not MASTER_ADDR"},
    {"RANK=0 WORLD_SIZE=1", 0, 1, "", "", 1, 0, 0, -1, 1, 0},
    {"RANK=1 WORLD_SIZE=2 " PAIR, 0, 8, "Slurm job 12 step 3", "a", 2, 1, 2, 1, 1, 0},
    /* a worker that launches again */
    {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=a LOCAL_RANK=0 TORCHELASTIC_RUN_ID=none " PAIR, 0, 2, "", "", 1, 0, 0,
     -1, 1, 0},
    /* mpirun, also inside a Slurm job. With several hosts we also query mpirun: test_place_talk.c and
     * test_mpi.c test that. */
    {OMPI, 0, 1, "mpirun (Open MPI)", "", 4, 3, 1, 0, 4, 3},
    {OMPI " SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2", 0, 1, "mpirun", "", 4, 3,
     1, 0, 4, 3},
    {OMPI, 0, 2, NULL, "mpirun -n 1 --map-by ppr:1:node cohort launch --nproc-per-node=2"},
    {OMPI, 3, 1, NULL, "has 1 host, but --nnodes=3"},
    {"OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_SIZE=4", 0, 1, NULL, "OMPI_COMM_WORLD_RANK=4"},
    {"PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1", 0, 4, NULL, "there is no PMI_FD"},
    {"PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 PMI_FD=6", 0, 1, "mpirun (PMI)", "", 2, 1, 1,
     0, 2, 1},
    {"PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2", 0, 2, NULL,
     "mpirun -n 1 -ppn 1 cohort launch"},
    {"PMI_RANK=1 PMI_SIZE=1", 0, 1, NULL, "PMI_RANK=1"},
    /* Slurm; variables of PMI and PMIx that srun sets count as Slurm */
    {STEP, 0, 1, "Slurm job 12 step 0", "gpu01", 7, 5, 4, 2, 2, 1},
    {PAIR, 0, 8, "Slurm job 12 step 3", "a", 2, 1, 2, 1, 1, 0},
    {PAIR, 2, 8, "Slurm job 12 step 3", "a", 2, 1, 2, 1, 1, 0},
    {PAIR " PMI_RANK=1 PMI_SIZE=2 PMI_FD=5", 0, 8, "Slurm job 12 step 3", "a", 2, 1, 2, 1, 1, 0},
    {PAIR " PMIX_RANK=1 PMIX_NAMESPACE=slurm.pmix.12.3", 0, 8, "Slurm job 12 step 3", "a", 2, 1, 2, 1, 1, 0},
    {STEP, 0, 2, NULL, "srun --nodes=4 --ntasks=4 --ntasks-per-node=1 cohort launch --nproc-per-node=2"},
    {PAIR, 3, 1, NULL, "has 2 hosts, but --nnodes=3"},
    {PAIR " SLURM_STEP_NODELIST=a[1-3]", 0, 1, NULL, "contradict each other"},
    {PAIR " SLURM_STEP_NODELIST=a[", 0, 1, NULL, "list of nodes"},
    {PAIR " SLURM_STEP_TASKS_PER_NODE=x", 0, 1, NULL, "SLURM_STEP_TASKS_PER_NODE=x"},
    {"SLURM_JOB_ID=12 SLURM_PROCID=0 SLURM_JOB_NUM_NODES=1 SLURMD_NODENAME=a", 0, 4, "Slurm job 12", "", 1, 0,
     1, 0, 1, 0},
    {"SLURM_JOB_ID=12 SLURM_JOB_NUM_NODES=2", 3, 1, NULL, "has 2 nodes, --nnodes asks for 3"},
    /* Kubernetes */
    {"JOB_COMPLETION_INDEX=1", 0, 1, NULL, "--nnodes=N, or PET_NNODES"},
    {"JOB_COMPLETION_INDEX=2", 2, 1, NULL, "`completions` and --nnodes are the same number"},
    {"JOB_COMPLETION_INDEX=1", 2, 1, NULL, "headless Service"},
    {"JOB_COMPLETION_INDEX=0", 1, 4, "pod 0", "", 1, 0, 1, 0, 1, 0},
};

static void check_row(const row *r)
{
    co_place p;
    co_err err = find_in(&p, r->env, r->nnodes, r->nproc);

    if (!r->name) {
        char said[1024];
        snprintf(said, sizeof said, "%s", co_errmsg());
        if (err == CO_EINPUT && strstr(said, "task 0 says why")) { /* only task 0 prints the reason */
            char first[2048];
            snprintf(first, sizeof first,
                     "%s OMPI_COMM_WORLD_RANK=%s SLURM_PROCID=0 SLURM_NODEID=0 SLURM_LOCALID=0 PMI_RANK=0",
                     r->env, strstr(r->env, "OMPI") ? "0" : "");
            err = find_in(&p, first, r->nnodes, r->nproc);
            snprintf(said, sizeof said, "%s", co_errmsg());
        }
        CHECK(err == CO_EINPUT && strstr(said, r->words), "%s: error %d \"%s\", wanted \"%s\"", r->env, err,
              said, r->words);
        return;
    }
    CHECK(err == CO_OK, "%s: %s", r->env, co_errmsg());
    CHECK(strncmp(p.name, r->name, strlen(r->name)) == 0 && !*p.name == !*r->name,
          "%s: \"%s\", wanted \"%s\"", r->env, p.name, r->name);
    CHECK(strcmp(*p.endpoint ? p.endpoint : p.first, r->words) == 0, "%s: at \"%s\"", r->env,
          *p.endpoint ? p.endpoint : p.first);
    CHECK(p.seats == r->seats && p.seat == r->seat && p.nodes == r->nodes && p.node == r->node &&
              p.tasks == r->tasks && p.task == r->task,
          "%s: seat %d of %d, node %d of %d, task %d of %d", r->env, p.seat, p.seats, p.node, p.nodes, p.task,
          p.tasks);
    co_place_close(&p);
}

TEST(every_environment_is_read_into_its_place)
{
    for (size_t i = 0; i < CO_COUNT(table); i++)
        check_row(&table[i]);
}

TEST(a_job_of_several_nodes_outside_a_step_is_started_with_srun)
{
    co_place p;

    CHECK_OK(find_in(&p, "SLURM_JOB_ID=12 SLURM_PROCID=0 SLURM_JOB_NUM_NODES=3 SLURMD_NODENAME=a", 0, 4));
    CHECK(p.outside && strstr(p.start, "srun --nodes=3 --ntasks=3 --ntasks-per-node=1"), "%s", p.start);
    CHECK_OK(find_in(&p, "SLURM_JOB_ID=12 SLURM_PROCID=0 SLURM_JOB_NUM_NODES=3", 2, 4));
    CHECK(p.outside && strstr(p.start, "srun --nodes=2 --ntasks=2 --ntasks-per-node=1"), "%s", p.start);
    /* SLURM_STEP_ID is near 2^32 in the interactive step of salloc and in batch scripts of newer versions */
    CHECK_OK(find_in(&p, PAIR " SLURM_STEP_ID=4294967290 SLURM_JOB_NUM_NODES=2", 0, 4));
    CHECK(p.outside, "%s", p.name);
}

TEST(which_meaning_of_world_size_was_taken_is_said)
{
    co_place p;
    co_meet m = {.endpoint = "a:29500"};
    char said[600];

    CHECK_OK(find_in(&p, "RANK=1 WORLD_SIZE=8 MASTER_ADDR=a", 2, 4));
    co_place_say(said, sizeof said, &p, &m);
    CHECK(strstr(said, "2 hosts, this is 1") &&
              strstr(said, "WORLD_SIZE=8 was taken as workers: 2 hosts x 4"),
          "%s", said);
    CHECK_OK(find_in(&p, "RANK=1 WORLD_SIZE=8 MASTER_ADDR=a", 0, 4));
    co_place_say(said, sizeof said, &p, &m);
    CHECK(strstr(said, "8 hosts") &&
              strstr(said, "WORLD_SIZE=8 was taken as hosts; if it counts workers, give --nnodes"),
          "%s", said);
}
