/* over.c -- a training over several hosts. The host that keeps the roster writes the record and has the screen; the
 * others are guests. A guest opens a run folder only if a view makes it the writer: when the host that wrote is lost,
 * or with etcd, where no host knows before the first view which of them keeps the roster.
 *
 *     over_open     after the plan: this host's facts, its port, the roster
 *     over_hooks    record.c's hooks; for a guest they do nothing until it has a folder
 */
#include "cli/over_int.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "link/links.h"
#include "net/net.h"

enum {
    LAST_CALL_S = 2,      /* how long an elastic run with enough hosts waits for more before it begins */
    LAST_LINES_MS = 3000, /* how long the last lines of guests have */
    LISTEN_MS = 5,        /* between two looks for lines */
    RETURN_MS = 15000,    /* how long a guest that was left looks for the others */
    REFUSED_MS = 2000,    /* a port that refuses for this long has nobody behind it */
    RETRY_MS = 200,
    RETURNS_MOST = 100 /* how often a guest comes back */
};

/* --- what must be the same on all hosts ----------------------------------------------------------------- */
static void add_fact(void *facts, const char *key, const char *value)
{
    char name[200];

    snprintf(name, sizeof name, "config.%s", key);
    json_object_set_new(facts, name, co_json_string(value));
}

/* In the order in which they are compared: what explains most comes first. */
static char *facts_of(const training *s)
{
    const co_plan_facts *plan = co_plan_facts_of(s->plan);
    json_t *facts = json_object();
    char number[32];

    json_object_set_new(facts, "model", json_string(s->app.spec.model->name));
    json_object_set_new(facts, "data set", json_string(s->app.spec.data->name));
    json_object_set_new(facts, "optimiser", json_string(s->app.spec.optim->name));
    json_object_set_new(facts, "kernels", json_string(plan->kernels));
    json_object_set_new(facts, "link", json_string(s->over->given.link == CO_LINK_MPI ? "mpi" : "tcp"));
    if (co_conf_facts(s->app.conf, add_fact, facts) != CO_OK) {
        json_decref(facts);
        return NULL;
    }
    json_object_set_new(facts, "data", co_json_string(plan->data->fingerprint));
    snprintf(number, sizeof number, "%lld", (long long)plan->batch);
    json_object_set_new(facts, "batch", json_string(number));
    snprintf(number, sizeof number, "%d", plan->slices);
    json_object_set_new(facts, "slices", json_string(number));
    char *text = co_json_text(facts);
    json_decref(facts);
    return text;
}

/* --- opening and closing -------------------------------------------------------------------------------- */
static co_err open_port(over *o, co_terms *terms)
{
    CO_TRY(co_net_listen(&o->given.listener, "", 0));
    co_addr mine = co_net_local(o->given.listener);
    terms->bulk_port = co_addr_port(&mine);
    if (getrandom(&o->given.birth, sizeof o->given.birth, 0) != (ssize_t)sizeof o->given.birth)
        return co_fail(CO_EIO, "getrandom: %m");
    terms->birth = o->given.birth;
    return CO_OK;
}

co_err over_open(training *s)
{
    co_hosts_line *mine = s->app.hosts;

    if (!mine || mine->alone)
        return CO_OK;
    over *o = s->over = co_zalloc(sizeof *o);
    if (!o)
        return CO_ENOMEM;
    o->given.listener = -1;
    o->figures = json_array();
    char say[600];
    co_link_kind kind;
    CO_TRY(co_link_choose(&kind, (co_link_kind)s->app.cfg->link, say, sizeof say));
    o->given.link = (int)kind;
    if (kind == CO_LINK_MPI)
        tell(s, "link      %s", strncmp(say, "link: ", 6) == 0 ? say + 6 : say);
    CO_TRY(co_hosts_line_meet(mine));
    if (!(o->facts = facts_of(s)))
        return CO_ENOMEM;
    CO_TRY(open_port(o, &mine->terms));
    mine->terms.facts = o->facts;
    mine->terms.nproc = co_plan_facts_of(s->plan)->ranks;
    if (mine->meet.last_call_s <= 0)
        mine->meet.last_call_s = LAST_CALL_S; /* whoever comes later joins the run */
    o->given.elastic_min = mine->terms.min_hosts < mine->terms.max_hosts ? mine->terms.min_hosts : 0;
    mine->meet.logs = true; /* what guests say comes to the record */
    CO_TRY(co_roster_open(&o->given.roster, &mine->terms, &mine->meet));
    o->given.tls = co_roster_tls(o->given.roster);
    o->given.run = co_fnv1a64(mine->terms.run_id, strlen(mine->terms.run_id));
    o->guest = !co_roster_keeps(o->given.roster);
    return CO_OK;
}

