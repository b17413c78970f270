/* json.c -- keys, values and parts of transactions in etcd's JSON: bytes are base64, 64-bit numbers are
 * strings. */
#include "roster/etcd/etcd_int.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
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

/* The value of a key-value pair: an object that we wrote, or NULL. */
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

static json_t *key_of(const etcd *db, const char *what, const char *job)
{
    char key[KEY_MOST];

    snprintf(key, sizeof key, "/cohort/%s/%s%s", db->run_id, what, job);
    return base64(key);
}

json_t *kv_keeper(const etcd *db)
{
    return key_of(db, "keeper", "");
}

json_t *kv_running(const etcd *db)
{
    return key_of(db, "running", "");
}

json_t *kv_over(const etcd *db, const char *job)
{
    return key_of(db, "over/", job);
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

json_t *kv_running_value(const char *job, const char *host)
{
    return json_pack("{so so}", "job", co_json_string(job), "host", co_json_string(host));
}

/* ---- parts of a transaction ---- */
json_t *kv_absent(json_t *key)
{
    return json_pack("{so ss ss ss}", "key", key, "target", "CREATE", "result", "EQUAL", "create_revision",
                     "0");
}

json_t *kv_runs(const etcd *db, const char *job, const char *host)
{
    return json_pack("{so ss ss so}", "key", kv_running(db), "target", "VALUE", "result", "EQUAL", "value",
                     encoded(kv_running_value(job, host)));
}

json_t *kv_read_all(const etcd *db, const char *job)
{
    return json_pack("[{s{so}} {s{so}} {s{so}}]", "request_range", "key", kv_keeper(db), "request_range",
                     "key", kv_over(db, *job ? job : "none"), "request_range", "key", kv_running(db));
}

int64_t kv_number(const json_t *obj, const char *key)
{
    const char *text = co_json_str(obj, key);
    long long n;

    return text && co_str_to_i64(text, &n) ? n : field_int(obj, key, INT64_MIN, INT64_MAX, 0);
}

static const json_t *kv_at(const json_t *answer, size_t i)
{
    const json_t *range =
        json_object_get(json_array_get(json_object_get(answer, "responses"), i), "response_range");

    return json_array_get(json_object_get(range, "kvs"), 0);
}

void kv_understand(keeping *out, int64_t *id, const json_t *answer)
{
    const json_t *kv = kv_at(answer, 0), *running = kv_at(answer, 2);
    json_t *who = value_of(kv), *end = value_of(kv_at(answer, 1)), *job = value_of(running);

    *out = (keeping){.there = who != NULL, .over = end != NULL};
    *id = kv ? kv_number(kv, "lease") : 0;
    field_text(out->who.endpoint, sizeof out->who.endpoint, who, "endpoint");
    field_text(out->who.also, sizeof out->who.also, who, "also");
    field_text(out->who.host, sizeof out->who.host, who, "host");
    field_text(out->who.job, sizeof out->who.job, who, "job");
    if (end)
        leave_unpack(&out->end, end);
    if (running) {
        field_text(out->running, sizeof out->running, job, "job");
        if (!*out->running)
            /* not one of our values, but something is there */
            snprintf(out->running, sizeof out->running, "?");
        field_text(out->running_host, sizeof out->running_host, job, "host");
        out->running_lease = kv_number(running, "lease");
    }
    json_decref(who);
    json_decref(end);
    json_decref(job);
}

json_t *kv_lease(int64_t id)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)id);
    return json_string(text);
}

json_t *kv_put(json_t *key, json_t *value, int64_t id)
{
    return json_pack("{s{so so so}}", "request_put", "key", key, "value", encoded(value), "lease",
                     kv_lease(id));
}
