/* ompi.c -- Open MPI's mpirun, and prterun and others that speak PMIx: ranks from the environment, the card through PMIx.
 *
 * libpmix.so.2 is loaded when it is needed. Values that it gives us are not freed: how to do that changed between its versions, and
 * there are four. What goes through it is as safe as the launcher's own connections, which are plain in most installations.
 */
#include "launch/place/pmix_abi.h"
#include "launch/place/place_int.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

typedef struct pmix {
    void *library;
    abi_proc me;
    int (*init)(abi_proc *, abi_info *, size_t);
    int (*finalize)(const abi_info *, size_t);
    int (*put)(uint8_t scope, const char *key, abi_value *);
    int (*commit)(void);
    int (*fence)(const abi_proc *, size_t, const abi_info *, size_t);
    int (*get)(const abi_proc *, const char *key, const abi_info *, size_t, abi_value **);
    const char *(*text)(int status);
} pmix;

static bool load(pmix *x)
{
    const struct {
        const char *name;
        void *to;
    } calls[] = {{"PMIx_Init", &x->init},        {"PMIx_Finalize", &x->finalize}, {"PMIx_Put", &x->put},
                 {"PMIx_Commit", &x->commit},    {"PMIx_Fence", &x->fence},       {"PMIx_Get", &x->get},
                 {"PMIx_Error_string", &x->text}};

    x->library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);
    for (size_t i = 0; x->library && i < CO_COUNT(calls); i++) {
        void *f = dlsym(x->library, calls[i].name);
        if (!f)
            return false;
        memcpy(calls[i].to, &f, sizeof f);
    }
    return x->library != NULL;
}

/* Not unloaded: it has threads and handlers of its own. */
static void leave(co_place *p)
{
    pmix *x = p->channel;

    if (x)
        x->finalize(NULL, 0);
    co_free(x);
    p->channel = NULL;
}

static co_err enter(co_place *p)
{
    pmix *x = p->channel ? p->channel : co_zalloc(sizeof *x);
    const char *why = "the library libpmix.so.2 is not on this host";
    int status = 0;

    if (p->channel || !x)
        return x ? CO_OK : CO_ENOMEM;
    if (load(x) && (status = x->init(&x->me, NULL, 0)) == 0) {
        p->channel = x;
        return CO_OK;
    }
    if (status)
        why = x->text(status);
    co_free(x);
    return co_fail(
        CO_EINPUT,
        "%s: the processes cannot find each other through PMIx: %s. COHORT_TOKEN in the environment of all"
        " (mpirun -x COHORT_TOKEN; `cohort token` makes one) with --nnodes=N --rdzv-endpoint=HOST:29400, "
        "HOST being"
        " the first one's, works without it",
        p->name, why);
}

/* A number about the job (wildcard) or a process; -1: not known. */
static int number(const pmix *x, uint32_t rank, const char *key)
{
    abi_proc who = x->me;
    abi_value *v = NULL;

    who.rank = rank;
    if (x->get(&who, key, NULL, 0, &v) != 0 || !v)
        return -1;
    uint32_t n = v->type == TYPE_UINT16                           ? v->data.uint16
                 : v->type == TYPE_UINT32 || v->type == TYPE_RANK ? v->data.uint32
                                                                  : UINT32_MAX;
    return n <= 1 << 20 ? (int)n : -1;
}

static void learn_nodes(co_place *p)
{
    const pmix *x = p->channel;
    int nodes = number(x, (uint32_t)RANK_WILDCARD, "pmix.num.nodes"),
        node = number(x, x->me.rank, "pmix.nodeid");

    if (nodes > 0 && node >= 0 && node < nodes) {
        p->nodes = nodes;
        p->node = node;
    }
}