void over_decline(const training *s)
{
    co_hosts_line *mine = s->app.hosts;
    char why[1024];

    if (!mine || mine->alone || co_hosts_line_first(mine) || s->over || !mine->meet.endpoint[0])
        return; /* nobody waits for the first host */
    snprintf(why, sizeof why, "%s", co_errmsg());
    if (co_hosts_line_meet(mine) == CO_OK)
        co_roster_decline(&mine->terms, &mine->meet, why);
    co_fail(CO_EINPUT, "%s", why);
}

/* A guest's last lines are on their way, or there was no time for it. */
static void see_off(over *o)
{
    uint64_t until = co_now_ns() + LAST_LINES_MS * UINT64_C(1000000);

    while (!co_roster_settled(o->given.roster) && co_now_ns() < until)
        poll(NULL, 0, LISTEN_MS);
    co_roster_finish(o->given.roster);
}

void over_close(training *s)
{
    over *o = s->over;

    if (!o)
        return;
    if (o->given.roster)
        see_off(o);
    json_decref(o->figures);
    co_roster_close(o->given.roster);
    if (o->given.listener >= 0)
        close(o->given.listener);
    co_free(o->facts);
    co_free(o);
    s->over = NULL;
}

bool over_guest(const training *s)
{
    return s->over && s->over->guest;
}

/* --- what guests say, for the one record ---------------------------------------------------------------- */
/* A line of text, or a JSON object with the figures of its host. */
static void log_line(training *s, const char *text)
{
    char name[256] = "localhost";
    co_str said = {0};

    gethostname(name, sizeof name - 1);
    if (*text == '{')
        co_str_addf(&said, "%s\n", text);
    else
        co_str_addf(&said, "[%s] %s\n", name, text);
    if (!co_str_err(&said))
        co_roster_log(s->over->given.roster, co_str_text(&said), strlen(co_str_text(&said)));
    co_str_fini(&said);
}

static void take_line(training *s, const char *said, size_t n)
{
    json_t *figures = NULL;

    if (*said == '{' && co_json_parse(&figures, said, n, "a guest's figures") == CO_OK)
        json_array_append_new(s->over->figures, figures);
    else if (*said != '{')
        tell(s, "%.*s", (int)n, said);
    co_errclear();
}

void over_listen(training *s, bool last)
{
    uint64_t until = co_now_ns() + (last ? LAST_LINES_MS * UINT64_C(1000000) : 0);
    bool settled;

    if (!s->over || !s->folder)
        return;
    do {
        co_str lines = {0};
        settled = !last || co_roster_settled(s->over->given.roster);
        co_roster_logged(s->over->given.roster, &lines);
        for (const char *at = co_str_text(&lines); *at;) {
            size_t n = strcspn(at, "\n");
            take_line(s, at, n);
            at += n + (at[n] == '\n');
        }
        co_str_fini(&lines);
        if (!settled)
            poll(NULL, 0, LISTEN_MS);
    } while (!settled && co_now_ns() < until);
}

void over_add_figures(const training *s, json_t *hosts)
{
    if (s->over)
        json_array_extend(hosts, s->over->figures);
}

static co_err listening_turn(void *ctx)
{
    over_listen(ctx, false);
    return ((training *)ctx)->over->record.turn(ctx);
}

/* --- hooks ---------------------------------------------------------------------------------------------- */
static co_err guest_adopt(void *ctx)
{
    training *s = ctx;

    CO_TRY(training_folder(s));
    s->over->hooks.publish_fd = co_folder_settle_fd(s->folder);
    record_track(s);
    if (s->over->writer[0])
        tell(s, "run       this host writes from now on: %s", co_folder_path(s->folder));
    else
        record_first_screen(s);
    return CO_OK;
}

