/* What launchers exchange before they meet: PMI-1 with a server that gives any answer, and the lobby of a
 * Slurm step with its own munge daemon and with clients that do not belong to the job. */
#include "place/place_int.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"

/* ---- PMI ---- */
typedef struct dialogue {
    int fd;
    const char *const *answers; /* one for each line that comes, in order; NULL ends the list */
} dialogue;

static void *answer_each(void *arg)
{
    dialogue *d = arg;
    ssize_t n = 1;
    char c = 0;

    for (int i = 0; d->answers[i] && n == 1; i++) {
        while ((n = read(d->fd, &c, 1)) == 1 && c != '\n')
            ;
        if (n == 1 && write(d->fd, d->answers[i], strlen(d->answers[i])) < 0)
            break;
    }
    close(d->fd);
    return NULL;
}

/* Starts a server at the descriptor PMI_FD and returns its thread. */
static pthread_t pmi_up(dialogue *d, const char *const *answers)
{
    int fd[2];
    char number[16];
    pthread_t server;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0, "socketpair");
    snprintf(number, sizeof number, "%d", fd[0]);
    setenv("PMI_FD", number, 1);
    *d = (dialogue){fd[1], answers};
    CHECK(pthread_create(&server, NULL, answer_each, d) == 0, "thread");
    return server;
}

static co_err talk_pmi(card *c, const char *const *answers, double patience_s)
{
    co_place p = {.name = "mpirun (PMI)", .row = &place_pmi, .seats = 2, .seat = 1};
    co_patience patience = co_patience_s(patience_s);
    dialogue d;
    pthread_t server = pmi_up(&d, answers);
    co_err err = place_pmi.share(&p, c, &patience, NULL);
    char why[1024];

    snprintf(why, sizeof why, "%s", co_errmsg());
    shutdown(d.fd, SHUT_RDWR);
    pthread_join(server, NULL);
    co_place_close(&p);
    return err ? co_fail(err, "%s", why) : CO_OK;
}

#define INIT "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
#define NAME "cmd=my_kvsname kvsname=kvs_1\n"

TEST(a_pmi_server_may_answer_anything_and_only_a_card_is_taken)
{
    static char endless[PMI_LINE + 100];
    static const struct {
        const char *answers[6];
        const char *words; /* NULL: it works */
    } cases[] = {
        {{INIT, NAME, "cmd=barrier_out\n", "cmd=get_result rc=0 msg=success value=a:29400|10.0.0.1|\n",
          "cmd=finalize_ack\n"},
         NULL},
        {{NULL}, "PMI"}, /* closed before or after our first word */
        {{"\n"}, "something other than response_to_init"},
        {{"cmd=response_to_init rc=-1\n"}, "refused"},
        {{INIT, "cmd=my_kvsname\n"}, "names no key-value space"},
        {{INIT, NAME, "cmd=barrier_out rc=1\n"}, "refused"},
        {{INIT, NAME, "cmd=barrier_out\n", "cmd=get_result rc=0 msg=success\n"}, "no card from the first"},
        {{INIT, NAME, "cmd=barrier_out\n", "cmd=get_result rc=0 value=nonsense\n", "cmd=finalize_ack\n"},
         "card"},
        {{INIT, NAME, "cmd=barrier_out\n", "cmd=get_result rc=0 value=a:1||secret\n", "cmd=finalize_ack\n"},
         "token"},
        {{endless}, "without an end"},
    };
    card c;

    memset(endless, 'x', sizeof endless - 1);
    for (size_t i = 0; i < CO_COUNT(cases); i++) {
        co_err err = talk_pmi(&c, cases[i].answers, 5);
        if (!cases[i].words)
            CHECK(err == CO_OK && strcmp(c.endpoint, "a:29400") == 0, "case %zu: %s", i, co_errmsg());
        else
            CHECK(err != CO_OK && strstr(co_errmsg(), cases[i].words),
                  "case %zu: error %d \"%s\", wanted \"%s\"", i, err, co_errmsg(), cases[i].words);
    }
}

