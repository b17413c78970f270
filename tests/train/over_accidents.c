/* over_accidents.c -- see over.h: what happens to the hosts, and how long the first host takes to get over
 * it. */
#include <arpa/inet.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"
#include "link/links.h"
#include "train/over_int.h"

/* --- finding a process ---------------------------------------------------------------------------------- */
/* Of the children of a supervisor only the carrier has sockets. */
static bool has_socket(pid_t pid)
{
    char path[400], to[64];
    bool found = false;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        snprintf(path, sizeof path, "/proc/%d/fd/%s", (int)pid, e->d_name);
        ssize_t n = readlink(path, to, sizeof to - 1);
        found = n > 7 && memcmp(to, "socket:", 7) == 0;
    }
    if (dir)
        closedir(dir);
    return found;
}

/* The n-th rank of a host, or its carrier; 0: there is none at the moment. */
static pid_t child_of(pid_t pid, bool carrier, int n)
{
    char path[80];
    int child, found = 0;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "r");
    while (f && !found && fscanf(f, "%d", &child) == 1)
        if (has_socket(child) == carrier && n-- == 0)
            found = child;
    if (f)
        fclose(f);
    return found;
}

/* --- strangers ------------------------------------------------------------------------------------------ */
enum { STRANGERS = 300, AT_ONCE = 60 };

/* Connects as a member would, with another token or without any, and goes. */
static void knock(int port, co_tls *tls)
{
    co_link_spec spec = {.me = 0, .birth = 5, .run = 7, .listener = -1, .tls = tls};
    co_link_peer peers[2] = {{.id = 0, .birth = 5}, {.id = 1, .birth = 6, .port = port, .host = "127.0.0.1"}};
    uint64_t until = co_now_ns() + UINT64_C(2000000000);
    co_link *link;
    char why[400] = "";
    int peer;

    CHECK_OK(co_link_tcp(&link, &spec));
    CHECK_OK(co_link_meet(link, peers, 2));
    while (!co_link_lost(link, &peer, why, sizeof why) && co_now_ns() < until)
        CHECK_OK(co_link_turn(link, 1));
    CHECK(*why, "a stranger was let in");
    co_link_close(link);
}

/* Says nothing, garbage, or the beginning of a handshake; the connection stays open for a while. */
static int intrude(int port, int i, uint64_t *rng)
{
    char noise[900] = {0x16, 3, 1};
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        close(fd);
        return -1;
    }
    for (size_t k = i % 3 == 1 ? 0 : 3; k < sizeof noise; k++)
        noise[k] = (char)test_u32(rng);
    if (i % 3)
        (void)!write(fd, noise, sizeof noise);
    return fd;
}

static void be_strangers(int port)
{
    co_token other = {{1, 2, 3}};
    int fd[AT_ONCE];
    uint64_t rng = 11;
    co_tls *tls;

    CHECK_OK(co_tls_new(&tls, &other, "over"));
    memset(fd, -1, sizeof fd);
    for (int i = 0; i < STRANGERS; i++) {
        int *slot = &fd[i % AT_ONCE];
        if (*slot >= 0)
            close(*slot);
        *slot = -1;
        if (i % 3 == 0)
            knock(port, i % 2 ? tls : NULL);
        else
            *slot = intrude(port, i / 3, &rng);
    }
    _exit(0);
}

static void let_strangers_in(int port)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        be_strangers(port);
    }
    over_play.strangers = pid;
}

/* --- what happens --------------------------------------------------------------------------------------- */
void over_pause(pid_t pid, int ms)
{
    struct pause *free = over_play.pause;

    while (free->pid)
        free++;
    *free = (struct pause){pid, co_now_ns() + (uint64_t)ms * 1000000};
    kill(pid, SIGSTOP);
}

static void note_wound(int i, bool needs_view)
{
    const struct player *first = &over_play.host[0];

    over_play.wound[i] = (struct wound){co_now_ns(), first->step, first->views, needs_view};
}

