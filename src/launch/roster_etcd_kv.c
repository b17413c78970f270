/* roster_etcd_kv.c -- what the roster asks of etcd, in its words: txn, lease/grant, lease/keepalive, lease/revoke, lease/timetolive.
 *
 * Keys and values are base64 there, 64-bit numbers strings. A call may be done twice (roster_etcd_call.c); none minds: a campaign
 * whose first answer was lost finds itself on the key.
 */
#include "launch/roster_etcd_int.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

enum { KEY_MOST = 256, VALUE_MOST = 4096 };

/* ---- keys and values ---- */
static json_t *base64(const char *text)
{
    unsigned char out[(VALUE_MOST + 2) / 3 * 4 + 1];
    size_t len = strlen(text);

    if (len > VALUE_MOST)
        return NULL;
    EVP_EncodeBlock(out, (const unsigned char *)text, (int)len);
    return json_string((const char *)out);
}

/* A value that etcd has for a key: an object of ours, or NULL. */
static json_t *value_of(const json_t *kv)
{
    const char *text = co_json_str(kv, "value");
    size_t len = text ? strlen(text) : 0;
    unsigned char bytes[VALUE_MOST + 4];
    json_t *v = NULL;

    if (!len || len % 4 || len > VALUE_MOST / 3 * 4)
        return NULL;
    int n = EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)len);
    if (n < 0)
        return NULL;
    n -= (text[len - 1] == '=') + (text[len - 2] == '=');
    if (co_json_parse(&v, (const char *)bytes, (size_t)n, "etcd's value") || json_is_object(v))
        return v;
    json_decref(v);
    return NULL;
}

static json_t *key_of(const etcd *e, const char *what, const char *job)
{
    char key[KEY_MOST];

    snprintf(key, sizeof key, "/cohort/%s/%s%s", e->run_id, what, job);
    return base64(key);
}

static json_t *keeper_key(const etcd *e)
{
    return key_of(e, "keeper", "");
}

static json_t *running_key(const etcd *e)
{
    return key_of(e, "running", "");
}

static json_t *over_key(const etcd *e, const char *job)
{
    return key_of(e, "over/", job);
}

/* Takes value. */
static json_t *encoded(json_t *value)
{
    char *text = value ? co_json_text(value) : NULL;
    json_t *v = text ? base64(text) : NULL;

    json_decref(value);
    co_free(text);
    return v;
}

static json_t *running_value(const char *job, const char *host)
{
    return json_pack("{so so}", "job", co_json_string(job), "host", co_json_string(host));
}

/* ---- parts of a transaction ---- */
static json_t *absent(json_t *key)
{
    return json_pack("{so ss ss ss}", "key", key, "target", "CREATE", "result", "EQUAL", "create_revision",
                     "0");
}

/* That job runs, as that host said. */
static json_t *runs(const etcd *e, const char *job, const char *host)
{
    return json_pack("{so ss ss so}", "key", running_key(e), "target", "VALUE", "result", "EQUAL", "value",
                     encoded(running_value(job, host)));
}

static json_t *read_all(const etcd *e, const char *job)
{
    return json_pack("[{s{so}} {s{so}} {s{so}}]", "request_range", "key", keeper_key(e), "request_range",
                     "key", over_key(e, *job ? job : "none"), "request_range", "key", running_key(e));
}

/* Numbers of 64 bits come as strings. */
static int64_t number(const json_t *obj, const char *key)
{
    const char *text = co_json_str(obj, key);
    long long n;

    return text && co_str_to_i64(text, &n) ? n : word_int(obj, key, INT64_MIN, INT64_MAX, 0);
}

static const json_t *kv_at(const json_t *answer, size_t i)
{
    const json_t *range =
        json_object_get(json_array_get(json_object_get(answer, "responses"), i), "response_range");

    return json_array_get(json_object_get(range, "kvs"), 0);
}

/* What read_all found. *id: that of the keeper's key. */
static void understand(keeping *out, int64_t *id, const json_t *answer)
{
    const json_t *kv = kv_at(answer, 0), *running = kv_at(answer, 2);
    json_t *who = value_of(kv), *end = value_of(kv_at(answer, 1)), *job = value_of(running);

    *out = (keeping){.there = who != NULL, .over = end != NULL};
    *id = kv ? number(kv, "lease") : 0;
    word_text(out->who.endpoint, sizeof out->who.endpoint, who, "endpoint");
    word_text(out->who.also, sizeof out->who.also, who, "also");
    word_text(out->who.host, sizeof out->who.host, who, "host");
    word_text(out->who.job, sizeof out->who.job, who, "job");
    if (end)
        out->status = (int)word_int(end, "status", 0, 255, 1);
    word_text(out->text, sizeof out->text, end, "text");
    if (running) {
        word_text(out->running, sizeof out->running, job, "job");
        if (!*out->running)
            snprintf(out->running, sizeof out->running, "?"); /* whatever it is, it is there */
        word_text(out->running_host, sizeof out->running_host, job, "host");
        out->running_lease = number(running, "lease");
    }
    json_decref(who);
    json_decref(end);
    json_decref(job);
}

