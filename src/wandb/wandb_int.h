/* wandb_int.h -- what the files of this room share. */
#ifndef CO_WANDB_WANDB_INT_H
#define CO_WANDB_WANDB_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/proto.h"
#include "base/seen.h"
#include "base/str.h"
#include "net/http.h"
#include "wandb/wandb.h"

/* The version of wandb whose files and requests these are. */
#define WANDB_VERSION  "0.31.0"
#define STEP_METRIC    "global_step"
#define PUBLIC_SERVICE "https://api.wandb.ai"

enum { NETRC_MOST = 1 << 20, KEY_LEAST = 16 };

/* --- spool.c: a file that is written in memory and flushed. One thread writes; another may read the
 * file. --- */
typedef struct spool {
    char *path;
    int fd;
    co_str pending;
    atomic_ullong written; /* bytes on the disk */
} spool;
co_err spool_open(spool *sp, const char *dir, const char *name); /* replaces a file of that name */
void spool_close(spool *sp);                                     /* after a failed open, too */
/* CO_EIO: the rest stays in memory for the next flush. CO_EFAIL: too much has gathered there. */
co_err spool_flush(spool *sp);

/* --- log.c: the framing of run-ID.wandb --- */
void log_head(spool *sp);
void log_record(spool *sp, const char *data, size_t len);

/* --- items.c: keys and their values as JSON text --- */
typedef struct item {
    char *key, *json;
} item;
typedef struct item_list {
    item *at;
    size_t n, room, guess; /* guess: where the next key is likely to be */
} item_list;
/* Replaces the value of a key that is there. CO_ENOMEM. */
co_err items_set(item_list *list, const char *key, const char *json);
co_err items_set_num(item_list *list, const char *key, double value);
bool items_have(item_list *list, const char *key);
void items_clear(item_list *list);
void items_fini(item_list *list);
void items_json(co_str *out, const item_list *list); /* "a":1,"b":2 without braces */
/* wandb's JSON: NaN, Infinity and -Infinity are numbers. */
void json_num(co_str *out, double x);
void json_quote(co_str *out, const char *text, size_t len);
/* Numbers in the shortest form that reads back. What is nested deeper than `depth` becomes null. */
enum { JSON_DEPTH = 32 };
void json_write(co_str *out, const json_t *v, int depth);

/* --- settings.c --- */
typedef struct wandb_settings {
    char *base_url, *key; /* without a slash at its end; NULL: no key was found */
    char *project, *entity, *group, *name, *job_type, *notes, *id, *dir, *sweep, *program, *host, *commit,
        *remote;
    char *rank;     /* whose run this is; NULL: rank 0's, or that of all ranks */
    double started; /* when rank 0's run began; 0: this is rank 0's */
    json_t *tags;   /* array of strings */
    co_wandb_mode mode;
    co_wandb_resume resume;
    bool silent, insecure, per_rank;
    double transmit_s, retry_min_s, retry_max_s, timeout_s;
} wandb_settings;
/* Keys of the configuration win over variables of the environment. CO_EINPUT: a variable has a value that
 * means nothing. */
co_err settings_read(wandb_settings *out, const co_wandb_cfg *cfg, const co_wandb_facts *facts);
void settings_fini(wandb_settings *s);
/* With per_rank: names the run after its rank and puts it into the group of the run `id`, where the user
 * has not said otherwise. */
co_err settings_name_rank(wandb_settings *s, const char *id);
bool settings_is_key(const char *key);
co_err settings_check_id(const char *what, const char *id);
/* "api.wandb.ai" of "https://api.wandb.ai/": what netrc calls the machine, with the port if there is one */
void settings_machine(char *out, size_t size, const char *base_url);

/* --- netrc.c --- */
/* The password of `machine`; NULL: there is none. The caller's, to be wiped and freed. Any bytes may be
 * given. */
char *netrc_find(const char *text, size_t len, const char *machine);
/* The text with the entry of `machine` replaced or added. */
void netrc_put(co_str *out, const char *text, size_t len, const char *machine, const char *login,
               const char *password);
char *netrc_path(void); /* $NETRC, or ~/.netrc, or ~/_netrc if that is there. The caller's */

/* --- records.c: the transaction log --- */
typedef struct record_log {
    spool out;
    co_str record; /* room for one record */
    int64_t n;
} record_log;
typedef struct machine_facts {
    char os[256], root[1024], executable[1024], writer[40];
    int cpus;
} machine_facts;
void entry_header(record_log *log);
void entry_run(record_log *log, const wandb_settings *set, const json_t *config, double start);
void entry_config(record_log *log, const json_t *config);
void entry_environment(record_log *log, const wandb_settings *set, const machine_facts *m, double start);
void entry_telemetry(record_log *log);
void entry_metrics(record_log *log);
void entry_history(record_log *log, int64_t row_step, const item_list *items);
void entry_summary(record_log *log, const item_list *items, int64_t runtime_s);
void entry_stats(record_log *log, double t, const item_list *items);
void entry_output(record_log *log, double t, const char *line, size_t len);
enum { FILE_OTHER = 0, FILE_WANDB = 1, FILE_MEDIA = 2 };
void entry_file(record_log *log, const char *path, int type);
void entry_end(record_log *log, int exit_code, int64_t runtime_s);

