/* say.h -- messages to the user: whole lines on standard error, or to a listener instead.
 */
#ifndef CO_TERM_SAY_H
#define CO_TERM_SAY_H

#include "base/err.h"

void co_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, signed: "cohort: TEXT", or "cohort: HOST: TEXT" after co_say_host. */
void co_notice(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* All hosts of a job write to one screen: from now on each notice names this host. Borrowed; NULL: no
 * host. */
void co_say_host(const char *host);
/* From now on lines go to `to`; NULL: to standard error again. */
void co_say_to(void (*to)(void *ctx, const char *line), void *ctx);
/* Says co_errmsg() as notices, a line each, and returns the exit status for `err`. */
int co_say_error(co_err err);

#endif
