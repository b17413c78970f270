/* upload_int.h -- the uploader, seen by upload.c and batch.c only. */
#ifndef CO_WANDB_UPLOAD_INT_H
#define CO_WANDB_UPLOAD_INT_H

#include "wandb/wandb_int.h"

enum { NOTICE_MOST = 8 };

typedef struct sent_channel { /* the thread's alone */
    uint64_t bytes;           /* of the file: sent, or skipped */
    int64_t lines, skip;      /* skip: lines that the service has already */
} sent_channel;

struct uploader {
    upload_job job;
    pthread_t thread;
    atomic_bool give_up, stop_asked;
    pthread_mutex_t lock;
    pthread_cond_t wake, finished;
    /* under the lock */
    char *config, *summary; /* waiting to be sent; NULL: nothing new */
    char **file;
    size_t n_files, sent_files, room;
    bool finishing, done, bases_fresh;
    int exit_code;
    char notice[NOTICE_MOST][600], why[512];
    int n_notices;
    /* the thread's */
    wandb_api api;
    bool asked, base_known, in_trouble, complete_sent;
    bool may_stop; /* an answer of this start did not say `stopped` */
    int64_t base[N_CHANNELS], base_step;
    sent_channel channel[N_CHANNELS];
    size_t named_files; /* of file[]: the service was told that they are there */
    double sent_s;
    int refusals; /* of the next file */
};

/* batch.c: one request of lines */
typedef struct batch {
    sent_channel after[N_CHANNELS];
    size_t named_files;
    char *summary; /* taken from the uploader */
    bool any, more, finishes;
} batch;
co_err batch_build(co_str *body, uploader *u, batch *out, bool last);
void batch_commit(uploader *u, batch *sent); /* the service has it */
void batch_undo(uploader *u, batch *unsent); /* all of it waits again */

#endif
