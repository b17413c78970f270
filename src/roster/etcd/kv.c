/* roster_etcd_kv.c -- what the roster asks of etcd, in its words: txn, lease/grant, lease/keepalive, lease/revoke, lease/timetolive.
 *
 * A call may be done twice (roster_etcd_call.c); none minds: a campaign whose first answer was lost finds itself on the key.
 */
#include "roster/etcd/etcd_int.h"

#include <string.h>

static co_err grant(etcd *e, int64_t *id, int ttl_s, const co_patience *p)
{
    json_t *answer = NULL;

    CO_TRY(etcd_call(e, &answer, "/v3/lease/grant", json_pack("{si}", "TTL", ttl_s), p));
    *id = kv_number(answer, "ID");
    json_decref(answer);
    return *id ? CO_OK : co_fail(CO_EFAIL, "step etcd: it grants no lease");
}

/* Whether etcd has heard it; if not, the lease ends by itself. */
static bool revoke(etcd *e, int64_t id, const co_patience *p)
{
    json_t *answer = NULL;
    co_err err = etcd_call(e, &answer, "/v3/lease/revoke", json_pack("{so}", "ID", kv_lease(id)), p);

    json_decref(answer);
    return !err;
}

void etcd_owe(etcd *e, int64_t id)
{
    e->owed = id;
}

co_err etcd_look(etcd *e, keeping *out, const char *job, const co_patience *p)
{
    json_t *answer = NULL;
    int64_t id;

    if (e->owed && revoke(e, e->owed, p))
        e->owed = 0;
    CO_TRY(etcd_call(e, &answer, "/v3/kv/txn", json_pack("{so}", "success", kv_read_all(e, job)), p));
    kv_understand(out, &id, answer);
    json_decref(answer);
    return CO_OK;
}

static bool same(const keeper *a, const keeper *b)
{
    return strcmp(a->endpoint, b->endpoint) == 0 && strcmp(a->also, b->also) == 0 &&
           strcmp(a->host, b->host) == 0 && strcmp(a->job, b->job) == 0;
}

/* One attempt, while `running` is as it must be: NULL, absent. */
static co_err take_place(etcd *e, bool *won, keeping *out, int64_t *theirs, const keeper *me, int64_t mine,
                         json_t *running, const co_patience *p)
{
    json_t *answer = NULL;
    json_t *value =
        json_pack("{so so so so}", "endpoint", co_json_string(me->endpoint), "also", co_json_string(me->also),
                  "host", co_json_string(me->host), "job", co_json_string(me->job));

    CO_TRY(etcd_call(e, &answer, "/v3/kv/txn",
                     json_pack("{s[ooo] s[o] so}", "compare", kv_absent(kv_keeper(e)),
                               kv_absent(kv_over(e, me->job)), running ? running : kv_absent(kv_running(e)),
                               "success", kv_put(kv_keeper(e), value, mine), "failure", kv_read_all(e, me->job)),
                     p));
    *won = json_is_true(json_object_get(answer, "succeeded"));
    if (!*won)
        kv_understand(out, theirs, answer);
    json_decref(answer);
    return CO_OK;
}

co_err etcd_campaign(etcd *e, keeping *out, int64_t *id, const keeper *me, int ttl_s, const co_patience *p)
{
    int64_t mine, theirs = 0;
    bool won = false;

    CO_TRY(grant(e, &mine, ttl_s, p));
    co_err err = take_place(e, &won, out, &theirs, me, mine, NULL, p);
    if (!err && !won && !out->there && !out->over && strcmp(out->running, me->job) == 0)
        err = take_place(e, &won, out, &theirs, me, mine, kv_runs(e, me->job, out->running_host), p);
    if (err) {
        e->owed = mine; /* it may have been done all the same */
        return err;
    }
    *id = won ? mine : out->there && !out->over && same(&out->who, me) ? theirs : 0;
    if (*id != mine)
        revoke(e, mine, p);
    if (*id == e->owed)
        e->owed = 0;
    return CO_OK;
}

