/* call.c -- one call to an etcd cluster, through the JSON gateway of whichever member answers.
 *
 * A call goes to the member that answered last. If that one does not answer within ETCD_ANSWER_MS, or has
 * no leader, it goes to the next. So a call may be carried out twice.
 */
#include "roster/etcd/etcd_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

enum { ANSWER_MOST = 65536 };

static co_err add_member(etcd *db, const char *text, size_t len)
{
    char member[300];
    bool has_scheme = len > 7 && (strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0);
    co_endpoint at;

    if (len >= 270)
        return co_fail(CO_EINPUT, "--rdzv-endpoint: %.40s... is too long", text);
    if (db->n == ETCD_MEMBERS)
        return co_fail(CO_EINPUT, "--rdzv-endpoint: more than %d members of etcd", ETCD_MEMBERS);
    snprintf(member, sizeof member, "%.*s", (int)len, text);
    char *host = has_scheme ? strstr(member, "://") + 3 : member;
    host[strcspn(host, "/")] = '\0';
    co_err err = co_endpoint_parse(&at, host);
    if (err || !*at.host)
        return co_fail(CO_EINPUT, "--rdzv-endpoint: %.*s: HOST:PORT of a member of etcd is needed%s%s",
                       (int)len, text, err ? ": " : "", err ? co_errmsg() : "");
    char place[CO_NAME_MOST + 8];
    co_endpoint_text(place, sizeof place, at.host, at.port < 0 ? 2379 : at.port);
    bool tls = has_scheme ? member[4] == 's' : db->where.tls;
    snprintf(db->url[db->n++], sizeof db->url[0], "%s://%.280s", tls ? "https" : "http", place);
    return CO_OK;
}

co_err etcd_open(etcd **out, const char *run_id, const co_meet_etcd *where)
{
    etcd *db = co_zalloc(sizeof *db);
    co_err err = CO_OK;

    if (!db)
        return CO_ENOMEM;
    db->where = *where;
    snprintf(db->run_id, sizeof db->run_id, "%s", run_id);
    for (const char *at = where->members; *at && !err; at += *at == ',') {
        size_t n = strcspn(at, ",");
        if (n)
            err = add_member(db, at, n);
        at += n;
    }
    if (!err && !db->n)
        err = co_fail(CO_EINPUT, "--rdzv-endpoint=%s names no member of etcd", where->members);
    if (!err && co_http_open(&db->http))
        err = co_fail_in(CO_EINPUT, "--rdzv-backend=etcd-v3 needs libcurl");
    if (err) {
        etcd_close(db);
        return err;
    }
    *out = db;
    return CO_OK;
}

void etcd_close(etcd *db)
{
    if (!db)
        return;
    co_http_close(db->http);
    co_free(db);
}

const char *etcd_members(const etcd *db)
{
    return db->where.members;
}

/* ---- calling ---- */
/* etcd's own message about what went wrong. */
static co_err refused(const co_http_answer *a, const char *url)
{
    json_t *body = NULL;
    const char *text = NULL;

    if (co_json_parse(&body, a->body, a->len, "etcd's answer") == CO_OK && json_is_object(body) &&
        (text = co_json_str(body, "message") ? co_json_str(body, "message") : co_json_str(body, "error")))
        co_fail(CO_EIO, "%s answers with status %d: %.150s", url, a->status, text);
    else
        co_http_expect(a, url);
    json_decref(body);
    return a->status == 404 ? co_fail_in(CO_EIO, "is this etcd 3.4 or later, with its JSON gateway?") : CO_EIO;
}

static co_err call_member(etcd *db, json_t **out, const char *url, const char *path, const char *text,
                          const co_patience *patience)
{
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    uint64_t soon = co_now_ns() + ETCD_ANSWER_MS * 1000000ull;
    co_patience mine = {.until_ns = soon < patience->until_ns ? soon : patience->until_ns,
                        .give_up = patience->give_up};
    char whole[400];
    co_http_answer a = {0};

    snprintf(whole, sizeof whole, "%s%s", url, path);
    CO_TRY(co_http_do(db->http, &a,
                      &(co_http_request){.url = whole,
                                         .headers = headers,
                                         .body = text,
                                         .len = strlen(text),
                                         .most = ANSWER_MOST,
                                         .direct = true,
                                         .ca = db->where.ca,
                                         .cert = db->where.cert,
                                         .key = db->where.key},
                      &mine));
    co_err err = a.status == 200 ? co_json_parse(out, a.body, a.len, url) : refused(&a, url);
    co_free(a.body);
    return err;
}

co_err etcd_call(etcd *db, json_t **out, const char *path, json_t *body, const co_patience *patience)
{
    char *text = body ? co_json_text(body) : NULL;
    co_str said = {0};
    json_t *v = NULL;
    co_err err = text ? CO_EFAIL : co_fail(CO_ENOMEM, "out of memory for a request to etcd");

    json_decref(body);
    for (int i = 0; i < db->n && text && err && err != CO_ESTOP; i++) {
        err = call_member(db, &v, db->url[db->at], path, text, patience);
        if (err) {
            co_str_addf(&said, "%s%.250s", i ? "; " : "", co_errmsg());
            db->at = (db->at + 1) % db->n;
        }
    }
    co_free(text);
    if (err && err != CO_ESTOP && err != CO_ENOMEM)
        err = co_fail(
            CO_EFAIL,
            "step etcd: no member is of use: %.700s. etcd needs most of its members up (etcdctl endpoint "
            "health), and this host a way to them",
            co_str_text(&said));
    co_str_fini(&said);
    if (!err)
        *out = v;
    return err;
}
