/* api.c -- the requests to the service: GraphQL at /graphql, lines of files at /files/.../file_stream.
 *
 * Two kinds of failure: "later" (no connection, no answer in time, status 408, 429, 5xx) and "refused"
 * (CO_EINPUT: another status, or an answer that says so). The key is in a header and in nothing else.
 */
#include "wandb/wandb_int.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"

enum { ANSWER_MOST = 16 << 20, FILE_MOST = 1 << 30 };

static const char viewer_query[] = "query Viewer { viewer { id entity username } }";
static const char status_query[] =
    "query RunResumeStatus ($project: String, $entity: String, $name: String!) {"
    " model(name: $project, entityName: $entity) { id name entity { id name }"
    " bucket(name: $name, missingOk: true) { id name summaryMetrics displayName logLineCount historyLineCount"
    " eventsLineCount historyTail eventsTail config tags notes wandbConfig(keys: [\"t\"]) } } }";
static const char upsert_query[] =
    "mutation UpsertBucket ($id: String, $name: String, $project: String, $entity: String, $groupName: "
    "String,"
    " $description: String, $displayName: String, $notes: String, $commit: String, $config: JSONString,"
    " $host: String, $debug: Boolean, $program: String, $repo: String, $jobType: String, $state: String,"
    " $sweep: String, $tags: [String!], $summaryMetrics: JSONString) {"
    " upsertBucket(input: {id:$id,name:$name,groupName:$groupName,modelName:$project,entityName:$entity,"
    "description:$description,displayName:$displayName,notes:$notes,config:$config,commit:$commit,host:$host,"
    "debug:$debug,jobProgram:$program,jobRepo:$repo,jobType:$jobType,state:$state,sweep:$sweep,tags:$tags,"
    "summaryMetrics:$summaryMetrics}) { bucket { id name displayName description config sweepName"
    " project { id name entity { id name } } historyLineCount } inserted } }";
static const char files_query[] =
    "mutation CreateRunFiles ($entity: String!, $project: String!, $run: String!, $files: [String!]!) {"
    " createRunFiles(input: {entityName:$entity,projectName:$project,runName:$run,files:$files}) {"
    " runID uploadHeaders files { name uploadUrl } } }";

co_err api_open(wandb_api *api, const wandb_settings *set, const atomic_bool *give_up)
{
    wandb_api new = {.set = set, .give_up = give_up, .retry_after_s = -1};
    co_err err = co_http_open(&new.http);

    new.auth = err ? NULL : co_http_basic("api", set->key);
    if (!err && !new.auth)
        err = CO_ENOMEM;
    if (err)
        api_close(&new);
    else
        *api = new;
    return err;
}

void api_close(wandb_api *api)
{
    co_http_close(api->http);
    co_http_wipe(api->auth);
    co_free(api->entity);
    co_free(api->project);
    *api = (wandb_api){0};
}

/* Sorts the answer: CO_OK for 2xx, CO_EINPUT for a refusal, CO_EPEER for "later". */
static co_err judge(wandb_api *api, const co_http_answer *a, const char *url)
{
    co_err err = co_http_expect(a, url);

    api->retry_after_s = (double)a->head.retry_after_s;
    if (!err)
        return CO_OK;
    if (a->status == 401)
        return co_fail_in(CO_EINPUT, "the key is refused (`cohort wandb login` stores another)");
    return a->status == 408 || a->status == 429 || a->status >= 500 ? CO_EPEER : CO_EINPUT;
}

static co_err request(wandb_api *api, co_http_answer *out, co_http_request *rq)
{
    co_patience patience = co_patience_s(api->set->timeout_s);

    patience.give_up = api->give_up;
    api->retry_after_s = -1;
    rq->most = ANSWER_MOST;
    rq->insecure = api->set->insecure;
    co_http_answer answer;
    CO_TRY(co_http_do(api->http, &answer, rq, &patience));
    co_err err = judge(api, &answer, rq->url);
    if (err)
        co_free(answer.body);
    else
        *out = answer;
    return err;
}

co_err api_reply(json_t **data, const char *body, size_t len, const char *what)
{
    json_t *all = NULL;

    CO_TRY(co_json_parse(&all, body, len, what));
    json_t *errors = json_object_get(all, "errors"), *found = json_object_get(all, "data");
    const char *message = co_json_str(json_array_get(errors, 0), "message");
    co_err err = CO_OK;
    if (json_array_size(errors) > 0) {
        char clean[300];
        co_utf8_clean(clean, sizeof clean, message ? message : "no reason given");
        err = co_fail(CO_EINPUT, "%s is refused: %s", what, clean);
    } else if (!json_is_object(found)) {
        err = co_fail(CO_EFORMAT, "%s: the answer has no data", what);
    } else {
        *data = json_incref(found);
    }
    json_decref(all);
    return err;
}