/* A guest learns from the view whether it writes. If its folder does not open, the first checkpoint tries again. */
static void guest_view(training *s, const co_deal *deal, const char *writer)
{
    if (deal->me == deal->writer && !s->folder && guest_adopt(s) != CO_OK)
        shout(s, "warning   this host is to write the record, and cannot: %s", co_errmsg());
    else if (deal->me != deal->writer && !s->over->writer[0])
        tell(s, "guest     the record and the progress of this run are on %s", writer);
}

/* For the record and the screen: who has how many slices. */
static void on_view(void *ctx, const co_roster_view *view)
{
    training *s = ctx;
    const co_deal *deal = &view->view.deal;
    json_t *hosts = json_array();

    if (s->over->guest)
        guest_view(s, deal, view->member[deal->writer].name);
    for (int h = 0; h < deal->hosts; h++)
        json_array_append_new(hosts, json_pack("{so si si sb}", "host", co_json_string(view->member[h].name),
                                               "ranks", view->member[h].ranks, "slices",
                                               deal->from[h + 1] - deal->from[h], "whole",
                                               (int)(deal->whole >> h & 1)));
    if (s->folder)
        co_event_json(s->folder, json_pack("{ss sI sI so}", "name", "view", "step", (json_int_t)s->last.step,
                                           "view", (json_int_t)deal->view, "hosts", hosts));
    else
        json_decref(hosts);
    snprintf(s->over->writer, sizeof s->over->writer, "%s", view->member[deal->writer].name);
}

static void guest_notice(void *ctx, const char *text)
{
    tell(ctx, "%s", text);
    if (!((training *)ctx)->folder)
        log_line(ctx, text);
}

/* All hosts hear it. */
static void guest_talk(void *ctx, const char *text)
{
    tell(ctx, "%s", text);
}

/* Whether somebody listens where the roster was. A port that refuses for a while has nobody behind it any more; a wire
 * that says nothing may come back. */
static bool guest_comes_back(void *ctx)
{
    training *s = ctx;
    co_patience patience = co_patience_s(RETURN_MS / 1000.0);
    co_endpoint at;
    co_addr to[4];
    int n = 0, fd;
    uint64_t began = co_now_ns();

    if (s->app.hosts->meet.etcd.members || co_endpoint_parse(&at, s->app.hosts->meet.endpoint) != CO_OK)
        return false;
    tell(s, "looking for the others for up to %d s, to join them again", RETURN_MS / 1000);
    while (co_now_ns() < patience.until_ns) {
        co_patience once = co_patience_s(1);
        co_err err = co_net_resolve(to, 4, &n, at.host, at.port < 0 ? CO_MEET_PORT : at.port, &once);
        if (!err)
            err = co_net_connect(&fd, &to[0], &once);
        if (!err) {
            close(fd);
            return s->over->comes_back = true;
        }
        if (err == CO_EPEER && co_now_ns() - began > REFUSED_MS * UINT64_C(1000000))
            break;
        poll(NULL, 0, RETRY_MS);
    }
    co_errclear();
    return false;
}

/* Each does what record.c's does once there is a folder. */
static void guest_step(void *ctx, const co_step_result *r)
{
    training *s = ctx;

    if (s->folder)
        s->over->record.step(ctx, r);
    s->last = *r;
}
static void guest_eval(void *ctx, const co_eval_result *r)
{
    if (((training *)ctx)->folder)
        ((training *)ctx)->over->record.eval(ctx, r);
}
static void guest_saved(void *ctx, int64_t step, const char *path, const char *failure)
{
    training *s = ctx;

    if (s->folder)
        s->over->record.saved(ctx, step, path, failure);
    else if (failure)
        shout(s, "checkpoint of step %lld NOT saved: %s", (long long)step, failure);
}
static void guest_recovery(void *ctx, const co_recovery *r)
{
    training *s = ctx;

    if (s->folder)
        s->over->record.recovery(ctx, r);
    char text[700];
    snprintf(text, sizeof text, "rank %d (pid %d) %s at step %lld: replaced, nothing lost", r->slot, r->pid,
             r->how, (long long)r->step);
    if (s->folder)
        return;
    tell(s, "%s", text);
    log_line(s, text);
}
static co_err guest_record(void *ctx)
{
    return ((training *)ctx)->folder ? ((training *)ctx)->over->record.record(ctx) : CO_OK;
}
static co_err guest_publish(void *ctx, int64_t view)
{
    return ((training *)ctx)->folder ? ((training *)ctx)->over->record.publish(ctx, view) : CO_OK;
}
static co_err guest_turn(void *ctx)
{
    return ((training *)ctx)->folder ? listening_turn(ctx) : CO_OK;
}

