/* fetch.h -- files from the network: data sets and pretrained weights.
 *
 * A file is written to PATH.part. If the transfer is cut, or the program killed, the next call continues
 * where it ended (Range). When it is whole, its length and checksum are compared, it is synced and renamed to
 * PATH.
 *
 *     const char *urls[] = {"https://example.org/a.zip", NULL};
 *     co_fetch_job job = {.urls = urls, .path = "a.zip", .md5 = "0e33842e24a9c977be4e0107933c0723"};
 *     co_fetch_facts facts;
 *     CO_TRY(co_fetch(&facts, &job));
 */
#ifndef CO_FETCH_FETCH_H
#define CO_FETCH_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* --- one file ------------------------------------------------------------------------------------------- */
/* Progress: bytes so far, and of how many; 0: not known. */
typedef void co_fetch_tell(void *ctx, const char *path, uint64_t done, uint64_t of);

typedef struct co_fetch_job {
    const char *const *urls; /* tried in order, NULL at the end */
    const char *path;
    const char *md5, *sha256; /* in lower case; NULL: not known */
    const char *sum_end;      /* the MD5 stands in the file URL + sum_end (".md5"); NULL: there is none */
    bool linked_sum;          /* the server states a SHA-256 in the header X-Linked-ETag */
    uint64_t size;            /* bytes; 0: not known */
    uint64_t most;            /* a longer file is refused; 0: 1 TiB */
    uint64_t room;            /* bytes that must be free on the disk besides the file: to unpack it */
    int retries;              /* further attempts that bring nothing, per address */
    int retry_ms;             /* pause before the first of them; doubled each time, up to 30 s. 0: 1 s */
    int idle_ms;              /* an attempt fails when nothing has come for so long; 0: 60 s */
    bool anew;                /* neither the file nor its part is used if there */
    co_fetch_tell *tell;      /* may be NULL */
    void *ctx;
} co_fetch_job;

typedef enum { CO_SUM_NONE, CO_SUM_MD5, CO_SUM_SHA256 } co_sum_kind;
typedef struct co_fetch_facts {
    uint64_t bytes;
    uint64_t kept;   /* bytes that an earlier, unfinished download had brought */
    bool was_there;  /* nothing was downloaded */
    co_sum_kind sum; /* what was compared */
    char hex[65];    /* that sum */
    const char *url; /* where it came from; NULL if it was there */
} co_fetch_facts;

/* CO_EFORMAT: the file is not what it should be (length, checksum). CO_EIO: not enough disk, or the server
 * answers with an error. CO_EPEER, CO_ETIMEOUT: cut or silent; the part stays for the next call. CO_EINPUT:
 * libcurl is missing, an address is wrong, or another process is downloading the same file. The message names
 * each address that failed. */
co_err co_fetch(co_fetch_facts *out, const co_fetch_job *job);

/* --- data sets ------------------------------------------------------------------------------------------ */
enum { CO_SET_FILES = 4, CO_SET_URLS = 3, CO_SET_NEEDS = 4 };
typedef struct co_set_file {
    const char *name;
    const char *urls[CO_SET_URLS + 1];
    uint64_t size; /* 0: the publisher changes it now and then */
    const char *md5, *sum_end;
    /* The publisher states the md5. If not: it is the one that public loaders of the set use. */
    bool published;
} co_set_file;

typedef struct co_set {
    const char *name, *alias; /* alias may be NULL */
    const char *title;
    const char *folder; /* what it becomes below the user's folder */
    const char *use;    /* the words that train on it, before data.dir=; NULL: none yet */
    const char *layout; /* what co_data_recognise must say of the folder; NULL: `needs` alone */
    const char *needs[CO_SET_NEEDS + 1]; /* files or folders that must be in it */
    bool unpack;
    uint64_t unpacked; /* bytes, about */
    const char *terms;
    co_set_file files[CO_SET_FILES + 1];
    const char *by_hand; /* not NULL: nothing can be downloaded, and this says why and what to do */
} co_set;

extern const co_set co_sets[];               /* ends with a row without a name */
const co_set *co_set_find(const char *name); /* by name or alias; NULL: no such set */

typedef struct co_set_how {
    const char *dir;    /* the user's folder; made if missing */
    const char *mirror; /* files are at MIRROR/NAME instead; NULL: the table's addresses */
    bool force, keep;   /* download again; keep the archive after unpacking */
    int retries, retry_ms, idle_ms;
    co_fetch_tell *tell; /* may be NULL */
    void (*tell_unpack)(void *ctx, uint64_t files, uint64_t bytes);
    void *ctx;
} co_set_how;

typedef struct co_set_facts {
    char folder[4096];
    bool was_there; /* the folder was there and complete: nothing was done */
    co_fetch_facts file[CO_SET_FILES];
    int n_files;
    uint64_t unpacked_files, unpacked_bytes;
} co_set_facts;
co_err co_set_get(co_set_facts *out, const co_set *set, const co_set_how *how);

/* --- pretrained weights --------------------------------------------------------------------------------- */
typedef struct co_pretrained {
    char path[4096];  /* in the cache; whole and checked */
    const char *name; /* "timm/resnet18.tv_in1k" */
    bool was_there;   /* it was in the cache */
    bool has_sum;     /* the server stated a SHA-256 */
    uint64_t bytes;
} co_pretrained;

typedef struct co_pretrained_row {
    const char *model, *repository;
    const char *normalize; /* how pictures were normalised for them, as data.normalize takes it */
} co_pretrained_row;
extern const co_pretrained_row co_pretrained_rows[]; /* ends with a row without a model */
/* CO_EINPUT: no weights are known for this model. */
co_err co_pretrained_find(const co_pretrained_row **out, const char *model);
/* The weights that timm publishes for it, from $HF_ENDPOINT or huggingface.co, or from the cache. */
co_err co_pretrained_get(co_pretrained *out, const co_pretrained_row *row, co_fetch_tell *tell, void *ctx);

#endif