typedef struct layout_case {
    const char *size, *rank, *mapping; /* mapping: PMI's answer about PMI_process_mapping */
    int nodes, node, tasks, task, tasks_most;
} layout_case;

#define MAPPING(text) "cmd=get_result rc=0 msg=success value=" text "\n"

/* The number of tasks on each host comes from the list of the whole job, not from this host's variables. */
static void check_layout(const layout_case *c)
{
    const char *answers[] = {INIT, NAME, c->mapping, "cmd=finalize_ack\n", NULL};
    co_place_ask ask = {.nproc = 1, .node_rank = -1};
    dialogue d;
    co_place p;

    setenv("PMI_SIZE", c->size, 1);
    setenv("PMI_RANK", c->rank, 1);
    pthread_t server = pmi_up(&d, answers);
    CHECK_OK(co_place_find(&p, &ask));
    CHECK(p.nodes == c->nodes && p.node == c->node && p.tasks == c->tasks && p.task == c->task &&
              p.tasks_most == c->tasks_most,
          "rank %s of %s, %s: host %d of %d, task %d of %d, most %d", c->rank, c->size, c->mapping, p.node,
          p.nodes, p.task, p.tasks, p.tasks_most);
    co_place_close(&p);
    pthread_join(server, NULL);
}

TEST(what_pmi_says_of_all_hosts_counts_and_not_what_this_one_has)
{
    static const layout_case cases[] = {
        {"3", "0", MAPPING("(vector,(0,1,2),(1,1,1))"), 2, 0, 2, 0, 2},
        {"3", "2", MAPPING("(vector,(0,1,2),(1,1,1))"), 2, 1, 1, 0, 2},
        {"3", "0", MAPPING("(vector,(0,1,1),(1,1,2))"), 2, 0, 1, 0, 2},
        {"4", "2", MAPPING("(vector,(0,4,1))"), 4, 2, 1, 0, 1},
        {"6", "5", MAPPING("(vector,(0,3,2))"), 3, 2, 2, 1, 2},
        {"7", "6", MAPPING("(vector,(0,1,2),(1,1,1))"), 2, 0, 5, 4, 5}, /* it goes round */
        {"2", "1", MAPPING("(vector,(4,1,1),(9,1,8))"), 2, 1, 1, 0, 1}, /* numbers of more than these */
        {"3", "1", MAPPING("(vector,(7,1,3))"), 1, 0, 3, 1, 3},
        {"3", "2", "cmd=get_result rc=-1 msg=key_not_found value=unknown\n", 0, -1, 1, 0, 1},
        {"3", "2", MAPPING("(vector,(0,1"), 0, -1, 1, 0, 1},
    };

    unsetenv("MPI_LOCALNRANKS");
    unsetenv("MPI_LOCALRANKID");
    for (size_t i = 0; i < CO_COUNT(cases); i++)
        check_layout(&cases[i]);
}

/* Task 0 is on another host and may have nothing to refuse, so it would print nothing. */
TEST(where_hosts_are_unknown_a_refusal_is_said_by_whom_it_concerns)
{
    static const char *const answers[] = {INIT, NAME, "cmd=get_result rc=-1 msg=no value=unknown\n",
                                          "cmd=finalize_ack\n", NULL};
    co_place_ask ask = {.nproc = 4, .node_rank = -1};
    dialogue d;
    co_place p;

    setenv("PMI_SIZE", "3", 1);
    setenv("PMI_RANK", "2", 1);
    setenv("MPI_LOCALNRANKS", "2", 1);
    setenv("MPI_LOCALRANKID", "1", 1);
    pthread_t server = pmi_up(&d, answers);
    CHECK_FAILS(co_place_find(&p, &ask), CO_EINPUT, "starts 2 tasks on a host");
    pthread_join(server, NULL);
}

