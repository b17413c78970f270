/* frame.c -- the bodies of the roster's frames: small JSON objects.
 *
 * Every value that comes in is bounded here: text is cut to its field and loses its control characters, a
 * number outside its range becomes the default. So no caller has to check a value before using it. Only a
 * round has no defaults: its numbers depend on each other, so a bad one makes the whole round bad.
 */
#include "roster/net/frame_int.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/str.h"

/* Of a host, and of a job. Their sum fits an int, so a host may add its workers to any first rank. */
enum { HOST_RANKS_MOST = 1 << 16, RANKS_MOST = CO_MAX_HOSTS * HOST_RANKS_MOST };

uint64_t run_number(const char *run_id)
{
    return co_fnv1a64(run_id, strlen(run_id));
}

co_err frame_send(co_conn *c, frame_type type, uint64_t run, int64_t view, json_t *body)
{
    char *text = body ? co_json_text(body) : NULL;
    size_t len = text ? strlen(text) : 0;
    co_err err = body && !text ? CO_ENOMEM : CO_OK;

    if (!err && len > CO_FRAME_MOST)
        err = co_fail(CO_EFAIL, "a message of %zu bytes", len);
    if (!err)
        err = co_conn_send(
            c,
            &(co_frame){
                .type = (uint8_t)type, .run = run, .view = (uint32_t)view, .len = (uint32_t)len, .body = text});
    co_free(text);
    json_decref(body);
    return err;
}

co_err frame_read(json_t **out, const co_frame *f)
{
    json_t *v = NULL;

    CO_TRY(co_json_parse(&v, f->len ? f->body : "{}", f->len ? f->len : 2, "message"));
    if (!json_is_object(v)) {
        json_decref(v);
        return co_fail(CO_EFORMAT, "a message that is no object");
    }
    *out = v;
    return CO_OK;
}

/* Text from other hosts is shown on terminals. */
void field_text(char *out, size_t size, const json_t *body, const char *key)
{
    const char *text = co_json_str(body, key);

    co_utf8_clean(out, size, text ? text : "");
}

int64_t field_int(const json_t *body, const char *key, int64_t least, int64_t most, int64_t otherwise)
{
    long long x;

    return co_json_i64(body, key, &x) && x >= least && x <= most ? x : otherwise;
}

/* What a job of views adds. */
static bool add_views(json_t *body, const co_terms *t)
{
    json_t *facts = NULL;
    char birth[20];

    long_text(birth, t->birth);
    bool ok = facts_parse(&facts, t->facts) == CO_OK && json_object_set_new(body, "views", json_true()) == 0 &&
              json_object_set_new(body, "least", json_integer(t->least_hosts)) == 0 &&
              json_object_set_new(body, "port", json_integer(t->bulk_port)) == 0 &&
              json_object_set_new(body, "birth", json_string(birth)) == 0 &&
              (!facts || json_object_set(body, "facts", facts) == 0);
    json_decref(facts);
    return ok;
}

json_t *terms_pack(const co_terms *t)
{
    json_t *body =
        json_pack("{so si si si si si so so}", "run_id", co_json_string(t->run_id), "min", t->min_hosts,
                  "max", t->max_hosts, "nproc", t->nproc, "rank", t->host_rank, "restarts", t->max_restarts,
                  "program", co_json_string(t->program), "version", co_json_string(t->version));

    if (body && t->views && !add_views(body, t)) {
        json_decref(body);
        return NULL;
    }
    return body;
}

void terms_unpack(co_terms *t, const json_t *body)
{
    *t = (co_terms){.min_hosts = (int)field_int(body, "min", 1, CO_MAX_HOSTS, 1),
                    .max_hosts = (int)field_int(body, "max", 1, CO_MAX_HOSTS, 1),
                    .nproc = (int)field_int(body, "nproc", 1, HOST_RANKS_MOST, 1),
                    .host_rank = (int)field_int(body, "rank", -1, CO_MAX_HOSTS - 1, -1),
                    .max_restarts = (int)field_int(body, "restarts", 0, INT32_MAX, 0),
                    .views = json_is_true(json_object_get(body, "views")),
                    .least_hosts = (int)field_int(body, "least", 0, CO_MAX_HOSTS, 0),
                    .bulk_port = (int)field_int(body, "port", 0, 65535, 0),
                    .birth = long_parse(body, "birth")};
    field_text(t->run_id, sizeof t->run_id, body, "run_id");
    field_text(t->program, sizeof t->program, body, "program");
    field_text(t->version, sizeof t->version, body, "version");
}

