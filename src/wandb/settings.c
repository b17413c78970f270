/* settings.c -- what a run is called and where it goes: keys logger.wandb.* first, then WANDB_ variables.
 *
 * A value that an expression of the configuration took from the environment is like any other. The API key
 * comes from WANDB_API_KEY or netrc, and from nowhere else: it is in no configuration and in no file of the
 * run.
 */
#include "wandb/wandb_int.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"

enum { KEY_MOST = 4096 };

const co_option co_wandb_options[] = {
    {"project", CO_OPT_STR, offsetof(co_wandb_cfg, project), "null",
     "the project; null: $WANDB_PROJECT, or the task's name", .alias = "wandb.project wandb_project",
     .may_change = true},
    {"entity", CO_OPT_STR, offsetof(co_wandb_cfg, entity), "null",
     "the user or team; null: $WANDB_ENTITY, or that of the key", .alias = "wandb.entity wandb_entity",
     .may_change = true},
    {"group", CO_OPT_STR, offsetof(co_wandb_cfg, group), "null", "the group of runs; null: $WANDB_RUN_GROUP",
     .alias = "wandb.group wandb_group wandb_run_group", .may_change = true},
    {"name", CO_OPT_STR, offsetof(co_wandb_cfg, name), "null",
     "the run's name; null: $WANDB_NAME, or one that the service makes up", .may_change = true},
    {"tags", CO_OPT_STR, offsetof(co_wandb_cfg, tags), "null", "tags, as in [a,b]; null: $WANDB_TAGS",
     .may_change = true},
    {"notes", CO_OPT_STR, offsetof(co_wandb_cfg, notes), "null", "a longer text; null: $WANDB_NOTES",
     .may_change = true},
    {"job_type", CO_OPT_STR, offsetof(co_wandb_cfg, job_type), "null",
     "the kind of run (train, eval); null: $WANDB_JOB_TYPE", .may_change = true},
    {"id", CO_OPT_STR, offsetof(co_wandb_cfg, id), "null",
     "the run's id; null: $WANDB_RUN_ID, or that of the run folder, or a new one",
     .alias = "logger.wandb.version", .may_change = true},
    {"resume", CO_OPT_ENUM, offsetof(co_wandb_cfg, resume), "unset",
     "a run with this id on the service: go on (allow), require (must), refuse (never); unset: $WANDB_RESUME",
     .choices = "unset|allow|must|never|auto", .may_change = true},
    {"mode", CO_OPT_ENUM, offsetof(co_wandb_cfg, mode), "unset",
     "upload (online), write files only (offline) or do nothing; unset: $WANDB_MODE, or online",
     .choices = "unset|online|offline|disabled", .may_change = true},
    {"offline", CO_OPT_BOOL, offsetof(co_wandb_cfg, offline), "false",
     "as mode=offline: files that `wandb sync` uploads later", .may_change = true},
    {"save_dir", CO_OPT_STR, offsetof(co_wandb_cfg, save_dir), "null",
     "the folder that gets wandb/; null: $WANDB_DIR, or the run folder", .may_change = true, .of_host = true,
     .path = true},
    {"per_rank", CO_OPT_BOOL, offsetof(co_wandb_cfg, per_rank), "false",
     "a run for each rank, in one group: rank 0's has the metrics, each has its rank's time and memory",
     .may_change = true},
    {0}};

struct choice {
    const char *text;
    int value;
};

static co_err choose(int *out, const char *variable, const struct choice *choices, size_t n)
{
    const char *text = getenv(variable);

    if (!text || !*text)
        return CO_OK;
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(text, choices[i].text) == 0) {
            *out = choices[i].value;
            return CO_OK;
        }
    co_str all = {0};
    for (size_t i = 0; i < n; i++)
        co_str_addf(&all, "%s%s", i ? ", " : "", choices[i].text);
    co_err err = co_fail(CO_EINPUT, "%s=%s means nothing; it may be %s", variable, text, co_str_text(&all));
    co_str_fini(&all);
    return err;
}

static bool is_on(const char *variable)
{
    const char *text = getenv(variable);
    bool on = false;

    return text && (strcmp(text, "1") == 0 || (co_str_to_bool(text, &on) && on));
}

static co_err read_mode(wandb_settings *s, const co_wandb_cfg *cfg)
{
    static const struct choice choices[] = {{"online", CO_WANDB_ONLINE},     {"offline", CO_WANDB_OFFLINE},
                                            {"disabled", CO_WANDB_DISABLED}, {"dryrun", CO_WANDB_OFFLINE},
                                            {"run", CO_WANDB_ONLINE},        {"shared", CO_WANDB_ONLINE}};
    int mode = cfg->offline ? CO_WANDB_OFFLINE : cfg->mode;

    if (mode == CO_WANDB_UNSET && is_on("WANDB_DISABLED"))
        mode = CO_WANDB_DISABLED;
    if (mode == CO_WANDB_UNSET)
        CO_TRY(choose(&mode, "WANDB_MODE", choices, CO_COUNT(choices)));
    s->mode = mode == CO_WANDB_UNSET ? CO_WANDB_ONLINE : (co_wandb_mode)mode;
    return CO_OK;
}

