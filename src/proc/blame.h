/* blame.h -- writes blame.json: the facts of a failure, for programs. The trainer and the launcher both use
 * it.
 *
 * Only its owner may read the file: the last lines that a worker printed may be in it.
 */
#ifndef CO_PROC_BLAME_H
#define CO_PROC_BLAME_H

#include "base/err.h"
#include "base/json.h"

/* Writes "run_id" and the facts to FOLDER/blame.json, atomically. Takes `facts`; NULL means that memory ran
 * out. */
co_err co_blame_write_take(const char *folder, const char *run_id, json_t *facts);

#endif