/* ---- the lobby ---- */
static pid_t munged;

static bool answers(void *path)
{
    return access(path, F_OK) == 0;
}

/* Starts a munge daemon in the test's folder, and writes a scontrol that prints where it listens. */
static void munge_up(void)
{
    char dir[1024], path[4096];

    CHECK(getcwd(dir, sizeof dir), "getcwd");
    snprintf(path, sizeof path, "%s:%s:/usr/sbin:/sbin", dir, getenv("PATH"));
    setenv("PATH", path, 1);
    if (test_sh("command -v munged").status != 0 || test_sh("ldconfig -p | grep -q libmunge.so.2").status != 0)
        test_skip("no munged or libmunge.so.2 here (packages munge, libmunge2)");
    test_may_leak();
    CHECK(test_sh("umask 077; head -c 1024 /dev/urandom > munge.key;"
                  " printf '#!/bin/sh\\necho \"AuthInfo = socket=%s/sock,ttl=5\"\\n' > scontrol; chmod 755 "
                  "scontrol",
                  dir)
                  .status == 0,
          "files");
    munged =
        test_spawn("munged.out",
                   "exec munged -F -f -S %s/sock --key-file=%s/munge.key --pid-file=%s/pid --log-file=%s/log"
                   " --seed-file=%s/seed",
                   dir, dir, dir, dir, dir);
    test_until(answers, "sock", 10, "munged");
}

static void munge_down(void)
{
    kill(munged, SIGTERM);
    CHECK(test_wait(munged, 5) >= 0, "munged stays");
}

static card made_card(void)
{
    card c = {.endpoint = "127.0.0.1:29400", .also = "10.0.0.1"};
    co_token token = {{7}};

    co_token_text(c.token, &token);
    return c;
}

static void untold(const char *line)
{
    test_note("%s", line);
}

static int knock(int port)
{
    co_patience p = co_patience_s(5);
    co_addr a;
    int n, fd;

    CHECK_OK(co_net_resolve(&a, 1, &n, "127.0.0.1", port, &p));
    CHECK_OK(co_net_connect(&fd, &a, &p));
    return fd;
}

/* Sends these bytes to the lobby and returns how many bytes it answers. */
static ssize_t stranger(int port, const char *bytes)
{
    char got[64];
    int fd = knock(port);
    struct pollfd f = {.fd = fd, .events = POLLIN};

    CHECK(send(fd, bytes, strlen(bytes), MSG_NOSIGNAL) >= 0, "send");
    CHECK(poll(&f, 1, 5000) == 1, "neither answered nor closed");
    ssize_t n = recv(fd, got, sizeof got, 0);
    close(fd);
    return n > 0 ? n : 0;
}

TEST(what_munge_wraps_is_for_this_user_alone_whatever_it_unwrapped_before)
{
    char text[200];
    munge *m;
    char line[LOBBY_LINE + 8];

    munge_up();
    CHECK_OK(munge_open(&m));
    test_run open_one = test_sh("munge --socket=$PWD/sock --cipher=none --string=anybody");
    CHECK(open_one.status == 0, "munge: %s", open_one.out);
    open_one.out[strcspn(open_one.out, "\n")] = '\0';
    CHECK_OK(munge_unwrap(m, text, sizeof text, open_one.out));
    CHECK_OK(munge_wrap(m, line, LOBBY_LINE, "token"));
    test_run seen = test_sh("echo '%s' | unmunge --socket=$PWD/sock", line);
    CHECK(seen.status == 0 && test_contains(seen.out, "aes128") && test_contains(seen.out, "UID_RESTRICTION"),
          "%s", seen.out);
    munge_close(m);
    munge_down();
}