static co_err read_resume(wandb_settings *s, const co_wandb_cfg *cfg)
{
    static const struct choice choices[] = {{"allow", CO_WANDB_ALLOW}, {"must", CO_WANDB_MUST},
                                            {"never", CO_WANDB_NEVER}, {"auto", CO_WANDB_AUTO},
                                            {"true", CO_WANDB_AUTO},   {"false", CO_WANDB_RESUME_UNSET}};
    int resume = cfg->resume;

    if (resume == CO_WANDB_RESUME_UNSET)
        CO_TRY(choose(&resume, "WANDB_RESUME", choices, CO_COUNT(choices)));
    s->resume = (co_wandb_resume)resume;
    return CO_OK;
}

static co_err read_seconds(double *out, const char *variable, double fallback)
{
    const char *text = getenv(variable);

    *out = fallback;
    if (!text || !*text)
        return CO_OK;
    if (!co_str_to_f64(text, out) || !(*out >= 0 && *out <= 86400))
        return co_fail(CO_EINPUT, "%s=%s is no number of seconds from 0 to 86400", variable, text);
    return CO_OK;
}

static co_err read_times(wandb_settings *s)
{
    CO_TRY(read_seconds(&s->transmit_s, "WANDB_X_FILE_STREAM_TRANSMIT_INTERVAL", 15));
    CO_TRY(read_seconds(&s->retry_min_s, "WANDB_X_FILE_STREAM_RETRY_WAIT_MIN_SECONDS", 2));
    CO_TRY(read_seconds(&s->retry_max_s, "WANDB_X_FILE_STREAM_RETRY_WAIT_MAX_SECONDS", 60));
    CO_TRY(read_seconds(&s->timeout_s, "WANDB_HTTP_TIMEOUT", 60));
    return CO_OK;
}

/* The first that is not NULL and not "", copied; *out stays NULL if there is none. */
static co_err pick(char **out, const char *key, const char *variable, const char *fallback)
{
    const char *text = key && *key ? key : variable ? getenv(variable) : NULL;

    if (!text || !*text)
        text = fallback;
    if (!text)
        return CO_OK;
    if (!co_utf8_valid(text))
        return co_fail(CO_EINPUT, "%s is not UTF-8", variable ? variable : "a setting of wandb");
    *out = co_strdup(text);
    return *out ? CO_OK : CO_ENOMEM;
}

static co_err read_texts(wandb_settings *s, const co_wandb_cfg *cfg, const co_wandb_facts *facts)
{
    char host[256] = "";

    if (!facts->host)
        gethostname(host, sizeof host - 1);
    const struct {
        char **out;
        const char *key, *variable, *fallback;
    } rows[] = {{&s->base_url, NULL, "WANDB_BASE_URL", PUBLIC_SERVICE},
                {&s->project, cfg->project, "WANDB_PROJECT", facts->task ? facts->task : "uncategorized"},
                {&s->entity, cfg->entity, "WANDB_ENTITY", NULL},
                {&s->group, cfg->group, "WANDB_RUN_GROUP", NULL},
                {&s->name, cfg->name, "WANDB_NAME", NULL},
                {&s->job_type, cfg->job_type, "WANDB_JOB_TYPE", NULL},
                {&s->notes, cfg->notes, "WANDB_NOTES", NULL},
                {&s->id, cfg->id, "WANDB_RUN_ID", NULL},
                {&s->dir, cfg->save_dir, "WANDB_DIR", facts->run_dir},
                {&s->sweep, NULL, "WANDB_SWEEP_ID", NULL},
                {&s->program, NULL, "WANDB_PROGRAM", "cohort"},
                {&s->host, NULL, "WANDB_HOST", facts->host ? facts->host : host},
                {&s->commit, NULL, "WANDB_GIT_COMMIT", NULL},
                {&s->remote, NULL, "WANDB_GIT_REMOTE_URL", NULL},
                {&s->rank, NULL, NULL, facts->rank}};

    for (size_t i = 0; i < CO_COUNT(rows); i++)
        CO_TRY(pick(rows[i].out, rows[i].key, rows[i].variable, rows[i].fallback));
    return CO_OK;
}

static co_err read_tags(wandb_settings *s, const co_wandb_cfg *cfg)
{
    const char *text = cfg->tags && *cfg->tags ? cfg->tags : getenv("WANDB_TAGS");

    s->tags = json_array();
    if (!s->tags)
        return CO_ENOMEM;
    for (const char *at = text; at && *at;) {
        size_t n = strcspn(at, ",");
        const char *from = at + strspn(at, " [\"'"), *to = at + n;
        while (to > from && strchr(" ]\"'", to[-1]))
            to--;
        char *tag = to > from ? co_sprintf("%.*s", (int)(to - from), from) : NULL;
        if (to > from && json_array_append_new(s->tags, tag ? json_string(tag) : NULL) != 0) {
            co_free(tag);
            return CO_ENOMEM;
        }
        co_free(tag);
        at += n + (at[n] == ',');
    }
    return CO_OK;
}

