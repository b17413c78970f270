/* over.c -- see over.h. */
#include "train/over.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"
#include "link/links.h"
#include "net/net.h"
#include "proc/crew.h"
#include "proc/look.h"

/* What a host tells the test. */
struct told {
    int kind; /* 0: a step; 1: the end; 2: a line */
    int64_t step;
    over_end end;
    char text[400];
};

struct player {
    pid_t pid; /* 0: not started, or reaped */
    int pipe;
    bool started;
};

static struct theatre {
    const over_scene *scene;
    char endpoint[64];
    co_meet meet;
    co_token token;
    struct player host[OVER_HOSTS];
    bool done[OVER_EVENTS];
} play;

/* --- a host --------------------------------------------------------------------------------------------- */
static int out_fd, my_views;

static void say(const struct told *what)
{
    if (write(out_fd, what, sizeof *what) != (ssize_t)sizeof *what)
        _exit(9);
}

static void on_step(void *ctx, const co_step_result *r)
{
    (void)ctx;
    say(&(struct told){.kind = 0, .step = r->step});
}

static void on_view(void *ctx, const co_roster_view *view)
{
    (void)ctx, (void)view;
    my_views++;
}

static void on_notice(void *ctx, const char *text)
{
    struct told line = {.kind = 2};

    (void)ctx;
    snprintf(line.text, sizeof line.text, "%s", text);
    say(&line);
}

static co_terms terms_of(const over_scene *s, int number, int port, uint64_t birth)
{
    co_terms terms = {.min_hosts = s->hosts,
                      .max_hosts = s->most ? s->most : s->hosts,
                      .least_hosts = s->least ? s->least : 1,
                      .nproc = s->ranks,
                      .host_rank = -1,
                      .views = true,
                      .bulk_port = port,
                      .birth = birth,
                      .run_id = "over",
                      .program = "train",
                      .version = "test"};

    (void)number;
    return terms;
}

static co_err perform(int number, over_end *end)
{
    const over_scene *s = play.scene;
    co_train_summary out = {0};
    co_train_hosts hosts = {.run = 7,
                            .listener = -1,
                            .link = CO_LINK_TCP,
                            .flip_at = s->flip_at[number],
                            .spoil_from = s->spoil_from[number]};
    co_meet meet = play.meet;
    co_plan *plan;
    char facts[64], devices[40];
    stage g;

    stage_open(&g, s->words);
    snprintf(devices, sizeof devices, "trainer.devices=%d", s->ranks);
    stage_set(&g, devices);
    g.spec.hosts = s->most ? s->most : s->hosts;
    g.spec.meets = true;
    CO_TRY(co_plan_new(&plan, &g.spec));
    co_signals_hold();
    CO_TRY(co_net_listen(&hosts.listener, "127.0.0.1", 0));
    co_addr mine = co_net_local(hosts.listener);
    if (getrandom(&hosts.birth, sizeof hosts.birth, 0) < 0)
        return CO_EFAIL;
    co_terms terms = terms_of(s, number, co_addr_port(&mine), hosts.birth);
    snprintf(facts, sizeof facts, "{\"slices\": \"%d\"}", co_plan_facts_of(plan)->slices);
    terms.facts = facts;
    if (number > 0)
        meet.listener = 0;
    meet.role = number == 0 ? CO_MEET_SERVE : CO_MEET_JOIN;
    snprintf(meet.host, sizeof meet.host, "h%d", number);
    meet.lost_after_s = 1;
    meet.last_call_s = 0.2;
    meet.insecure = s->plain;
    meet.join_timeout_s = 20;
    if (!s->plain)
        CO_TRY(co_tls_new(&hosts.tls, &play.token, "over"));
    CO_TRY(co_roster_open(&hosts.roster, &terms, &meet));
    co_err err = co_train_run_over(
        plan, &hosts, &(co_train_hooks){.step = on_step, .view = on_view, .notice = on_notice}, &out);
    if (err)
        snprintf(end->why, sizeof end->why, "%s", co_errmsg());
    end->status = (int)out.status;
    end->steps = out.steps;
    end->wall_s = out.wall_s;
    end->views = my_views;
    memcpy(end->sha, out.weights_sha256, sizeof end->sha);
    if (co_roster_keeps(hosts.roster))
        co_roster_finish(hosts.roster);
    co_roster_close(hosts.roster);
    return err;
}