/* False: nobody is there to whom it could happen. */
static bool happen_to(int i, pid_t pid)
{
    int rank = over_play.scene->event[i].rank, ms = over_play.scene->event[i].ms;
    pid_t child;

    switch (over_play.scene->event[i].what) {
    case OVER_KILL:
        return kill(-pid, SIGKILL) == 0;
    case OVER_KILL_HEAD:
        return kill(pid, SIGKILL) == 0;
    case OVER_KILL_RANK:
        child = child_of(pid, false, rank);
        return child && kill(child, SIGKILL) == 0;
    case OVER_KILL_CARRIER:
        child = child_of(pid, true, 0);
        return child && kill(child, SIGKILL) == 0;
    case OVER_STOP:
        return kill(pid, SIGTERM) == 0;
    case OVER_FREEZE:
        return kill(-pid, SIGSTOP) == 0;
    case OVER_THAW:
        return kill(-pid, SIGCONT) == 0;
    case OVER_PAUSE:
        over_pause(-pid, ms);
        return true;
    case OVER_PAUSE_RANK:
        child = child_of(pid, false, rank);
        if (child)
            over_pause(child, ms);
        return child != 0;
    case OVER_CUT:
        if (over_play.scene->lan)
            over_cut(over_play.scene->event[i].host, ms);
        else
            over_pause(-pid, ms);
        return true;
    case OVER_SLOW:
        if (over_play.scene->lan)
            over_slow(over_play.scene->event[i].host, ms);
        return true;
    case OVER_NOTHING:
    case OVER_JOIN:
    case OVER_STRANGERS:
        break;
    }
    return true;
}

void over_happen(int i)
{
    over_what what = over_play.scene->event[i].what;
    int h = over_play.scene->event[i].host;
    bool lost = what == OVER_KILL || what == OVER_KILL_HEAD || what == OVER_KILL_CARRIER ||
                ((what == OVER_PAUSE || what == OVER_CUT) && over_play.scene->event[i].ms > 1000);

    over_play.done[i] = true;
    if (getenv("OVER_TALK"))
        test_note("%.1f s, event %d (%d) to h%d after step %lld",
                  (double)(co_now_ns() - over_play.began_ns) * 1e-9, i, (int)what, h,
                  (long long)over_play.host[0].step);
    if (what == OVER_JOIN)
        over_join(h);
    else if (what == OVER_STRANGERS)
        let_strangers_in(over_play.host[h].port);
    else if (over_play.host[h].pid && happen_to(i, over_play.host[h].pid) && (lost || what == OVER_KILL_RANK))
        note_wound(i, lost);
}

/* --- time ----------------------------------------------------------------------------------------------- */
/* The first rank of one host runs half of the time. */
static void slow_down(uint64_t now)
{
    enum { HALF_MS = 15 };
    int h = over_play.scene->slow;

    if (!h || !over_play.host[h].pid || now - over_play.slow_ns < HALF_MS * UINT64_C(1000000))
        return;
    over_play.slow_ns = now;
    if (over_play.slowed) {
        kill(over_play.slowed, SIGCONT);
        over_play.slowed = 0;
    } else {
        over_play.slowed = child_of(over_play.host[h].pid, false, 0);
        if (over_play.slowed)
            kill(over_play.slowed, SIGSTOP);
    }
}

static void end_strangers(void)
{
    int status;

    if (!over_play.strangers || waitpid(over_play.strangers, &status, WNOHANG) != over_play.strangers)
        return;
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a stranger was let in");
    over_play.story.strangers = over_play.host[0].pid ? STRANGERS : 0;
    over_play.strangers = 0;
}

void over_accident_turn(uint64_t now)
{
    for (struct pause *p = over_play.pause; p < over_play.pause + OVER_EVENTS; p++)
        if (p->pid && now >= p->until_ns) {
            kill(p->pid, SIGCONT);
            p->pid = 0;
        }
    over_net_turn(now);
    slow_down(now);
    end_strangers();
}

void over_first_steps(const struct told *it)
{
    over_story *story = &over_play.story;

    if (story->reported >= 0)
        story->reported = it->step == story->reported + 1 ? it->step : -1;
    for (struct wound *w = over_play.wound; w < over_play.wound + OVER_EVENTS; w++)
        if (w->t_ns && it->t_ns > w->t_ns && (w->needs_view ? it->views > w->views : it->step > w->step + 1)) {
            story->recovery_s[story->recoveries++] = (double)(it->t_ns - w->t_ns) * 1e-9;
            w->t_ns = 0;
        }
}

/* This process is the parent of those whose parent died. They have two seconds to end by themselves. */
int over_reap_orphans(void)
{
    uint64_t until = co_now_ns() + UINT64_C(2000000000);
    pid_t left;
    int n = 0;

    while ((left = waitpid(-1, NULL, WNOHANG)) >= 0 && co_now_ns() < until)
        if (left == 0)
            usleep(2000);
    for (; left >= 0; n++) {
        left = child_of(getpid(), false, 0);
        if (!left)
            left = child_of(getpid(), true, 0);
        if (!left)
            break;
        kill(left, SIGKILL);
        waitpid(left, NULL, 0);
    }
    return n;
}
