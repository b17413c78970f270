/* exchange.c -- how long two hosts take to add up a gradient: 45 MB over the link tcp on loopback, plain
 * and with TLS; or, started by mpirun -n 2, over the link mpi, beside MPI_Allreduce of the same bytes.
 *
 * Two processes run the real exchange (comm/exchange.h): each owns half of the chunks, is sent the other's
 * pieces of them, adds them up and sends the sums back. So every byte of the gradient goes through the
 * wire once each way. One thread of each process moves the bytes and adds; in training, ranks do the
 * additions. The median of the rounds counts, and the sums are checked. `cpu_ms` is the CPU time of one host
 * and round; other work on the machine changes it less.
 */
#include "bench/bench_int.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/exchange.h"
#include "link/links.h"

enum {
    COUNT = EXCHANGE_COUNT,
    CHUNK = 65536,
    CHUNKS = (COUNT + CHUNK - 1) / CHUNK,
    MAX_ROUNDS = 1000,
    WARM = 3
};

/* One of the two hosts. */
struct side {
    co_link *link;
    co_deal deal;
    co_exchange_map map;
    co_claim pieced[CHUNKS], summed[CHUNKS];
    co_mark here[CHUNKS];
    co_exchange exchange;
    co_cut cut;
    uint32_t turn;
    size_t missing; /* chunks whose sum is not here */
    int farewells;  /* the other side has all sums: its last message has come; ours is sent */
};

static void stamp(co_claim *claim, uint32_t turn)
{
    co_who who = {.unit = turn, .slot = 0, .inc = 1};

    co_claim_take(claim, who);
    co_claim_finish(claim, who);
}

/* A chunk has come: the other's piece of an own one, which is added up, or a sum. */
static void took(void *ctx, bool sent, int peer, const co_tag *tag)
{
    struct side *side = ctx;

    (void)peer;
    side->farewells += tag->kind == CO_MSG_NEWS;
    if (sent || !co_exchange_took(&side->exchange, tag))
        return;
    side->missing--;
    if (tag->kind == CO_MSG_SUM)
        return;
    size_t lo = (size_t)tag->chunk * CHUNK, n = lo + CHUNK < COUNT ? CHUNK : COUNT - lo;
    const float *theirs = co_exchange_piece(&side->deal, &side->cut, &side->map, 0, 1 - side->deal.me, lo);
    co_leaf_add(side->map.sum + lo, side->map.outbox + lo, theirs, n);
    stamp(&side->summed[tag->chunk], side->turn);
}

static co_err side_open(struct side *side, co_link_kind kind, const co_link_spec *spec,
                        const co_link_peer peer[2])
{
    int me = spec->me;
    size_t inbox = co_exchange_inbox(CHUNK, CHUNKS, 2, 1);

    side->deal = (co_deal){.view = 1, .hosts = 2, .me = me, .from = {0, 1, 2}, .id = {0, 1}};
    side->cut = co_cut_make(2, 2, 2, false);
    side->map = (co_exchange_map){.count = COUNT,
                                  .chunk = CHUNK,
                                  .chunks = CHUNKS,
                                  .sum = co_array(COUNT, sizeof(float)),
                                  .outbox = co_array(COUNT, sizeof(float)),
                                  .inbox = co_array(inbox, sizeof(float)),
                                  .here = side->here,
                                  .pieced = side->pieced,
                                  .summed = side->summed};
    if (!side->map.sum || !side->map.outbox || !side->map.inbox)
        return CO_ENOMEM;
    for (size_t i = 0; i < COUNT; i++)
        side->map.outbox[i] = (float)(i % 1000) * (me ? 3 : 1);
    CO_TRY(co_link_open(&side->link, kind, spec));
    side->link->done = took;
    side->link->ctx = side;
    CO_TRY(co_exchange_init(&side->exchange, side->link, &side->deal, &side->map));
    return co_link_meet(side->link, peer, 2);
}

static co_err step(struct side *side)
{
    char why[400];
    int peer;

    side->turn++;
    side->missing = CHUNKS;
    for (size_t c = 0; c < CHUNKS; c++)
        stamp(&side->pieced[c], side->turn);
    CO_TRY(co_exchange_begin(&side->exchange, side->turn, side->turn, &side->cut));
    while (side->missing || !co_exchange_sent(&side->exchange)) {
        CO_TRY(co_exchange_turn(&side->exchange));
        CO_TRY(co_link_turn(side->link, 100));
        if (co_link_lost(side->link, &peer, why, sizeof why))
            return co_fail(CO_EPEER, "%s", why);
    }
    return CO_OK;
}