static co_err graphql(wandb_api *api, json_t **data, const char *what, const char *query, json_t *take)
{
    const char *const headers[] = {api->auth, "Content-Type: application/json", "Accept: application/json",
                                   NULL};
    json_t *all = json_pack("{ss so ss}", "query", query, "variables", take, "operationName", what);
    char *url = co_sprintf("%s/graphql", api->set->base_url), *body = all ? co_json_text(all) : NULL;
    co_http_answer answer = {0};
    co_err err = url && body ? CO_OK : CO_ENOMEM;

    json_decref(all);
    if (!err)
        err = request(api, &answer,
                      &(co_http_request){.url = url, .headers = headers, .body = body, .len = strlen(body)});
    if (!err)
        err = api_reply(data, answer.body, answer.len, what);
    co_free(answer.body);
    co_free(body);
    co_free(url);
    return err;
}

static json_t *text_or_null(const char *text)
{
    return text && *text ? co_json_string(text) : json_null();
}

co_err api_viewer(wandb_api *api, char *entity, size_t size)
{
    json_t *data = NULL;

    CO_TRY(graphql(api, &data, "Viewer", viewer_query, json_object()));
    const char *name = co_json_str(json_object_get(data, "viewer"), "entity");
    co_err err = name ? CO_OK : co_fail(CO_EINPUT, "the key is refused: the service knows no user for it");
    if (name)
        co_utf8_clean(entity, size, name);
    json_decref(data);
    return err;
}

/* The largest _step in the tail of the history: a text that is a list of texts that are objects. */
static int64_t tail_step(const char *tail)
{
    json_t *lines = NULL;
    long long most = -1, step;

    if (!tail || co_json_parse(&lines, tail, strlen(tail), "historyTail") != CO_OK)
        return -1;
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const char *text = json_string_value(json_array_get(lines, i));
        /* no parser: the row may have NaN, which is no JSON */
        const char *at = text ? strstr(text, "\"_step\":") : NULL;
        if (at && sscanf(at + 8, "%lld", &step) == 1 && step > most)
            most = step;
    }
    json_decref(lines);
    return most;
}

void api_status_of(run_status *out, const json_t *data)
{
    static const char *const names[N_CHANNELS] = {"historyLineCount", "eventsLineCount", "logLineCount"};
    const json_t *bucket = json_object_get(json_object_get(data, "model"), "bucket");
    long long n;

    *out = (run_status){.exists = json_is_object(bucket), .last_step = -1};
    for (int i = 0; out->exists && i < N_CHANNELS; i++)
        if (co_json_i64(bucket, names[i], &n) && n > 0)
            out->lines[i] = n;
    if (out->exists)
        out->last_step = tail_step(co_json_str(bucket, "historyTail"));
}

co_err api_status(wandb_api *api, run_status *out)
{
    json_t *data = NULL;

    CO_TRY(graphql(api, &data, "RunResumeStatus", status_query,
                   json_pack("{so so so}", "project", text_or_null(api->set->project), "entity",
                             text_or_null(api->set->entity), "name", text_or_null(api->set->id))));
    api_status_of(out, data);
    json_decref(data);
    return CO_OK;
}

static json_t *upsert_variables(const wandb_api *api, const char *config, const char *summary)
{
    const wandb_settings *set = api->set;
    bool first = !api->entity; /* later ones change the configuration alone */
    const struct {
        const char *name, *value;
    } rows[] = {{"id", NULL},
                {"name", set->id},
                {"project", api->project ? api->project : set->project},
                {"entity", api->entity ? api->entity : set->entity},
                {"groupName", first ? set->group : NULL},
                {"description", NULL},
                {"displayName", first ? set->name : NULL},
                {"notes", first ? set->notes : NULL},
                {"commit", first ? set->commit : NULL},
                {"config", config},
                {"host", first ? set->host : NULL},
                {"debug", NULL},
                {"program", first ? set->program : NULL},
                {"repo", first ? set->remote : NULL},
                {"jobType", first ? set->job_type : NULL},
                {"state", NULL},
                {"sweep", first ? set->sweep : NULL},
                {"summaryMetrics", summary}};
    json_t *v = json_object();

    for (size_t i = 0; i < CO_COUNT(rows); i++)
        json_object_set_new(v, rows[i].name, text_or_null(rows[i].value));
    json_object_set_new(v, "tags", first && json_array_size(set->tags) ? json_incref(set->tags) : json_null());
    return v;
}

