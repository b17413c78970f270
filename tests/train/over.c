/* over.c -- see over.h. */
#include "train/over.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"
#include "link/links.h"
#include "net/ns.h"
#include "proc/crew.h"
#include "train/over_int.h"

struct theatre over_play;

const char *const over_digits[] = {"model=cnn",
                                   "data=digits",
                                   "optim=adamw",
                                   "data.batch_size=64",
                                   "data.workers=0",
                                   "trainer.slices=16",
                                   "trainer.limit_val_batches=2",
                                   "trainer.limit_test_batches=1",
                                   "trainer.max_epochs=2",
                                   "callbacks.model_checkpoint.enabled=false",
                                   NULL};

/* --- a host --------------------------------------------------------------------------------------------- */
static int out_fd, go_fd, my_views, my_redeals, my_slow_lines;
static char my_slow[300];

static void say(const struct told *what)
{
    if (write(out_fd, what, sizeof *what) != (ssize_t)sizeof *what)
        _exit(9);
}

static void on_step(void *ctx, const co_step_result *r)
{
    (void)ctx;
    say(&(struct told){.kind = TOLD_STEP, .step = r->step, .views = my_views, .t_ns = co_now_ns()});
}

static void on_view(void *ctx, const co_roster_view *view)
{
    (void)ctx, (void)view;
    my_views++;
}

static void on_notice(void *ctx, const char *text)
{
    struct told line = {.kind = TOLD_LINE};

    (void)ctx;
    snprintf(line.text, sizeof line.text, "%s", text);
    my_redeals += strstr(text, "speeds have changed") != NULL;
    if (strstr(text, " is slow: ")) {
        my_slow_lines++;
        snprintf(my_slow, sizeof my_slow, "%.299s", text);
    }
    say(&line);
}

static co_terms terms_of(const over_scene *s, int port, uint64_t birth)
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

    return terms;
}

static void wait_for_join(void)
{
    char byte;

    if (read(go_fd, &byte, 1) != 1)
        _exit(0); /* the others have ended */
}

static co_err perform(int number, over_end *end)
{
    const over_scene *s = over_play.scene;
    co_train_summary out = {0};
    co_train_hosts hosts = {.run = 7,
                            .listener = -1,
                            .link = CO_LINK_TCP,
                            .flip_at = s->flip_at[number],
                            .spoil_from = s->spoil_from[number],
                            .weigh_ms = s->weigh_ms};
    co_meet meet = over_play.meet;
    co_plan *plan;
    char facts[64], devices[40], address[32] = "127.0.0.1";
    stage g;

    if (s->lan) {
        ns_enter(s->lan, number);
        snprintf(address, sizeof address, "10.77.0.%d", number + 1);
    }

    stage_open(&g, s->words);
    snprintf(devices, sizeof devices, "trainer.devices=%d", s->ranks);
    stage_set(&g, devices);
    for (int i = 0; i < (int)CO_COUNT(s->own[number]) && s->own[number][i]; i++)
        stage_set(&g, s->own[number][i]);
    g.spec.hosts = s->most ? s->most : s->hosts;
    g.spec.meets = true;
    CO_TRY(co_plan_new(&plan, &g.spec));
    co_signals_hold();
    CO_TRY(co_net_listen(&hosts.listener, address, 0));
    co_addr mine = co_net_local(hosts.listener);
    say(&(struct told){.kind = TOLD_PORT, .step = co_addr_port(&mine)});
    if (number >= s->hosts)
        wait_for_join();
    if (getrandom(&hosts.birth, sizeof hosts.birth, 0) < 0)
        return CO_EFAIL;
    co_terms terms = terms_of(s, co_addr_port(&mine), hosts.birth);
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
        CO_TRY(co_tls_new(&hosts.tls, &over_play.token, "over"));
    CO_TRY(co_roster_open(&hosts.roster, &terms, &meet));
    co_err err = co_train_run_over(
        plan, &hosts, &(co_train_hooks){.step = on_step, .view = on_view, .notice = on_notice}, &out);
    if (err)
        snprintf(end->why, sizeof end->why, "%s", co_errmsg());
    end->status = (int)out.status;
    end->steps = out.steps;
    end->best_step = out.best_step;
    end->wall_s = out.wall_s;
    end->views = my_views;
    end->redeals = my_redeals;
    end->slow_lines = my_slow_lines;
    memcpy(end->slow, my_slow, sizeof end->slow);
    memcpy(end->sha, out.weights_sha256, sizeof end->sha);
    if (co_roster_keeps(hosts.roster))
        co_roster_finish(hosts.roster);
    co_roster_close(hosts.roster);
    return err;
}

void over_start(int number)
{
    int ends[2], go[2];

    CHECK(pipe(ends) == 0 && pipe(go) == 0, "pipe");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct told last = {.kind = TOLD_END};
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        out_fd = ends[1];
        go_fd = go[0];
        close(ends[0]);
        close(go[1]);
        last.end.err = perform(number, &last.end);
        if (last.end.err && !last.end.why[0])
            snprintf(last.end.why, sizeof last.end.why, "%s", co_errmsg());
        last.end.there = true;
        say(&last);
        _exit(0);
    }
    close(ends[1]);
    close(go[0]);
    setpgid(pid, pid);
    over_play.host[number] = (struct player){.pid = pid, .pipe = ends[0], .go = go[1]};
    if (number < over_play.scene->hosts)
        over_join(number);
}

