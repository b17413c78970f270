/* ask.c -- a host that knows where a job is, but not what it runs, asks.
 *
 *     C ask -> S plan | refused;   C leave, if it cannot do what the plan says
 *
 * The connection is not a seat of the job: who has the plan joins as everybody does (co_roster_open), with terms that the host
 * compares. What arrives is checked here: sizes, types, no words but those of text.
 */
#include "roster/code.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "roster/net/server_int.h"

enum { CWD_MOST = 4096, PLAN_MOST = 1 << 19 };

struct co_ask {
    co_tls *tls;
    co_conn *conn;
};

char *co_job_plan_text(const char *version, const char *const *words, int n)
{
    char cwd[CWD_MOST] = "", host[CO_HOST_NAME] = "host";
    json_t *list = json_array();

    if (!getcwd(cwd, sizeof cwd))
        cwd[0] = '\0';
    gethostname(host, sizeof host - 1);
    for (int i = 0; i < n; i++)
        if (json_array_append_new(list, json_string(words[i]))) {
            co_fail(CO_EINPUT,
                    "the words of the line are not UTF-8 text, so they cannot be told to other hosts");
            json_decref(list);
            return NULL;
        }
    json_t *plan = json_pack("{so ss so so}", "host", co_json_string(host), "version", version, "cwd",
                             co_json_string(cwd), "words", list);
    char *text = plan ? co_json_text(plan) : NULL;
    json_decref(plan);
    if (text && strlen(text) > PLAN_MOST) {
        co_fail(CO_EINPUT, "the line is too long to be told to other hosts");
        co_free(text);
        return NULL;
    }
    return text;
}

static co_err take_plan(co_job_plan *out, const json_t *body)
{
    const json_t *words = json_object_get(body, "words");
    size_t n = json_array_size(words);
    co_job_plan p = {{0}};

    if (n == 0 || n > CO_PLAN_WORDS)
        return co_fail(CO_EFORMAT, "the host tells %zu words to run, not 1 to %d", n, CO_PLAN_WORDS);
    word_text(p.host, sizeof p.host, body, "host");
    word_text(p.version, sizeof p.version, body, "version");
    const char *cwd = co_json_str(body, "cwd");
    snprintf(p.cwd, sizeof p.cwd, "%s", cwd && strlen(cwd) < sizeof p.cwd ? cwd : "");
    p.words = co_array(n + 1, sizeof *p.words);
    if (!p.words)
        return CO_ENOMEM;
    for (; p.n < (int)n; p.n++) {
        const json_t *one = json_array_get(words, (size_t)p.n);
        if (!json_is_string(one))
            break;
        p.words[p.n] = co_strdup(json_string_value(one));
        if (!p.words[p.n])
            break;
    }
    if (p.n < (int)n) {
        co_job_plan_free(&p);
        return co_fail(CO_EFORMAT, "the host tells words to run that are no text");
    }
    *out = p;
    return CO_OK;
}

void co_job_plan_free(co_job_plan *plan)
{
    for (int i = 0; i < plan->n; i++)
        co_free(plan->words[i]);
    co_free(plan->words);
    *plan = (co_job_plan){{0}};
}

static co_err question(co_job_plan *plan, co_conn *conn, const co_meet *where, const co_patience *p)
{
    char host[CO_HOST_NAME] = "host", text[1024];
    json_t *body = NULL;
    co_frame f;

    if (*where->host)
        snprintf(host, sizeof host, "%s", where->host);
    else
        gethostname(host, sizeof host - 1);
    CO_TRY(word_send(conn, WORD_ASK, 0, 0, json_pack("{so}", "host", co_json_string(host))));
    CO_TRY(co_conn_wait(conn, &f, p));
    uint8_t type = f.type;
    CO_TRY(word_read(&body, &f));
    word_text(text, sizeof text, body, "text");
    co_err err = type == WORD_PLAN      ? take_plan(plan, body)
                 : type == WORD_REFUSED ? co_fail(CO_EINPUT, "%s", text)
                                        : co_fail(CO_EFORMAT, "the host answers with a word of type %d", type);
    json_decref(body);
    return err;
}

co_err co_ask_open(co_ask **out, co_job_plan *plan, const co_meet *where, const co_patience *p,
                   void (*told)(void *, const char *), void *ctx)
{
    co_terms terms = {.host_rank = -1};
    co_ask *a = co_zalloc(sizeof *a);
    reached to = {0};
    meeting m;
    co_err err = a ? meet_decide(&m, &terms, where) : CO_ENOMEM;

    if (!err && m.tls)
        err = co_tls_new(&a->tls, &m.token, "join");
    if (!err) {
        m.shown = true;
        err = meet_reach(&to, &m, a->tls, p, told, ctx);
    }
    if (!err) {
        a->conn = to.conn;
        co_patience soon = co_patience_s(ANSWER_MS / 1000.0);
        err = question(plan, a->conn, where, &soon);
        if (err)
            co_fail_in(err, "cannot join the job at %s:%d: step plan", to.via, m.at.port);
    }
    if (err) {
        co_ask_close(a, NULL);
        return err;
    }
    *out = a;
    return CO_OK;
}

void co_ask_close(co_ask *a, const char *why)
{
    co_patience soon = co_patience_s(1);

    if (!a)
        return;
    if (a->conn && why &&
        !word_send(a->conn, WORD_LEAVE, 0, 0, json_pack("{si so}", "status", 2, "why", co_json_string(why))))
        while (co_conn_unsent(a->conn) && co_now_ns() < soon.until_ns && !co_conn_work(a->conn))
            poll(NULL, 0, 5);
    co_conn_free(a->conn);
    co_tls_free(a->tls);
    co_free(a);
}

/* --- the host that is asked ------------------------------------------------------------------------------------------- */
void server_asked(server *s, seat *h, const json_t *body)
{
    const char *plan = s->where.plan;
    char to_us[600], name[300];

    word_text(h->who.name, sizeof h->who.name, body, "host");
    if (plan) { /* a connection that breaks here shows in its next turn */
        co_conn_send(h->conn,
                     &(co_frame){.type = WORD_PLAN, .run = s->run, .body = plan, .len = (uint32_t)strlen(plan)});
        return;
    }
    seat_name(name, sizeof name, h);
    snprintf(to_us, sizeof to_us,
             "host %s was refused: it runs `cohort join`, and this job was not started by `cohort host`", name);
    seat_refuse(s, h,
                "the job was not started by `cohort host`: run the same `cohort launch` line here as there",
                to_us);
}

void server_not_joined(server *s, seat *h, const json_t *body)
{
    char why[512], name[300];

    word_text(why, sizeof why, body, "why");
    seat_name(name, sizeof name, h);
    server_talk(s, false, "host %s does not join: %s", name, why);
    h->closing = true;
}