co_err api_upsert(wandb_api *api, const char *config_json, const char *summary_json)
{
    json_t *data = NULL;

    CO_TRY(graphql(api, &data, "UpsertBucket", upsert_query, upsert_variables(api, config_json, summary_json)));
    const json_t *bucket = json_object_get(json_object_get(data, "upsertBucket"), "bucket");
    const json_t *project = json_object_get(bucket, "project");
    const char *name = co_json_str(project, "name"),
               *entity = co_json_str(json_object_get(project, "entity"), "name");
    char *own_name = name ? co_strdup(name) : NULL, *own_entity = entity ? co_strdup(entity) : NULL;
    json_decref(data);
    if (!own_name || !own_entity) {
        bool said = name && entity;
        co_free(own_name);
        co_free(own_entity);
        return said ? CO_ENOMEM : co_fail(CO_EFORMAT, "UpsertBucket: the answer names no project and entity");
    }
    co_free(api->project);
    co_free(api->entity);
    api->project = own_name;
    api->entity = own_entity;
    return CO_OK;
}

/* PUT with the headers "Name:Value" that the service asks for. They replace ours: the key is not for this
 * server. */
static co_err put(wandb_api *api, const json_t *want, const char *url, const char *bytes, size_t len)
{
    enum { MOST = 16 };
    const char *headers[MOST + 2] = {"Content-Type:"};
    co_http_answer answer = {0};
    int n = 1;

    for (size_t i = 0; i < json_array_size(want) && n <= MOST; i++) {
        const char *text = json_string_value(json_array_get(want, i));
        if (text && strchr(text, ':') && !strpbrk(text, "\r\n"))
            headers[n++] = text;
    }
    co_err err =
        request(api, &answer,
                &(co_http_request){.method = "PUT", .url = url, .headers = headers, .body = bytes, .len = len});
    co_free(answer.body);
    return err;
}

co_err api_send_file(wandb_api *api, const char *folder, const char *name)
{
    json_t *data = NULL;
    char *path = co_sprintf("%s/%s", folder, name), *bytes = NULL;
    size_t len = 0;
    co_err err = path ? co_fs_read(&bytes, &len, path, FILE_MOST) : CO_ENOMEM;

    if (err && err != CO_ENOMEM)
        err = CO_EFAIL;
    if (!err)
        err = graphql(api, &data, "CreateRunFiles", files_query,
                      json_pack("{ss ss ss s[s]}", "entity", api->entity, "project", api->project, "run",
                                api->set->id, "files", name));
    const json_t *made = json_object_get(data, "createRunFiles");
    const char *url = co_json_str(json_array_get(json_object_get(made, "files"), 0), "uploadUrl");
    if (!err && !url)
        err = co_fail(CO_EFORMAT, "CreateRunFiles: the answer has no address for %s", name);
    if (!err)
        err = put(api, json_object_get(made, "uploadHeaders"), url, bytes, len);
    json_decref(data);
    co_free(bytes);
    co_free(path);
    return err;
}

/* "/my%20project" */
static void add_part(co_str *url, const char *text)
{
    co_str_add(url, "/");
    for (; *text; text++)
        co_str_addf(url, isalnum((unsigned char)*text) || strchr("-._~", *text) ? "%c" : "%%%02X",
                    (unsigned char)*text);
}

/* {"stopped": true}: the button Stop on the run's page */
bool api_says_stop(const char *answer, size_t len)
{
    json_t *v = NULL;
    bool stop =
        co_json_parse(&v, answer, len, "an answer") == CO_OK && json_is_true(json_object_get(v, "stopped"));

    json_decref(v);
    co_errclear();
    return stop;
}

co_err api_stream(wandb_api *api, const char *body, size_t len)
{
    const char *const headers[] = {api->auth, "Content-Type: application/json", NULL};
    co_http_answer answer = {0};
    co_str url = {0};

    co_str_addf(&url, "%s/files", api->set->base_url);
    add_part(&url, api->entity);
    add_part(&url, api->project);
    add_part(&url, api->set->id);
    co_str_add(&url, "/file_stream");
    co_err err = co_str_err(&url);
    if (!err)
        err = request(api, &answer,
                      &(co_http_request){.url = url.p, .headers = headers, .body = body, .len = len});
    if (!err)
        api->stopped = api_says_stop(answer.body, answer.len);
    co_free(answer.body);
    co_str_fini(&url);
    return err;
}
