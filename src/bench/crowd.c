/* crowd.c -- strangers at the link's port of the second host of a pair, while it trains; and the CPU time of the
 * carriers.
 *
 * A thread finds the carriers below this process: each is the child of a `cohort train` that holds a listening socket.
 * It then lets the strangers come, evenly spread, in turn of four kinds:
 *
 *     no token       the beginning of a plain connection
 *     wrong token    a TLS handshake with another token
 *     replay         all that a client with the right token sent once, byte for byte
 *     garbage        900 random bytes
 *
 * A stranger keeps its connection until its place is needed, CROWD_PLACES strangers later, and notes whether the host
 * has closed it by then.
 */
#include "bench/bench_int.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "proc/look.h"

enum { GARBAGE = 900, TICK_NS = 10000000, RECORD_NS = 2000000000 };

/* --- the carriers --------------------------------------------------------------------------------------- */
static bool holds(pid_t pid, unsigned long inode)
{
    char path[400], to[64], want[64];
    bool found = false;

    snprintf(want, sizeof want, "socket:[%lu]", inode);
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        snprintf(path, sizeof path, "/proc/%d/fd/%s", (int)pid, e->d_name);
        ssize_t n = readlink(path, to, sizeof to - 1);
        found = n > 0 && (size_t)n == strlen(want) && memcmp(to, want, (size_t)n) == 0;
    }
    if (dir)
        closedir(dir);
    return found;
}

/* The port of a listening socket that the process holds; 0: none. */
static int port_of(pid_t pid)
{
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    char line[400];
    unsigned port, state;
    unsigned long inode;
    int found = 0;

    for (size_t i = 0; i < CO_COUNT(tables); i++) {
        FILE *f = fopen(tables[i], "re");
        while (f && !found && fgets(line, sizeof line, f))
            if (sscanf(line, " %*d: %*[0-9A-F]:%x %*s %x %*s %*s %*s %*s %*s %lu", &port, &state, &inode) == 3 &&
                state == 0x0A && holds(pid, inode))
                found = (int)port;
        if (f)
            fclose(f);
    }
    return found;
}

/* -1: not a host of the pair. */
static int host_of(pid_t pid)
{
    char line[4096];
    size_t n = co_proc_text(line, sizeof line, pid, "cmdline");

    if (memmem(line, n, "--node-rank=0", 13))
        return 0;
    return memmem(line, n, "--node-rank=1", 13) ? 1 : -1;
}

static void find_carriers(crowd *c)
{
    pid_t host[16], child[64];
    int hosts = co_proc_children(host, CO_COUNT(host), getpid());

    for (int i = 0; i < hosts; i++) {
        int h = host_of(host[i]), n = h < 0 ? 0 : co_proc_children(child, CO_COUNT(child), host[i]);
        for (int k = 0; k < n && !c->carrier[h]; k++) {
            int port = port_of(child[k]);
            if (port) {
                c->carrier[h] = child[k];
                c->port[h] = port;
            }
        }
    }
}

static void read_carriers(crowd *c)
{
    co_proc now;

    for (int h = 0; h < 2; h++)
        if (c->carrier[h] && co_proc_read(&now, c->carrier[h]))
            c->carrier_cpu_s[h] = (double)now.ticks / (double)sysconf(_SC_CLK_TCK);
}

