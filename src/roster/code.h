/* code.h -- the join code: where a job's hosts meet and its token, as text that is read off one screen and
 * typed on another.
 *
 *     CO_TRY(co_meet_listen(&where));                        // the first host
 *     CO_TRY(co_code_of(&code, &where));
 *     co_code_text(text, &code);                             // "81SD7-G2JDK-..."
 *
 *     CO_TRY(co_code_parse(&code, typed));                   // another; CO_EINPUT with the group that is mistyped
 *     co_code_meet(&where, &code);
 *
 * Groups of five: four digits of base32 and one that checks the group and its place. Every wrong character
 * is found, as are two neighbours that changed places. docs/formats/wire.md.
 */
#ifndef CO_ROSTER_CODE_H
#define CO_ROSTER_CODE_H

#include "base/err.h"
#include "roster/roster.h"
#include "net/net.h"

enum { CO_CODE_ADDRS = 4, CO_CODE_TEXT = 200 };
typedef struct co_code {
    int port;                  /* 1 to 65535 */
    int n;                     /* addresses, likeliest first; at least one */
    co_addr at[CO_CODE_ADDRS]; /* their ports do not count */
    bool has_token;            /* false: a job with --insecure */
    co_token token;
} co_code;

void co_code_text(char out[CO_CODE_TEXT], const co_code *c);
co_err co_code_parse(co_code *out, const char *text);

/* The code of a host that listens (co_meet_listen), with the addresses that others most likely reach. */
co_err co_code_of(co_code *out, const co_meet *where);
/* Where a code leads. */
void co_code_meet(co_meet *where, const co_code *c);

/* What the host says about its job to whoever knows the token: `cohort join` runs these words. */
enum { CO_PLAN_WORDS = 4096 }; /* at most */
typedef struct co_job_plan {
    char host[CO_HOST_NAME]; /* who said it */
    char version[32];        /* its version of cohort */
    char cwd[4096];          /* its working directory */
    /* of `cohort launch`: flags, then "--" and the program with its arguments; NULL-terminated */
    char **words;
    int n;
} co_job_plan;
char *co_job_plan_text(const char *version, const char *const *words,
                       int n); /* for co_meet.plan; the caller's, co_free */
/* Asks at `where` and waits for the answer at most patience long; `told` gets a line when it takes long.
 * The connection is kept until co_ask_close: `why` not NULL tells the host why this one does not join. */
typedef struct co_ask co_ask;
co_err co_ask_open(co_ask **out, co_job_plan *plan, const co_meet *where, const co_patience *p,
                   void (*told)(void *, const char *), void *ctx);
void co_ask_close(co_ask *a, const char *why); /* NULL is fine */
void co_job_plan_free(co_job_plan *plan);

#endif