void over_join(int number)
{
    struct player *host = &over_play.host[number];

    if (!host->go)
        return;
    CHECK(write(host->go, "", 1) == 1, "host %d is gone", number);
    close(host->go);
    host->go = 0;
}

/* The others have ended: newcomers that nobody called go home. */
static void dismiss_newcomers(void)
{
    for (int h = 0; h < OVER_HOSTS; h++)
        if (over_play.host[h].go) {
            close(over_play.host[h].go);
            over_play.host[h].go = 0;
        }
}

/* --- the loop ------------------------------------------------------------------------------------------- */
static void hear(int h, const struct told *what, over_end end[OVER_HOSTS])
{
    struct player *host = &over_play.host[h];

    if (getenv("OVER_TALK") && what->kind == TOLD_LINE)
        test_note("%.1f s, h%d, step %lld: %s", (double)(co_now_ns() - over_play.began_ns) * 1e-9, h,
                  (long long)host->step, what->text);
    if (what->kind == TOLD_END)
        end[h] = what->end;
    if (what->kind == TOLD_PORT)
        host->port = (int)what->step;
    if (what->kind != TOLD_STEP)
        return;
    host->step = what->step;
    host->step_ns = what->t_ns;
    host->views = what->views;
    if (h > 0)
        return;
    over_first_steps(what);
    for (int i = 0; i < OVER_EVENTS; i++)
        if (over_play.scene->event[i].what && !over_play.done[i] &&
            what->step >= over_play.scene->event[i].after && what->views >= over_play.scene->event[i].in_view)
            over_happen(i);
}

static void hear_host(int h, over_end end[OVER_HOSTS])
{
    struct player *host = &over_play.host[h];
    struct told what;
    ssize_t n = read(host->pipe, &what, sizeof what);

    if (n == (ssize_t)sizeof what) {
        hear(h, &what, end);
    } else if (n <= 0) {
        kill(host->pid, SIGCONT); /* it may have been stopped on its way out */
        waitpid(host->pid, NULL, 0);
        close(host->pipe);
        host->pid = 0;
    }
}

static bool listen_once(over_end end[OVER_HOSTS])
{
    struct pollfd fds[OVER_HOSTS];
    int left = 0, joined = 0;

    over_accident_turn(co_now_ns());
    for (int h = 0; h < OVER_HOSTS; h++) {
        fds[h] = (struct pollfd){.fd = over_play.host[h].pid ? over_play.host[h].pipe : -1, .events = POLLIN};
        left += over_play.host[h].pid != 0;
        joined += over_play.host[h].pid && !over_play.host[h].go;
    }
    if (!joined)
        dismiss_newcomers();
    if (!left || poll(fds, OVER_HOSTS, 10) < 0)
        return left > 0;
    for (int h = 0; h < OVER_HOSTS; h++)
        if (over_play.host[h].pid && fds[h].revents)
            hear_host(h, end);
    return true;
}

static void check_deadline(void)
{
    uint64_t began_ns = over_play.began_ns;
    uint64_t deadline_s = over_play.scene->deadline_s ? (uint64_t)over_play.scene->deadline_s : 45;

    if (co_now_ns() - began_ns < deadline_s * UINT64_C(1000000000))
        return;
    for (int h = 0; h < OVER_HOSTS; h++)
        if (over_play.host[h].pid) {
            const struct player *host = &over_play.host[h];
            test_note("host %d is after step %lld, which it reported %.1f s ago, in its view %d", h,
                      (long long)host->step,
                      (double)(co_now_ns() - (host->step ? host->step_ns : began_ns)) * 1e-9, host->views);
            if (getenv("OVER_HOLD"))
                test_note("pid %d", (int)over_play.host[h].pid);
        }
    if (getenv("OVER_HOLD"))
        sleep(600); /* for a debugger */
    CHECK(false, "%s: the hosts do not end", over_play.scene->name ? over_play.scene->name : "this run");
}

static void open_roster(const over_scene *scene)
{
    over_play.meet = (co_meet){.insecure = scene->plain};
    snprintf(over_play.meet.endpoint, sizeof over_play.meet.endpoint,
             scene->lan ? "10.77.0.1:0" : "127.0.0.1:0");
    CHECK_OK(co_token_make(&over_play.token));
    if (!scene->plain)
        co_token_text(over_play.meet.token, &over_play.token);
    if (scene->lan)
        ns_enter(scene->lan, 0);
    CHECK_OK(co_meet_listen(&over_play.meet));
    if (scene->lan)
        ns_leave(scene->lan);
}

void over_run(const over_scene *scene, over_end end[OVER_HOSTS])
{
    memset(end, 0, OVER_HOSTS * sizeof *end);
    over_play = (struct theatre){.scene = scene, .began_ns = co_now_ns()};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    open_roster(scene);
    for (int h = 0; h < scene->hosts; h++)
        over_start(h);
    close(over_play.meet.listener);
    for (int i = 0; i < OVER_EVENTS; i++)
        if (scene->event[i].what == OVER_JOIN)
            over_start(scene->event[i].host);
    while (listen_once(end))
        check_deadline();
    over_net_end();
    if (over_play.strangers)
        kill(over_play.strangers, SIGKILL);
    over_play.story.orphans = over_reap_orphans();
    if (scene->story)
        *scene->story = over_play.story;
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