/* ---- the calls ---- */
static co_err grant(etcd *e, int64_t *id, int ttl_s, const co_patience *p)
{
    json_t *answer = NULL;

    CO_TRY(etcd_call(e, &answer, "/v3/lease/grant", json_pack("{si}", "TTL", ttl_s), p));
    *id = number(answer, "ID");
    json_decref(answer);
    return *id ? CO_OK : co_fail(CO_EFAIL, "step etcd: it grants no lease");
}

static json_t *lease_text(int64_t id)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)id);
    return json_string(text);
}

/* Whether etcd has heard it; if not, the lease ends by itself. */
static bool revoke(etcd *e, int64_t id, const co_patience *p)
{
    json_t *answer = NULL;
    co_err err = etcd_call(e, &answer, "/v3/lease/revoke", json_pack("{so}", "ID", lease_text(id)), p);

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
    CO_TRY(etcd_call(e, &answer, "/v3/kv/txn", json_pack("{so}", "success", read_all(e, job)), p));
    understand(out, &id, answer);
    json_decref(answer);
    return CO_OK;
}

static json_t *put(json_t *key, json_t *value, int64_t id)
{
    return json_pack("{s{so so so}}", "request_put", "key", key, "value", encoded(value), "lease",
                     lease_text(id));
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
                     json_pack("{s[ooo] s[o] so}", "compare", absent(keeper_key(e)),
                               absent(over_key(e, me->job)), running ? running : absent(running_key(e)),
                               "success", put(keeper_key(e), value, mine), "failure", read_all(e, me->job)),
                     p));
    *won = json_is_true(json_object_get(answer, "succeeded"));
    if (!*won)
        understand(out, theirs, answer);
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
        err = take_place(e, &won, out, &theirs, me, mine, runs(e, me->job, out->running_host), p);
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
    json_t *mine = json_pack("{so ss ss so}", "key", keeper_key(e), "target", "LEASE", "result", "EQUAL",
                             "lease", lease_text(place));
    CO_TRY(etcd_call(e, &answer, "/v3/kv/txn",
                     json_pack("{s[o] s[o]}", "compare", mine, "success",
                               put(running_key(e), running_value(me->job, me->host), longer)),
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

    CO_TRY(etcd_call(e, &answer, "/v3/lease/keepalive", json_pack("{so}", "ID", lease_text(id)), p));
    *held = number(json_object_get(answer, "result"), "TTL") > 0;
    json_decref(answer);
    return CO_OK;
}

int etcd_seconds_left(etcd *e, int64_t id, const co_patience *p)
{
    json_t *answer = NULL;

    if (etcd_call(e, &answer, "/v3/lease/timetolive", json_pack("{so}", "ID", lease_text(id)), p))
        return 0;
    int64_t left = number(answer, "TTL");
    json_decref(answer);
    return left > 0 ? (int)left : 0;
}

/* Remembers how the job ended, and that it does not run, if `who` was the last to say that it does. */
static co_err note_end(etcd *e, json_t *compare, const keeper *who, int status, const char *text,
                       const co_patience *p)
{
    json_t *answer = NULL;
    int64_t longer;
    co_err err = grant(e, &longer, ETCD_OVER_S, p);

    if (err) {
        json_decref(compare);
        return err;
    }
    json_t *end = json_pack("{si so}", "status", status, "text", co_json_string(text));
    json_t *forget = json_pack("{s{s[o] s[{s{so}}]}}", "request_txn", "compare", runs(e, who->job, who->host),
                               "success", "request_delete_range", "key", running_key(e));
    CO_TRY(etcd_call(e, &answer, "/v3/kv/txn",
                     json_pack("{so s[oo]}", "compare", compare, "success",
                               put(over_key(e, who->job), end, longer), forget),
                     p));
    json_decref(answer);
    return CO_OK;
}

co_err etcd_end(etcd *e, int64_t id, const keeper *me, int status, const char *text, const co_patience *p)
{
    CO_TRY(note_end(e, json_array(), me, status, text, p));
    revoke(e, id, p); /* takes the keeper's key with it */
    return CO_OK;
}

co_err etcd_despair(etcd *e, const keeper *lost, int status, const char *text, const co_patience *p)
{
    return note_end(e, json_pack("[o]", absent(over_key(e, lost->job))), lost, status, text, p);
}