/* A host that closes its link takes what is not sent with it: each waits until the other has all sums. */
static co_err part(struct side *side)
{
    co_tag tag = {.view = 1, .kind = CO_MSG_NEWS};
    char why[400];
    int peer;

    CO_TRY(co_link_post(side->link, 1 - side->deal.me, &tag, NULL, 0));
    CO_TRY(co_link_send(side->link, 1 - side->deal.me, &tag, NULL, 0));
    while (side->farewells < 2 && !co_link_lost(side->link, &peer, why, sizeof why))
        CO_TRY(co_link_turn(side->link, 100));
    return CO_OK;
}

static co_err check(const struct side *side)
{
    for (size_t i = 0; i < COUNT; i++)
        if (side->map.sum[i] != (float)(i % 1000) * 4)
            return co_fail(CO_EFAIL, "the sum of element %zu is %g, not %g", i, (double)side->map.sum[i],
                           (double)(i % 1000) * 4);
    return CO_OK;
}

static double cpu_ms(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return 1e3 * (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-3 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

/* What a host measures. */
struct result {
    double ms[MAX_ROUNDS]; /* of each round */
    double cpu_ms;         /* of all rounds */
};

/* MPI's own sum of the same floats. */
static co_err run_allreduce(struct side *side, int rounds, double *ms)
{
    co_err err = CO_OK;

    for (int i = -WARM; i < rounds && !err; i++) {
        double before = co_now_s();
        err = co_link_mpi_sum(side->link, side->map.outbox, side->map.sum, COUNT);
        if (i >= 0)
            ms[i] = 1e3 * (co_now_s() - before);
    }
    return err ? err : check(side);
}

/* allreduce_ms: NULL, or gets the times of MPI's own call. */
static co_err run_side(co_link_kind kind, const co_link_spec *spec, const co_link_peer peer[2], int rounds,
                       struct result *result, double *allreduce_ms)
{
    static struct side side;
    co_err err = side_open(&side, kind, spec, peer);

    for (int i = -WARM; i < rounds && !err; i++) {
        double before = co_now_s();
        if (i == 0)
            result->cpu_ms = -cpu_ms();
        err = step(&side);
        if (i >= 0)
            result->ms[i] = 1e3 * (co_now_s() - before);
    }
    result->cpu_ms += cpu_ms();
    if (!err)
        err = part(&side);
    if (!err)
        err = check(&side);
    if (!err && allreduce_ms)
        err = run_allreduce(&side, rounds, allreduce_ms);
    co_link_close(side.link);
    co_exchange_fini(&side.exchange);
    co_free(side.map.sum);
    co_free(side.map.outbox);
    co_free(side.map.inbox);
    memset(&side, 0, sizeof side);
    return err;
}

/* On a host of the pair; NULL: here. */
static co_err run_on(const pair *p, const co_link_spec *spec, const co_link_peer peer[2], int rounds,
                     struct result *result)
{
    co_err err = p ? pair_enter(p, spec->me) : CO_OK;

    if (!err)
        err = run_side(CO_LINK_TCP, spec, peer, rounds, result, NULL);
    if (p)
        pair_leave(p);
    return err;
}

/* Its socket stays in the namespace of host 1. */
static co_err listen_there(const pair *p, const char *address, int *listener)
{
    co_err err = p ? pair_enter(p, 1) : CO_OK;

    if (!err)
        err = co_net_listen(listener, address, 0);
    if (p)
        pair_leave(p);
    return err;
}

/* Host 1 is a child process. */
static co_err run_both(const pair *p, bool with_tls, int rounds, struct result *result)
{
    co_link_peer peer[2] = {{.id = 0, .birth = 1}, {.id = 1, .birth = 2}};
    co_token token;
    co_tls *tls = NULL;
    int listener, status = 0;

    for (int h = 0; h < 2; h++)
        snprintf(peer[h].host, sizeof peer[h].host, "%s", p ? p->address[h] : "127.0.0.1");
    CO_TRY(listen_there(p, peer[1].host, &listener));
    co_addr at = co_net_local(listener);
    peer[1].port = co_addr_port(&at);
    CO_TRY(co_token_make(&token));
    if (with_tls)
        CO_TRY(co_tls_new(&tls, &token, "bench"));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        co_link_spec spec = {.me = 1, .birth = 2, .run = 1, .listener = listener, .tls = tls};
        co_err err = run_on(p, &spec, peer, rounds, result);
        if (err)
            co_say("cohort: host 1: %s", co_errmsg());
        _exit(err ? 1 : 0);
    }
    close(listener);
    co_link_spec spec = {.me = 0, .birth = 1, .run = 1, .listener = -1, .tls = tls};
    co_err err = child < 0 ? co_fail(CO_EIO, "fork: %m") : run_on(p, &spec, peer, rounds, result);
    if (child > 0 && err)
        kill(child, SIGKILL);
    if (child > 0 && (waitpid(child, &status, 0) != child || status != 0) && !err)
        err = co_fail(CO_EFAIL, "the second host failed");
    co_tls_free(tls);
    return err;
}

co_err exchange_measure(const pair *p, bool tls, int rounds, double *ms, double *cpu)
{
    static struct result result;

    CO_ASSERT(rounds <= MAX_ROUNDS, "the caller limits the rounds");
    CO_TRY(run_both(p, tls, rounds, &result));
    memcpy(ms, result.ms, (size_t)rounds * sizeof *ms);
    *cpu = result.cpu_ms / rounds;
    return CO_OK;
}

static co_err read_line(int *rounds, int argc, char **argv)
{
    const char *text = NULL;
    bool json = false; /* it always is */
    long long n = 30;

    CO_TRY(co_flags_parse("bench exchange", argc, argv,
                          (const co_flag[]){{"--rounds", "N", .value = &text}, {"--json", .on = &json}, {0}}));
    if (text && (!co_str_to_i64(text, &n) || n < 1 || n > MAX_ROUNDS))
        return co_fail(CO_EINPUT, "bench exchange: --rounds %s is not a number from 1 to %d", text, MAX_ROUNDS);
    *rounds = (int)n;
    return CO_OK;
}

/* --- under mpirun --------------------------------------------------------------------------------------- */
static co_err whole(int *out, const char *ompi, const char *pmi)
{
    const char *text = getenv(ompi) ? getenv(ompi) : getenv(pmi);
    long long n;

    if (!text || !co_str_to_i64(text, &n) || n < 0 || n > 1 << 20)
        return co_fail(CO_EINPUT, "bench exchange: neither %s nor %s is a number", ompi, pmi);
    *out = (int)n;
    return CO_OK;
}

static co_err run_mpi(const char *says, int rounds)
{
    static struct result result;
    static double allreduce_ms[MAX_ROUNDS];
    const co_link_peer peer[2] = {{.id = 0, .birth = 1}, {.id = 1, .birth = 2}};
    double bytes = COUNT * sizeof(float);
    int me, n;

    CO_TRY(whole(&me, "OMPI_COMM_WORLD_RANK", "PMI_RANK"));
    CO_TRY(whole(&n, "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"));
    if (n != 2 || me > 1)
        return co_fail(CO_EINPUT, "bench exchange: it measures two hosts, start it with mpirun -n 2 (not %d)",
                       n);
    co_link_spec spec = {.me = me, .birth = peer[me].birth, .run = 1, .listener = -1};
    CO_TRY(run_side(CO_LINK_MPI, &spec, peer, rounds, &result, allreduce_ms));
    double exchange = median(result.ms, rounds), allreduce = median(allreduce_ms, rounds);
    if (me == 0)
        printf("{\"task\":\"exchange\",\"link\":\"mpi\",\"says\":\"%s\",\"hosts\":2,\"bytes\":%.0f,"
               "\"rounds\":%d,\"plain_ms\":%.2f,\"plain_gb_per_s\":%.3f,\"plain_cpu_ms\":%.2f,"
               "\"allreduce_ms\":%.2f,\"allreduce_gb_per_s\":%.3f}\n",
               says, bytes, rounds, exchange, 1e-6 * bytes / exchange, result.cpu_ms / rounds, allreduce,
               1e-6 * bytes / allreduce);
    return CO_OK;
}

int bench_exchange(int argc, char **argv)
{
    co_link_kind kind = CO_LINK_TCP;
    char says[600];
    static struct result result[2];
    double bytes = COUNT * sizeof(float), middle[2];
    int rounds = 0;

    if (read_line(&rounds, argc, argv) != CO_OK)
        return co_say_error(CO_EINPUT);
    co_err chosen = co_link_choose(&kind, CO_LINK_AUTO, says, sizeof says);
    if (!chosen && kind == CO_LINK_MPI)
        chosen = run_mpi(says, rounds);
    if (chosen || kind == CO_LINK_MPI)
        return chosen ? co_say_error(chosen) : CO_EXIT_DONE;
    for (int tls = 0; tls < 2; tls++) {
        co_err err = run_both(NULL, tls, rounds, &result[tls]);
        if (err)
            return co_say_error(err);
        middle[tls] = median(result[tls].ms, rounds);
    }
    printf("{\"task\":\"exchange\",\"link\":\"tcp\",\"hosts\":2,\"bytes\":%.0f,\"rounds\":%d", bytes, rounds);
    for (int tls = 0; tls < 2; tls++) {
        const char *name = tls ? "tls" : "plain";
        printf(",\"%s_ms\":%.2f,\"%s_gb_per_s\":%.3f,\"%s_cpu_ms\":%.2f", name, middle[tls], name,
               1e-6 * bytes / middle[tls], name, result[tls].cpu_ms / rounds);
    }
    printf("}\n");
    return CO_EXIT_DONE;
}