static void start(int number)
{
    int ends[2];

    CHECK(pipe(ends) == 0, "pipe");
    pid_t pid = fork();
    if (pid == 0) {
        struct told last = {.kind = 1};
        setpgid(0, 0);
        out_fd = ends[1];
        close(ends[0]);
        last.end.err = perform(number, &last.end);
        if (last.end.err && !last.end.why[0])
            snprintf(last.end.why, sizeof last.end.why, "%s", co_errmsg());
        last.end.there = true;
        say(&last);
        _exit(0);
    }
    close(ends[1]);
    setpgid(pid, pid);
    play.host[number] = (struct player){.pid = pid, .pipe = ends[0], .started = true};
}

/* --- what happens --------------------------------------------------------------------------------------- */
/* The n-th child of a process: ranks first, then the carrier. */
static pid_t child_of(pid_t pid, int n)
{
    char path[80];
    int child = 0;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "r");
    for (int i = 0; f && i <= n; i++)
        if (fscanf(f, "%d", &child) != 1)
            child = 0;
    if (f)
        fclose(f);
    return child;
}

static void happen(int i)
{
    int h = play.scene->event[i].host;
    pid_t pid = play.host[h].pid;

    play.done[i] = true;
    switch (play.scene->event[i].what) {
    case OVER_NOTHING:
        break;
    case OVER_KILL:
        kill(-pid, SIGKILL);
        break;
    case OVER_KILL_RANK:
    case OVER_KILL_CARRIER: {
        int n = play.scene->event[i].what == OVER_KILL_RANK ? 0 : play.scene->ranks;
        pid_t child = child_of(pid, n);
        CHECK(child > 0, "host %d has no such child", h);
        kill(child, SIGKILL);
        break;
    }
    case OVER_STOP:
        kill(pid, SIGTERM);
        break;
    case OVER_FREEZE:
        kill(-pid, SIGSTOP);
        break;
    case OVER_THAW:
        kill(-pid, SIGCONT);
        break;
    case OVER_JOIN:
        start(h);
        break;
    }
}

static void hear(int h, const struct told *what, over_end end[OVER_HOSTS])
{
    if (what->kind == 2 && getenv("OVER_TALK"))
        printf("     # h%d: %s\n", h, what->text);
    if (what->kind == 1)
        end[h] = what->end;
    for (int i = 0; what->kind == 0 && i < OVER_EVENTS; i++)
        if (h == 0 && play.scene->event[i].what && !play.done[i] && what->step >= play.scene->event[i].after)
            happen(i);
}

static bool listen_once(over_end end[OVER_HOSTS])
{
    struct pollfd fds[OVER_HOSTS];
    int left = 0;

    for (int h = 0; h < OVER_HOSTS; h++) {
        fds[h] = (struct pollfd){.fd = play.host[h].pid ? play.host[h].pipe : -1, .events = POLLIN};
        left += play.host[h].pid != 0;
    }
    if (!left || poll(fds, OVER_HOSTS, 100) < 0)
        return left > 0;
    for (int h = 0; h < OVER_HOSTS; h++) {
        struct told what;
        if (!play.host[h].pid || !fds[h].revents)
            continue;
        ssize_t n = read(play.host[h].pipe, &what, sizeof what);
        if (n == (ssize_t)sizeof what) {
            hear(h, &what, end);
        } else if (n <= 0) {
            waitpid(play.host[h].pid, NULL, 0);
            close(play.host[h].pipe);
            play.host[h].pid = 0;
        }
    }
    return true;
}

void over_run(const over_scene *scene, over_end end[OVER_HOSTS])
{
    memset(end, 0, OVER_HOSTS * sizeof *end);
    play = (struct theatre){.scene = scene, .meet = {.endpoint = "127.0.0.1:0", .insecure = scene->plain}};
    CHECK_OK(co_token_make(&play.token));
    if (!scene->plain)
        co_token_text(play.meet.token, &play.token);
    CHECK_OK(co_meet_listen(&play.meet));
    for (int h = 0; h < scene->hosts; h++)
        start(h);
    close(play.meet.listener);
    while (listen_once(end))
        ;
}

void over_alone(const char *const *words, char sha[65])
{
    co_train_summary out;
    co_plan *plan;
    stage g;

    stage_open(&g, words);
    stage_set(&g, "trainer.devices=1");
    CHECK_OK(co_plan_new(&plan, &g.spec));
    CHECK_OK(co_train_run(plan, &(co_train_hooks){0}, &out));
    memcpy(sha, out.weights_sha256, 65);
    co_plan_free(plan);
    stage_close(&g);
}