json_t *round_pack(const co_round *r)
{
    return json_pack("{sI si si si si si so so si}", "number", (json_int_t)r->number, "restarts", r->restarts,
                     "hosts", r->hosts, "my_host", r->my_host, "first_rank", r->first_rank, "world", r->world,
                     "master_addr", co_json_string(r->master_addr), "my_addr", co_json_string(r->my_addr),
                     "master_port", r->master_port);
}

/* A number that is outside its range becomes -1, which no relation below allows. */
co_err round_unpack(co_round *r, const json_t *body)
{
    *r = (co_round){.number = field_int(body, "number", 1, INT32_MAX, -1),
                    .restarts = (int)field_int(body, "restarts", 0, INT32_MAX, -1),
                    .hosts = (int)field_int(body, "hosts", 1, CO_MAX_HOSTS, -1),
                    .my_host = (int)field_int(body, "my_host", 0, CO_MAX_HOSTS - 1, -1),
                    .first_rank = (int)field_int(body, "first_rank", 0, RANKS_MOST - 1, -1),
                    .world = (int)field_int(body, "world", 1, RANKS_MOST, -1),
                    .master_port = (int)field_int(body, "master_port", 1, 65535, -1)};
    field_text(r->master_addr, sizeof r->master_addr, body, "master_addr");
    field_text(r->my_addr, sizeof r->my_addr, body, "my_addr");
    if (r->number < 0 || r->restarts < 0 || r->hosts < 0 || r->my_host < 0 || r->first_rank < 0 ||
        r->world < 0 || r->master_port < 0)
        return co_fail(CO_EFORMAT, "a round with a number that is missing or out of range");
    if (r->my_host >= r->hosts || r->first_rank >= r->world)
        return co_fail(CO_EFORMAT, "a round that contradicts itself: host %d of %d, rank %d of %d",
                       r->my_host, r->hosts, r->first_rank, r->world);
    return CO_OK;
}

json_t *failure_pack(const co_failure *f)
{
    return json_pack("{so si si si si si sI so so so}", "host", co_json_string(f->host), "host_rank",
                     f->host_rank, "rank", f->rank, "local_rank", f->local_rank, "pid", f->pid, "status",
                     f->status, "when_ns", (json_int_t)f->when_ns, "how", co_json_string(f->how), "advice",
                     co_json_string(f->advice), "last", co_json_string(f->last));
}

void failure_unpack(co_failure *f, const json_t *body)
{
    *f = (co_failure){.host_rank = (int)field_int(body, "host_rank", -1, CO_MAX_HOSTS - 1, -1),
                      .rank = (int)field_int(body, "rank", -1, INT32_MAX, -1),
                      .local_rank = (int)field_int(body, "local_rank", -1, INT32_MAX, -1),
                      .pid = (int)field_int(body, "pid", 0, INT32_MAX, 0),
                      .status = (int)field_int(body, "status", 0, 0xffff, 0x100),
                      .when_ns = field_int(body, "when_ns", 0, WALL_MOST_NS, WALL_MOST_NS)};
    field_text(f->host, sizeof f->host, body, "host");
    field_text(f->how, sizeof f->how, body, "how");
    field_text(f->advice, sizeof f->advice, body, "advice");
    field_text(f->last, sizeof f->last, body, "last");
}

json_t *leave_pack(const co_leave *how)
{
    return json_pack("{si si si so so}", "status", how->status, "sig", how->sig, "origin", (int)how->origin,
                     "host", co_json_string(how->host), "text", co_json_string(how->text));
}

void leave_unpack(co_leave *how, const json_t *body)
{
    *how = (co_leave){.status = (int)field_int(body, "status", 0, 255, 1),
                      .sig = (int)field_int(body, "sig", 0, NSIG - 1, 0),
                      .origin =
                          (co_origin)field_int(body, "origin", CO_ORIGIN_JOB, CO_ORIGIN_HOST, CO_ORIGIN_HOST)};
    if (how->sig == SIGKILL || how->sig == SIGSTOP) /* no request to end: workers could not catch them */
        how->sig = 0;
    field_text(how->host, sizeof how->host, body, "host");
    field_text(how->text, sizeof how->text, body, "text");
}