/* --- a stranger ----------------------------------------------------------------------------------------- */
static void leave(crowd *c, int place)
{
    char bytes[256];
    ssize_t n;

    if (!c->guest[place])
        return;
    while ((n = recv(co_stream_fd(c->guest[place]), bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        ;
    c->refused += n == 0 || (errno != EAGAIN && errno != EINTR);
    co_stream_free(c->guest[place]);
    c->guest[place] = NULL;
}

static co_err knock(int *fd, int port)
{
    co_patience patience = co_patience_s(2);
    co_addr to;
    int n;

    CO_TRY(co_net_resolve(&to, 1, &n, "127.0.0.1", port, &patience));
    return co_net_connect(fd, &to, &patience);
}

/* What the host says of it does not matter: it may close the connection at any moment. */
static co_err come(crowd *c, int i)
{
    uint8_t bytes[GARBAGE] = {'C', 'O', 'H', 'B'};
    int place = i % CROWD_PLACES, fd;

    leave(c, place);
    CO_TRY(knock(&fd, c->port[1]));
    CO_TRY(co_stream_new(&c->guest[place], fd, i % 4 == 1 ? c->wrong : NULL, CO_CONN_CLIENT));
    if (i % 4 < 2) {
        co_stream_say(c->guest[place], bytes);
        (void)co_stream_work(c->guest[place]);
        return CO_OK;
    }
    for (uint32_t k = 0; k < GARBAGE; k += 4) {
        uint32_t u[4];
        co_rng_draw(u, co_rng_key_make(7, CO_RNG_DATA), 5, 0, (uint32_t)i, k);
        memcpy(bytes + k, u, 4);
    }
    if (i % 4 == 2)
        (void)!send(fd, c->record, c->recorded, MSG_NOSIGNAL | MSG_DONTWAIT);
    else
        (void)!send(fd, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    return CO_OK;
}

/* --- what is replayed ----------------------------------------------------------------------------------- */
/* Passes on what is there, and keeps a copy of it. */
static void pass(int from, int to, uint8_t *copy, size_t *copied, size_t most)
{
    uint8_t bytes[2048];
    ssize_t n = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);

    if (n <= 0)
        return;
    (void)!send(to, bytes, (size_t)n, MSG_NOSIGNAL);
    if (copy && *copied + (size_t)n <= most) {
        memcpy(copy + *copied, bytes, (size_t)n);
        *copied += (size_t)n;
    }
}

/* A client with the right token connects through us. Its greeting is that of no host, so it is refused then. */
static co_err record(crowd *c)
{
    const char *text = getenv("COHORT_TOKEN");
    uint64_t until = co_now_ns() + RECORD_NS;
    uint8_t hello[CO_STREAM_HELLO] = {'C', 'O', 'H', 'B'};
    co_stream *client = NULL;
    co_tls *tls = NULL;
    co_token token;
    int ends[2], fd = -1;

    CO_TRY(co_token_parse(&token, text ? text : ""));
    CO_TRY(co_tls_new(&tls, &token, CROWD_RUN));
    co_err err = co_net_pair(ends);
    if (err)
        goto out;
    err = co_stream_new(&client, ends[0], tls, CO_CONN_CLIENT);
    if (!err)
        err = knock(&fd, c->port[1]);
    if (err)
        goto close_other;
    co_stream_say(client, hello);
    while (!err && !c->trusted && co_now_ns() < until) {
        err = co_stream_work(client);
        c->trusted = co_stream_trusts(client);
        pass(ends[1], fd, c->record, &c->recorded, sizeof c->record);
        pass(fd, ends[1], NULL, NULL, 0);
    }
    if (!err) /* the end of its handshake, and its greeting */
        err = co_stream_work(client);
    for (int i = 0; i < 20; i++)
        pass(ends[1], fd, c->record, &c->recorded, sizeof c->record);
    if (!c->trusted)
        err = co_fail(CO_EFAIL, "the second host does not take the run's token: %s",
                      err ? co_errmsg() : "no answer");
close_other:
    close(ends[1]);
    if (fd >= 0)
        close(fd);
    co_stream_free(client);
out:
    co_tls_free(tls);
    return err;
}

/* --- the thread ----------------------------------------------------------------------------------------- */
static co_err watch(crowd *c)
{
    uint64_t began = 0;
    co_err err = CO_OK;

    while (!atomic_load(&c->over) && !err) {
        uint64_t now = co_now_ns();
        if (!c->carrier[0] || !c->carrier[1])
            find_carriers(c);
        read_carriers(c);
        if (!began && c->strangers && c->carrier[1]) {
            err = record(c);
            began = now;
        }
        while (!err && began && c->came < c->strangers &&
               (double)(now - began) * 1e-9 >= c->spread_s * c->came / c->strangers) {
            if (come(c, c->came) != CO_OK)
                break; /* the host is about to end, or has too many guests */
            c->came++;
        }
        nanosleep(&(struct timespec){.tv_nsec = TICK_NS}, NULL);
    }
    for (int i = 0; i < CROWD_PLACES; i++)
        leave(c, i);
    return err;
}

static void *main_of(void *ctx)
{
    crowd *c = ctx;
    struct timespec used;

    c->err = watch(c);
    if (c->err)
        snprintf(c->why, sizeof c->why, "%s", co_errmsg());
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    c->own_cpu_s = (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
    return NULL;
}

co_err crowd_start(crowd *c, int strangers, double spread_s)
{
    co_token other = {{1, 2, 3}};

    *c = (crowd){.strangers = strangers, .spread_s = spread_s};
    CO_TRY(co_tls_new(&c->wrong, &other, CROWD_RUN));
    int failed = co_thread_start(&c->thread, main_of, c);
    if (failed)
        co_tls_free(c->wrong);
    return failed ? co_fail(CO_EIO, "start a thread: %s", strerror(failed)) : CO_OK;
}

co_err crowd_stop(crowd *c)
{
    atomic_store(&c->over, true);
    pthread_join(c->thread, NULL);
    co_tls_free(c->wrong);
    return c->err ? co_fail(c->err, "%s", c->why) : CO_OK;
}
