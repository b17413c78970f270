/* kv.c -- the roster's requests to etcd: txn, lease/grant, lease/keepalive, lease/revoke, lease/timetolive.
 *
 * A call may be carried out twice (call.c), and each is safe to repeat: a campaign whose first answer was
 * lost finds its own name on the key.
 */
#include "roster/etcd/etcd_int.h"

#include <limits.h>
#include <string.h>

static co_err grant(etcd *db, int64_t *id, int ttl_s, const co_patience *patience)
{
    json_t *answer = NULL;

    CO_TRY(etcd_call(db, &answer, "/v3/lease/grant", json_pack("{si}", "TTL", ttl_s), patience));
    *id = kv_number(answer, "ID");
    json_decref(answer);
    return *id ? CO_OK : co_fail(CO_EFAIL, "step etcd: it grants no lease");
}

/* False: etcd did not answer, and the lease runs out by itself. */
static bool revoke(etcd *db, int64_t id, const co_patience *patience)
{
    json_t *answer = NULL;
    co_err err = etcd_call(db, &answer, "/v3/lease/revoke", json_pack("{so}", "ID", kv_lease(id)), patience);

    json_decref(answer);
    return !err;
}

void etcd_owe(etcd *db, int64_t id)
{
    db->owed = id;
}

co_err etcd_look(etcd *db, keeping *out, const char *job, const co_patience *patience)
{
    json_t *answer = NULL;
    int64_t id;

    if (db->owed && revoke(db, db->owed, patience))
        db->owed = 0;
    CO_TRY(etcd_call(db, &answer, "/v3/kv/txn", json_pack("{so}", "success", kv_read_all(db, job)), patience));
    kv_understand(out, &id, answer);
    json_decref(answer);
    return CO_OK;
}

static bool same(const keeper *a, const keeper *b)
{
    return strcmp(a->endpoint, b->endpoint) == 0 && strcmp(a->also, b->also) == 0 &&
           strcmp(a->host, b->host) == 0 && strcmp(a->job, b->job) == 0;
}

/* One attempt, on the condition `running`; NULL: on the condition that no job runs. */
static co_err take_place(etcd *db, bool *won, keeping *out, int64_t *theirs, const keeper *me, int64_t mine,
                         json_t *running, const co_patience *patience)
{
    json_t *answer = NULL;
    json_t *value =
        json_pack("{so so so so}", "endpoint", co_json_string(me->endpoint), "also", co_json_string(me->also),
                  "host", co_json_string(me->host), "job", co_json_string(me->job));

    CO_TRY(etcd_call(db, &answer, "/v3/kv/txn",
                     json_pack("{s[ooo] s[o] so}", "compare", kv_absent(kv_keeper(db)),
                               kv_absent(kv_over(db, me->job)), running ? running : kv_absent(kv_running(db)),
                               "success", kv_put(kv_keeper(db), value, mine), "failure",
                               kv_read_all(db, me->job)),
                     patience));
    *won = json_is_true(json_object_get(answer, "succeeded"));
    if (!*won)
        kv_understand(out, theirs, answer);
    json_decref(answer);
    return CO_OK;
}

co_err etcd_campaign(etcd *db, keeping *out, int64_t *id, const keeper *me, int ttl_s,
                     const co_patience *patience)
{
    int64_t mine, theirs = 0;
    bool won = false;

    CO_TRY(grant(db, &mine, ttl_s, patience));
    co_err err = take_place(db, &won, out, &theirs, me, mine, NULL, patience);
    if (!err && !won && !out->there && !out->over && strcmp(out->running, me->job) == 0)
        err = take_place(db, &won, out, &theirs, me, mine, kv_runs(db, me->job, out->running_host), patience);
    if (err) {
        db->owed = mine; /* the request may have been carried out all the same */
        return err;
    }
    *id = won ? mine : out->there && !out->over && same(&out->who, me) ? theirs : 0;
    if (*id != mine)
        revoke(db, mine, patience);
    if (*id == db->owed)
        db->owed = 0;
    return CO_OK;
}