co_err settings_check_id(const char *what, const char *id)
{
    if (*id && strlen(id) <= 128 && !strpbrk(id, "/\\#?%: \t\n") && co_utf8_valid(id) && id[0] != '.')
        return CO_OK;
    return co_fail(CO_EINPUT, "%s=%s: an id has no / \\ # ? %% : and no blanks, and at most 128 characters",
                   what, id);
}

static co_err replace_text(char **text, char *take)
{
    if (!take)
        return CO_ENOMEM;
    co_free(*text);
    *text = take;
    return CO_OK;
}

co_err settings_name_rank(wandb_settings *s, const char *id)
{
    const char *rank = s->rank ? s->rank : "rank0";

    CO_TRY(replace_text(&s->name, co_sprintf("%s-%s", s->name ? s->name : id, rank)));
    if (!s->group)
        CO_TRY(replace_text(&s->group, co_strdup(id)));
    if (!s->job_type)
        CO_TRY(replace_text(&s->job_type, co_strdup(s->rank ? "worker" : "main")));
    if (!s->rank)
        return CO_OK;
    if (s->resume == CO_WANDB_MUST) /* that is rank 0's to check: another rank may be new */
        s->resume = CO_WANDB_ALLOW;
    CO_TRY(replace_text(&s->id, co_sprintf("%s-%s", id, rank)));
    return settings_check_id("the id of a rank's run", s->id);
}

void settings_machine(char *out, size_t size, const char *base_url)
{
    const char *host = strstr(base_url, "://");

    host = host ? host + 3 : base_url;
    snprintf(out, size, "%.*s", (int)strcspn(host, "/"), host);
}

bool settings_is_key(const char *key)
{
    size_t n = strlen(key);

    for (size_t i = 0; i < n; i++)
        if ((unsigned char)key[i] <= ' ' || (unsigned char)key[i] >= 0x7f || key[i] == '"')
            return false;
    return n >= KEY_LEAST && n <= KEY_MOST;
}

static co_err key_from_netrc(char **out, const char *base_url)
{
    char machine[256], *text = NULL, *path = netrc_path();
    size_t len;

    if (!path)
        return CO_ENOMEM;
    settings_machine(machine, sizeof machine, base_url);
    co_err err = co_fs_exists(path) ? co_fs_read(&text, &len, path, NETRC_MOST) : CO_OK;
    if (!err && text) {
        co_errclear();
        *out = netrc_find(text, len, machine);
        err = !*out && *co_errmsg() ? CO_ENOMEM : CO_OK;
        explicit_bzero(text, len);
    }
    co_free(text);
    co_free(path);
    return err == CO_ENOMEM ? err : CO_OK; /* a netrc that cannot be read has no key */
}

static co_err read_key(wandb_settings *s)
{
    const char *given = getenv("WANDB_API_KEY");
    bool from_env = given && *given;

    if (from_env && !(s->key = co_strdup(given)))
        return CO_ENOMEM;
    if (!from_env)
        CO_TRY(key_from_netrc(&s->key, s->base_url));
    if (s->key && !settings_is_key(s->key))
        return co_fail(CO_EINPUT, "%s is no W&B key: a key has at least %d characters and no blanks",
                       from_env ? "WANDB_API_KEY" : "the password for W&B in netrc", KEY_LEAST);
    return CO_OK;
}

co_err settings_read(wandb_settings *out, const co_wandb_cfg *cfg, const co_wandb_facts *facts)
{
    wandb_settings s = {0};
    co_err err = read_mode(&s, cfg);

    if (!err)
        err = read_resume(&s, cfg);
    if (!err)
        err = read_times(&s);
    if (!err)
        err = read_texts(&s, cfg, facts);
    if (!err)
        err = read_tags(&s, cfg);
    if (!err && s.id)
        err = settings_check_id(cfg->id && *cfg->id ? "logger.wandb.id" : "WANDB_RUN_ID", s.id);
    if (!err && strncmp(s.base_url, "http://", 7) != 0 && strncmp(s.base_url, "https://", 8) != 0)
        err = co_fail(CO_EINPUT, "WANDB_BASE_URL=%s does not begin with http:// or https://", s.base_url);
    if (!err)
        err = read_key(&s);
    if (err) {
        settings_fini(&s);
        return err;
    }
    while (s.base_url[strlen(s.base_url) - 1] == '/')
        s.base_url[strlen(s.base_url) - 1] = '\0';
    s.silent = is_on("WANDB_SILENT") || is_on("WANDB_QUIET");
    s.insecure = is_on("WANDB_INSECURE_DISABLE_SSL");
    s.per_rank = cfg->per_rank;
    *out = s;
    return CO_OK;
}

void settings_fini(wandb_settings *s)
{
    char *texts[] = {s->base_url, s->project, s->entity,  s->group, s->name,   s->job_type, s->notes, s->id,
                     s->dir,      s->sweep,   s->program, s->host,  s->commit, s->remote,   s->rank};

    for (size_t i = 0; i < CO_COUNT(texts); i++)
        co_free(texts[i]);
    co_http_wipe(s->key);
    json_decref(s->tags);
    *s = (wandb_settings){0};
}
