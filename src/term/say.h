/* say.h -- messages to the user: whole lines on standard error, or to a listener instead.
 */
#ifndef CO_TERM_SAY_H
#define CO_TERM_SAY_H

#include "base/err.h"

void co_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* From now on lines go to `to`; NULL: to standard error again. */
void co_say_to(void (*to)(void *ctx, const char *line), void *ctx);
/* Says co_errmsg(), and returns the exit status for `err`. */
int co_say_error(co_err err);

#endif