/* --- rows.c: scalars become rows --- */
typedef struct row_maker {
    item_list row;     /* the open row */
    int64_t step;      /* of the open row */
    double t;          /* of its last scalar */
    bool open;         /* a row is open */
    int64_t last_step; /* the _step of the last closed row; -1: none */
    co_seen seen;      /* which (step, name) were taken */
} row_maker;
int64_t rows_step(const row_maker *r); /* the _step of the open row */
/* The same; the row counts as closed. */
int64_t rows_close(row_maker *r);
void rows_fini(row_maker *r);

/* --- upload.c: the thread that sends --- */
typedef struct uploader uploader;
enum { CH_HISTORY, CH_EVENTS, CH_OUTPUT, N_CHANNELS };
typedef struct saved_run { /* what the run folder keeps: run.json */
    char *id, *folder;     /* of this run; the name of the folder that has its files */
    const char *rank;      /* as in the settings, which it belongs to */
    double started;
    bool known;               /* the server has been asked, and the next members hold: */
    int64_t base[N_CHANNELS]; /* lines that the run had on the server before this run folder began */
    int64_t base_step;        /* added to every _step */
} saved_run;
typedef struct upload_job {
    const wandb_settings *set;
    const char *files; /* the folder of the run's files */
    spool *channel;    /* [N_CHANNELS] lines to send */
    saved_run *saved;  /* the uploader fills the bases; the tracker saves them */
    double started;
} upload_job;
co_err upload_start(uploader **out, const upload_job *job);
/* What to send next. Texts are copied. */
co_err upload_config(uploader *u, const char *config_json);
co_err upload_summary(uploader *u, const char *summary_json);
co_err upload_file(uploader *u, const char *name); /* below `files` */
/* The lines that are in the channels are all. `exit_code` -1: the run did not end, so it is not marked as
 * finished. */
void upload_finish(uploader *u, int exit_code);
/* Waits until everything is sent, at most until `until_s` (co_now_s). CO_ETIMEOUT: the message gives the
 * reason and `secs`, how long the caller has waited in all. */
co_err upload_wait(uploader *u, double until_s, double secs);
void upload_stop(uploader *u);                          /* gives up at once; NULL is fine */
bool upload_knows(uploader *u, saved_run *bases);       /* once: the bases are known and should be saved */
bool upload_stop_asked(uploader *u);                    /* somebody has asked since this start began */
bool upload_notice(uploader *u, char *out, size_t len); /* something that the user should hear, once each */

/* --- api.c: requests to the service. One thread. --- */
typedef struct wandb_api {
    co_http *http;
    const wandb_settings *set;
    char *auth;             /* the header with the key */
    char *entity, *project; /* as the server spells them */
    const atomic_bool *give_up;
    double retry_after_s; /* what the last answer asked for; -1: nothing */
    bool stopped;         /* the last answer to lines said that somebody wants the run to stop */
} wandb_api;
typedef struct run_status {
    bool exists;
    int64_t lines[N_CHANNELS], last_step;
} run_status;
co_err api_open(wandb_api *api, const wandb_settings *set, const atomic_bool *give_up);
void api_close(wandb_api *api);
/* CO_EINPUT: the service refuses (key, project ...), and asking again will not help soon. Other errors:
 * later. */
co_err api_status(wandb_api *api, run_status *out);
co_err api_upsert(wandb_api *api, const char *config_json, const char *summary_json);
/* CO_EFAIL: the file cannot be read. */
co_err api_send_file(wandb_api *api, const char *folder, const char *name);
co_err api_stream(wandb_api *api, const char *body, size_t len);
bool api_says_stop(const char *answer, size_t len); /* any bytes */
co_err api_viewer(wandb_api *api, char *entity, size_t size);
/* Reads an answer to a GraphQL request: its `data`. CO_EFORMAT, or CO_EINPUT with the service's own words. */
co_err api_reply(json_t **data, const char *body, size_t len, const char *what);
void api_status_of(run_status *out, const json_t *data);

/* --- folder.c: names and small files of the run's folder --- */
co_err folder_saved(saved_run *out, const wandb_settings *set,
                    const char *run_dir); /* read, or made and written */
co_err folder_save(const saved_run *saved, const char *run_dir);
void saved_fini(saved_run *saved);
void folder_machine(machine_facts *out);
co_err folder_metadata(const char *files, const wandb_settings *set, const machine_facts *m, double start);
co_err folder_config(const char *files, const json_t *config);
char *folder_config_json(const json_t *config, const machine_facts *m, const wandb_settings *set, double start);
json_t *folder_nest(const json_t *flat); /* {"a.b": 1} -> {"a": {"b": 1}} */

#endif