const co_train_hooks *over_hooks(training *s)
{
    over *o = s->over;

    o->record = record_hooks(s);
    o->hooks = o->record;
    if (o->guest)
        o->hooks = (co_train_hooks){.ctx = s,
                                    .step = guest_step,
                                    .eval = guest_eval,
                                    .saved = guest_saved,
                                    .recovery = guest_recovery,
                                    .notice = guest_notice,
                                    .talk = guest_talk,
                                    .record = guest_record,
                                    .publish = guest_publish,
                                    .publish_fd = -1,
                                    .remember = o->record.remember,
                                    .turn = guest_turn,
                                    .adopt = guest_adopt,
                                    .comes_back = guest_comes_back};
    else
        o->hooks.turn = listening_turn;
    o->hooks.view = on_view;
    return &o->hooks;
}

/* --- the end of a guest --------------------------------------------------------------------------------- */
int over_report(training *s, const line *l, co_err err)
{
    const co_train_summary *out = &s->summary;
    static const char *const names[] = {"done", "stopped", "failed"};
    json_t *figures = figures_of_host(s);
    char *text = figures ? co_json_text(figures) : NULL;

    if (text)
        log_line(s, text);
    co_free(text);
    json_decref(figures);
    if (err)
        shout(s, "failed    %s", out->blame[0] ? out->blame : co_errmsg());
    else
        tell(s, "%-9s step %lld, weights %.16s; the record is on %s", names[out->status], (long long)out->steps,
             out->weights_sha256, s->over->writer[0] ? s->over->writer : "the first host");
    if (l->json)
        co_json_print(json_pack("{ss sI ss}", "status", names[out->status], "steps", (json_int_t)out->steps,
                                "weights_sha256", out->weights_sha256));
    return err == CO_EINPUT                   ? CO_EXIT_USAGE
           : err                              ? CO_EXIT_FAILED
           : out->status == CO_STATUS_STOPPED ? CO_EXIT_STOPPED
                                              : CO_EXIT_DONE;
}

/* Where the hosts meet, for a line that does not say it itself: `cohort join` and --hosts were told. */
static int add_meeting(char **argv, co_pool *pool, const co_hosts_line *hosts)
{
    argv[0] = co_pool_printf(pool, "--nnodes=%d:%d", hosts->terms.min_hosts, hosts->terms.max_hosts);
    argv[1] = co_pool_printf(pool, "--rdzv-endpoint=%s", hosts->meet.endpoint);
    argv[2] = co_pool_printf(pool, "--rdzv-id=%s", hosts->terms.run_id);
    return argv[0] && argv[1] && argv[2] ? 3 : 0;
}

/* The same process with the same line: whoever started it sees no difference. */
void over_return(training *s, const line *l)
{
    const char *before = getenv("COHORT_RETURNS");
    int n = before ? atoi(before) : 0, words = 0;
    co_pool pool = {0};
    char count[16];

    if (!l->typed || n >= RETURNS_MOST)
        return;
    while (l->typed[words])
        words++;
    char **argv = co_array((size_t)words + 5, sizeof *argv);
    if (!argv)
        return;
    argv[0] = (char *)(uintptr_t)app_program();
    memcpy(argv + 1, l->typed, (size_t)words * sizeof *argv);
    if (l->hosts_given)
        add_meeting(argv + 1 + words, &pool, s->app.hosts);
    snprintf(count, sizeof count, "%d", n + 1);
    setenv("COHORT_RETURNS", count, 1);
    if (s->app.hosts->meet.token[0])
        setenv("COHORT_TOKEN", s->app.hosts->meet.token, 1);
    tell(s, "this host joins the others again, as a new one");
    over_close(s);
    execv("/proc/self/exe", argv);
    co_notice("this command could not be started again: %m");
    exit(CO_EXIT_STOPPED);
}