static co_err talk(co_place *p, char text[CARD_TEXT])
{
    pmix *x = p->channel;
    abi_info collect = {.key = "pmix.collect", .value = {.type = TYPE_BOOL, .data.flag = true}};
    abi_value mine = {.type = TYPE_STRING, .data.string = text}, *v = NULL;
    abi_proc all = x->me, first = x->me;
    int status = 0;

    all.rank = (uint32_t)RANK_WILDCARD;
    first.rank = 0;
    if (p->seat == 0 && (status = x->put(SCOPE_GLOBAL, "cohort.card", &mine)) == 0)
        status = x->commit();
    if (status == 0)
        status = x->fence(&all, 1, &collect, 1);
    if (status == 0 && p->seat > 0)
        status = x->get(&first, "cohort.card", NULL, 0, &v);
    if (status)
        return co_fail(CO_EFAIL, "%s: PMIx: %s", p->name, x->text(status));
    if (p->seat > 0) {
        if (!v || v->type != TYPE_STRING || !v->data.string || strlen(v->data.string) >= CARD_TEXT)
            return co_fail(CO_EFORMAT, "%s: PMIx gives no word from the first process", p->name);
        snprintf(text, CARD_TEXT, "%s", v->data.string);
    }
    return CO_OK;
}

static co_err share(co_place *p, card *c, const co_patience *patience, void (*told)(const char *))
{
    char text[CARD_TEXT] = "";

    CO_TRY(enter(p));
    learn_nodes(p);
    if (p->seat == 0)
        CO_TRY(card_text(text, c));
    co_err err = talk(p, text);
    leave(p);
    if (!err && p->seat > 0)
        err = card_parse(c, text);
    explicit_bzero(text, sizeof text);
    return err;
}

/* prterun: how many there are is known to PMIx alone. */
static co_err ask_size(co_place *p)
{
    CO_TRY(enter(p));
    pmix *x = p->channel;
    int size = number(x, (uint32_t)RANK_WILDCARD, "pmix.job.size");
    int here = number(x, (uint32_t)RANK_WILDCARD, "pmix.local.size"),
        local = number(x, x->me.rank, "pmix.lrank");
    if (size < 1 || p->seat >= size)
        return co_fail(CO_EINPUT, "%s: PMIx does not say how many processes there are", p->name);
    p->seats = size;
    if (here > 0 && local >= 0 && local < here) {
        p->tasks = here;
        p->task = local;
    }
    learn_nodes(p);
    return CO_OK;
}

static co_err find(co_place *p, const co_place_ask *ask)
{
    bool ompi = env_text("OMPI_COMM_WORLD_RANK") && env_text("OMPI_COMM_WORLD_SIZE");
    const char *space = env_text("PMIX_NAMESPACE");

    if (!ompi && (!env_text("PMIX_RANK") || !space || strncmp(space, "slurm.", 6) == 0))
        return CO_OK;
    snprintf(p->name, sizeof p->name, ompi ? "mpirun (Open MPI)" : "PMIx");
    place_name_run(p, space);
    if (ompi) {
        CO_TRY(env_whole(&p->seats, "OMPI_COMM_WORLD_SIZE", 1, 1 << 20, 1));
        CO_TRY(env_whole(&p->seat, "OMPI_COMM_WORLD_RANK", 0, p->seats - 1, 0));
        CO_TRY(env_whole(&p->tasks, "OMPI_COMM_WORLD_LOCAL_SIZE", 1, p->seats, 1));
        CO_TRY(env_whole(&p->task, "OMPI_COMM_WORLD_LOCAL_RANK", 0, p->tasks - 1, 0));
    } else {
        CO_TRY(env_whole(&p->seat, "PMIX_RANK", 0, 1 << 20, 0));
        CO_TRY(ask_size(p));
    }
    p->tasks_most = p->tasks;
    if (!p->nodes && p->seats % p->tasks == 0) {
        p->nodes = p->seats / p->tasks; /* if all hosts have as many */
        p->node = p->tasks == 1 ? p->seat : p->nodes == 1 ? 0 : -1;
    }
    return CO_OK;
}

const place_row place_ompi = {.find = find,
                              .share = share,
                              .close = leave,
                              .one_each = "mpirun -n %d --map-by ppr:1:node",
                              .one_terminal = true};
