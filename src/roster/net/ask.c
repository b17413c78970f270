/* ask.c -- `cohort join` knows where a job is but not what it runs, and asks the host that keeps the
 * roster.
 *
 *     ASK -> PLAN or REFUSED;   then LEAVE, if this host cannot do what the plan says
 *
 * This connection is not a seat of the job. A host that has the plan joins like any other
 * (co_roster_open), with terms that the keeper compares. The plan that arrives is checked here: sizes,
 * types, and that every word is text. The other side's answer is in hello.c.
 */
#include "roster/code.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "roster/net/frame_int.h"
#include "roster/net/role_int.h"
#include "roster/times_int.h"

enum { CWD_MOST = 4096, PLAN_MOST = 1 << 19 };

struct co_ask {
    co_tls *tls;
    co_conn *conn;
};

char *co_job_plan_text(const char *version, const char *const *words, int n)
{
    char cwd[CWD_MOST] = "", host[CO_HOST_NAME];
    json_t *list = json_array();

    if (!getcwd(cwd, sizeof cwd))
        cwd[0] = '\0';
    host_own_name(host, sizeof host, &(co_meet){0});
    for (int i = 0; i < n; i++)
        if (json_array_append_new(list, json_string(words[i]))) {
            co_fail(CO_EINPUT, "the command line is not UTF-8 text, so it cannot be sent to other hosts");
            json_decref(list);
            return NULL;
        }
    json_t *plan = json_pack("{so ss so so}", "host", co_json_string(host), "version", version, "cwd",
                             co_json_string(cwd), "words", list);
    char *text = plan ? co_json_text(plan) : NULL;
    json_decref(plan);
    if (text && strlen(text) > PLAN_MOST) {
        co_fail(CO_EINPUT, "the command line is too long to be sent to other hosts");
        co_free(text);
        return NULL;
    }
    return text;
}

static co_err take_plan(co_job_plan *out, const json_t *body)
{
    const json_t *words = json_object_get(body, "words");
    size_t n = json_array_size(words);
    co_job_plan plan = {{0}};

    if (n == 0 || n > CO_PLAN_WORDS)
        return co_fail(CO_EFORMAT, "the host sent a command of %zu words, not 1 to %d", n, CO_PLAN_WORDS);
    field_text(plan.host, sizeof plan.host, body, "host");
    field_text(plan.version, sizeof plan.version, body, "version");
    const char *cwd = co_json_str(body, "cwd");
    snprintf(plan.cwd, sizeof plan.cwd, "%s", cwd && strlen(cwd) < sizeof plan.cwd ? cwd : "");
    plan.words = co_array(n + 1, sizeof *plan.words);
    if (!plan.words)
        return CO_ENOMEM;
    for (; plan.n < (int)n; plan.n++) {
        const json_t *one = json_array_get(words, (size_t)plan.n);
        if (!json_is_string(one))
            break;
        plan.words[plan.n] = co_strdup(json_string_value(one));
        if (!plan.words[plan.n])
            break;
    }
    if (plan.n < (int)n) {
        co_job_plan_free(&plan);
        return co_fail(CO_EFORMAT, "the host sent a command with words that are not text");
    }
    *out = plan;
    return CO_OK;
}

void co_job_plan_free(co_job_plan *plan)
{
    for (int i = 0; i < plan->n; i++)
        co_free(plan->words[i]);
    co_free(plan->words);
    *plan = (co_job_plan){{0}};
}

static co_err ask_plan(co_job_plan *plan, co_conn *conn, const co_meet *where, const co_patience *patience)
{
    char host[CO_HOST_NAME], text[1024];
    json_t *body = NULL;
    co_frame f;

    host_own_name(host, sizeof host, where);
    CO_TRY(frame_send(conn, FRAME_ASK, 0, 0, json_pack("{so}", "host", co_json_string(host))));
    CO_TRY(co_conn_wait(conn, &f, patience));
    uint8_t type = f.type;
    CO_TRY(frame_read(&body, &f));
    field_text(text, sizeof text, body, "text");
    co_err err = type == FRAME_PLAN ? take_plan(plan, body)
                 : type == FRAME_REFUSED
                     ? co_fail(CO_EINPUT, "%s", text)
                     : co_fail(CO_EFORMAT, "the host answers with a frame of type %d", type);
    json_decref(body);
    return err;
}

co_err co_ask_open(co_ask **out, co_job_plan *plan, const co_meet *where, const co_patience *patience,
                   void (*talk)(void *, const char *), void *ctx)
{
    co_terms terms = {.host_rank = -1};
    co_ask *ask = co_zalloc(sizeof *ask);
    reached to = {0};
    role to_join;
    co_err err = ask ? role_decide(&to_join, &terms, where) : CO_ENOMEM;

    if (!err && to_join.tls)
        err = co_tls_new(&ask->tls, &to_join.token, "join");
    if (!err) {
        to_join.from_code = true;
        err = reach_roster(&to, &to_join, ask->tls, patience, talk, ctx);
    }
    if (!err) {
        ask->conn = to.conn;
        co_patience soon = co_patience_s(ANSWER_MS / 1000.0);
        err = ask_plan(plan, ask->conn, where, &soon);
        if (err)
            co_fail_in(err, "cannot join the job at %s:%d: step plan", to.via, to_join.at.port);
    }
    if (err) {
        co_ask_close(ask, NULL);
        return err;
    }
    *out = ask;
    return CO_OK;
}

void co_ask_close(co_ask *ask, const char *why)
{
    co_patience soon = co_patience_s(FAREWELL_MS / 1000.0);

    if (!ask)
        return;
    if (ask->conn && why &&
        !frame_send(ask->conn, FRAME_LEAVE, 0, 0,
                    json_pack("{si so}", "status", 2, "text", co_json_string(why))))
        while (co_conn_unsent(ask->conn) && co_now_ns() < soon.until_ns && !co_conn_work(ask->conn))
            poll(NULL, 0, FAREWELL_TURN_MS);
    co_conn_free(ask->conn);
    co_tls_free(ask->tls);
    co_free(ask);
}