TEST(the_lobby_answers_its_own_seats_and_nobody_else)
{
    card c = made_card(), got;
    lobby *l;
    munge *m;
    char line[LOBBY_LINE + 8], greeting[100];
    co_patience patience = co_patience_s(20);

    munge_up();
    snprintf(greeting, sizeof greeting, "slurm-test-%d", (int)getpid());
    char run_id[120];
    co_holder taken;
    int port;
    for (int i = 0; i == 0 || co_net_holder(&taken, port); i++) { /* until the first port is free */
        snprintf(run_id, sizeof run_id, "%s.%d", greeting, i);
        port = lobby_port(run_id, 0);
    }
    CHECK_OK(lobby_open(&l, "127.0.0.1", run_id, 4, &c));

    CHECK(stranger(port, "GET / HTTP/1.0\n") == 0, "words for a stranger");
    memset(line, 'x', sizeof line);
    line[LOBBY_LINE] = '\0';
    CHECK(stranger(port, line) == 0, "words after a line without an end");
    double before = co_now_s();
    CHECK(stranger(port, "half a li") == 0, "words for a slow one");
    CHECK(co_now_s() - before < 4, "a slow one stays %.1f s", co_now_s() - before);

    CHECK_OK(munge_open(&m)); /* this user, but of another run, or of a seat that is none */
    lobby_greeting(greeting, sizeof greeting, "slurm-other", 1);
    CHECK_OK(munge_wrap(m, line, LOBBY_LINE, greeting));
    strcat(line, "\n");
    CHECK(stranger(port, line) == 0, "words for another run");
    lobby_greeting(greeting, sizeof greeting, run_id, 1);
    CHECK_OK(munge_wrap(m, line, LOBBY_LINE, greeting));
    strcat(line, "\n");
    CHECK(stranger(port, line) > 0, "nothing for seat 1");
    CHECK(stranger(port, line) == 0, "words for a credential that was recorded");
    munge_close(m);

    int idle[3 * CO_STRANGERS];
    for (size_t i = 0; i < CO_COUNT(idle); i++) /* more than it keeps: it closes the oldest */
        idle[i] = knock(port);
    for (int seat = 1; seat < 4; seat++) {
        CHECK_OK(lobby_ask(&got, "127.0.0.1", run_id, seat, &patience, untold));
        CHECK(memcmp(&got, &c, sizeof c) == 0, "seat %d got %s", seat, got.endpoint);
    }
    for (size_t i = 0; i < CO_COUNT(idle); i++)
        close(idle[i]);
    co_holder who; /* every seat has the card: the lobby is closed, though the job still runs */
    for (int i = 0; i < 500 && co_net_holder(&who, port); i++)
        poll(NULL, 0, 10);
    CHECK(!co_net_holder(&who, port), "it still listens");
    lobby_close(l);
    munge_down();
}

TEST(a_lobby_whose_port_is_taken_is_found_at_the_next)
{
    card c = made_card(), got;
    lobby *l;
    int fd;
    char run_id[100];
    co_patience patience = co_patience_s(20);

    munge_up();
    snprintf(run_id, sizeof run_id, "slurm-taken-%d", (int)getpid());
    CHECK_OK(co_net_listen(&fd, "127.0.0.1", lobby_port(run_id, 0)));
    CHECK_OK(lobby_open(&l, "127.0.0.1", run_id, 2, &c));
    close(fd); /* nobody answers on this port: the joiner tries the next */
    CHECK_OK(lobby_ask(&got, "127.0.0.1", run_id, 1, &patience, untold));
    CHECK(strcmp(got.token, c.token) == 0, "another card");
    lobby_close(l);

    patience = co_patience_s(0.3);
    CHECK_FAILS(lobby_ask(&got, "127.0.0.1", run_id, 1, &patience, untold), CO_EFAIL, "does not answer");
    munge_down();
    patience = co_patience_s(5);
    CHECK_FAILS(lobby_ask(&got, "127.0.0.1", run_id, 1, &patience, untold), CO_EIO, "munge");
}
