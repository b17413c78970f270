/* mistakes.h -- collects what is wrong with a command line, to report all of it at once, one mistake per
 * line.
 *
 *     co_mistakes wrong = {0};
 *     CO_TRY(co_mistake(&wrong, check_this()));  // CO_EINPUT is noted, and the next check runs
 *     CO_TRY(co_mistake(&wrong, check_that()));
 *     co_err err = co_mistakes_tell(&wrong);     // CO_EINPUT with both messages; CO_OK: there was none
 *     co_mistakes_fini(&wrong);
 */
#ifndef CO_BASE_MISTAKES_H
#define CO_BASE_MISTAKES_H

#include "base/err.h"
#include "base/str.h"

typedef struct co_mistakes {
    co_str text; /* a line each, no two alike */
    int n;       /* of them */
    int untold;  /* of these, those that had no room in the text */
} co_mistakes;

/* Notes the message of a CO_EINPUT, which may have several lines, and returns CO_OK. Returns other errors. */
co_err co_mistake(co_mistakes *m, co_err err);
/* CO_EINPUT with all of them; CO_OK: there is none. */
co_err co_mistakes_tell(const co_mistakes *m);
void co_mistakes_fini(co_mistakes *m);

#endif