co_err etcd_mark(etcd *e, bool *held, int64_t *id, const keeper *me, int64_t place, int ttl_s,
                 const co_patience *p)
{
    json_t *answer = NULL;
    int64_t longer;

    CO_TRY(grant(e, &longer, ttl_s, p));
    json_t *mine = json_pack("{so ss ss so}", "key", kv_keeper(e), "target", "LEASE", "result", "EQUAL",
                             "lease", kv_lease(place));
    CO_TRY(etcd_call(e, &answer, "/v3/kv/txn",
                     json_pack("{s[o] s[o]}", "compare", mine, "success",
                               kv_put(kv_running(e), kv_running_value(me->job, me->host), longer)),
                     p));
    *held = json_is_true(json_object_get(answer, "succeeded"));
    json_decref(answer);
    if (*held)
        *id = longer;
    else
        revoke(e, longer, p);
    return CO_OK;
}

co_err etcd_stay(etcd *e, bool *held, int64_t id, const co_patience *p)
{
    json_t *answer = NULL;

    CO_TRY(etcd_call(e, &answer, "/v3/lease/keepalive", json_pack("{so}", "ID", kv_lease(id)), p));
    *held = kv_number(json_object_get(answer, "result"), "TTL") > 0;
    json_decref(answer);
    return CO_OK;
}

int etcd_seconds_left(etcd *e, int64_t id, const co_patience *p)
{
    json_t *answer = NULL;

    if (etcd_call(e, &answer, "/v3/lease/timetolive", json_pack("{so}", "ID", kv_lease(id)), p))
        return 0;
    int64_t left = kv_number(answer, "TTL");
    json_decref(answer);
    return left > 0 ? (int)left : 0;
}

/* Remembers how the job ended, and that it does not run, if `who` was the last to say that it does. */
static json_t *end_of(const etcd *e, const keeper *who, int status, const char *text, int64_t id)
{
    json_t *end = json_pack("{si so}", "status", status, "text", co_json_string(text));
    json_t *forget =
        json_pack("{s{s[o] s[{s{so}}]}}", "request_txn", "compare", kv_runs(e, who->job, who->host),
                  "success", "request_delete_range", "key", kv_running(e));

    return json_pack("[oo]", kv_put(kv_over(e, who->job), end, id), forget);
}

/* The same if the place is still ours, or nobody's: a keeper that has lost it does not end the job of who keeps it now. */
co_err etcd_end(etcd *e, int64_t id, const keeper *me, int status, const char *text, const co_patience *p)
{
    json_t *answer = NULL;
    int64_t longer;

    CO_TRY(grant(e, &longer, ETCD_OVER_S, p));
    json_t *ours = json_pack("{so ss ss so}", "key", kv_keeper(e), "target", "LEASE", "result", "EQUAL",
                             "lease", kv_lease(id));
    json_t *nobodys = json_pack("{s{s[o] so}}", "request_txn", "compare", kv_absent(kv_keeper(e)), "success",
                                end_of(e, me, status, text, longer));
    CO_TRY(etcd_call(e, &answer, "/v3/kv/txn",
                     json_pack("{s[o] so s[o]}", "compare", ours, "success",
                               end_of(e, me, status, text, longer), "failure", nobodys),
                     p));
    json_decref(answer);
    revoke(e, id, p); /* takes the keeper's key with it */
    return CO_OK;
}

co_err etcd_despair(etcd *e, const keeper *lost, int status, const char *text, const co_patience *p)
{
    json_t *answer = NULL;
    int64_t longer;

    CO_TRY(grant(e, &longer, ETCD_OVER_S, p));
    CO_TRY(etcd_call(e, &answer, "/v3/kv/txn",
                     json_pack("{s[o] so}", "compare", kv_absent(kv_over(e, lost->job)), "success",
                               end_of(e, lost, status, text, longer)),
                     p));
    json_decref(answer);
    return CO_OK;
}
