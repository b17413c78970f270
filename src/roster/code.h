/* code.h -- the join code: a job's meeting point and its token, as a short text that people read from one
 * screen and type on another.
 *
 *     CO_TRY(co_meet_listen(&where));                        // the first host
 *     CO_TRY(co_code_of(&code, &where));
 *     co_code_text(text, &code);                             // "81SD7-G2JDK-..."
 *
 *     CO_TRY(co_code_parse(&code, typed));                   // another host; CO_EINPUT: a group is mistyped
 *     co_code_meet(&where, &code);
 *
 * A code consists of groups of five: four base32 digits and a check digit, which depends on the digits and
 * on the group's position. Every single wrong character and every pair of swapped neighbours is detected.
 * docs/formats/wire.md has the format.
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
    co_addr at[CO_CODE_ADDRS]; /* their port fields are not used */
    bool has_token;            /* false: a job with --insecure */
    co_token token;
} co_code;

void co_code_text(char out[CO_CODE_TEXT], const co_code *c);
co_err co_code_parse(co_code *out, const char *text);

/* Makes the code of a host that listens (co_meet_listen), with the addresses that others most likely reach.
 */
co_err co_code_of(co_code *out, const co_meet *where);
/* Fills in endpoint, further addresses, token and role from a code. */
void co_code_meet(co_meet *where, const co_code *c);

/* The plan: what a host sends about its job to anybody who has the token. `cohort join` runs these words. */
enum { CO_PLAN_WORDS = 4096 }; /* at most */
typedef struct co_job_plan {
    char host[CO_HOST_NAME]; /* the host that sent it */
    char version[32];        /* that host's version of cohort */
    char cwd[4096];          /* that host's working directory */
    /* arguments of `cohort launch`: flags, "--", the program and its own arguments; NULL-terminated */
    char **words;
    int n;
} co_job_plan;
/* The text for co_meet.plan; the caller owns it (co_free). */
char *co_job_plan_text(const char *version, const char *const *words, int n);
/* Asks the host at `where` for its plan and waits for the answer, as long as `p` allows. `talk` is called
 * with a line of text when that takes long. The connection stays open until co_ask_close, whose `why`, if
 * not NULL, tells that host why this one does not join. */
typedef struct co_ask co_ask;
co_err co_ask_open(co_ask **out, co_job_plan *plan, const co_meet *where, const co_patience *p,
                   void (*talk)(void *, const char *), void *ctx);
void co_ask_close(co_ask *a, const char *why); /* NULL is fine */
void co_job_plan_free(co_job_plan *plan);

#endif