co_err etcd_mark(etcd *db, bool *held, int64_t *id, const keeper *me, int64_t place, int ttl_s,
                 const co_patience *patience)
{
    json_t *answer = NULL;
    int64_t longer;

    CO_TRY(grant(db, &longer, ttl_s, patience));
    json_t *mine = json_pack("{so ss ss so}", "key", kv_keeper(db), "target", "LEASE", "result", "EQUAL",
                             "lease", kv_lease(place));
    CO_TRY(etcd_call(db, &answer, "/v3/kv/txn",
                     json_pack("{s[o] s[o]}", "compare", mine, "success",
                               kv_put(kv_running(db), kv_running_value(me->job, me->host), longer)),
                     patience));
    *held = json_is_true(json_object_get(answer, "succeeded"));
    json_decref(answer);
    if (*held)
        *id = longer;
    else
        revoke(db, longer, patience);
    return CO_OK;
}

co_err etcd_stay(etcd *db, bool *held, int64_t id, const co_patience *patience)
{
    json_t *answer = NULL;

    CO_TRY(etcd_call(db, &answer, "/v3/lease/keepalive", json_pack("{so}", "ID", kv_lease(id)), patience));
    *held = kv_number(json_object_get(answer, "result"), "TTL") > 0;
    json_decref(answer);
    return CO_OK;
}

int etcd_seconds_left(etcd *db, int64_t id, const co_patience *patience)
{
    json_t *answer = NULL;

    if (etcd_call(db, &answer, "/v3/lease/timetolive", json_pack("{so}", "ID", kv_lease(id)), patience))
        return 0;
    int64_t left = kv_number(answer, "TTL");
    json_decref(answer);
    return left <= 0 ? 0 : left < INT_MAX ? (int)left : INT_MAX;
}

/* Notes how the job ended and, if `who` was the last to note that it runs, that it no longer does. */
static json_t *end_of(const etcd *db, const keeper *who, const co_leave *how, int64_t id)
{
    co_leave brief = *how;

    json_t *forget =
        json_pack("{s{s[o] s[{s{so}}]}}", "request_txn", "compare", kv_runs(db, who->job, who->host),
                  "success", "request_delete_range", "key", kv_running(db));

    brief.text[ETCD_TEXT] = '\0';
    return json_pack("[oo]", kv_put(kv_over(db, who->job), leave_pack(&brief), id), forget);
}

/* Only if the place is still ours, or nobody's: a keeper that has lost it must not end the job of the one
 * that has it now. */
co_err etcd_end(etcd *db, int64_t id, const keeper *me, const co_leave *how, const co_patience *patience)
{
    json_t *answer = NULL;
    int64_t longer;

    CO_TRY(grant(db, &longer, ETCD_OVER_S, patience));
    json_t *ours = json_pack("{so ss ss so}", "key", kv_keeper(db), "target", "LEASE", "result", "EQUAL",
                             "lease", kv_lease(id));
    json_t *nobodys = json_pack("{s{s[o] so}}", "request_txn", "compare", kv_absent(kv_keeper(db)), "success",
                                end_of(db, me, how, longer));
    CO_TRY(etcd_call(db, &answer, "/v3/kv/txn",
                     json_pack("{s[o] so s[o]}", "compare", ours, "success", end_of(db, me, how, longer),
                               "failure", nobodys),
                     patience));
    json_decref(answer);
    revoke(db, id, patience); /* this also deletes the keeper's key */
    return CO_OK;
}

co_err etcd_give_up(etcd *db, const keeper *lost, const co_leave *how, const co_patience *patience)
{
    json_t *answer = NULL;
    int64_t longer;

    CO_TRY(grant(db, &longer, ETCD_OVER_S, patience));
    CO_TRY(etcd_call(db, &answer, "/v3/kv/txn",
                     json_pack("{s[o] so}", "compare", kv_absent(kv_over(db, lost->job)), "success",
                               end_of(db, lost, how, longer)),
                     patience));
    json_decref(answer);
    return CO_OK;
}
