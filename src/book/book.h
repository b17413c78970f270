/* book.h -- the log book: what a run did, in a form that can be handed in.
 *
 * A run folder gets book.md (with its plots below plots/) and book.html, the same as one file that needs
 * nothing else. Both are made from the files of the run folder alone (track/run_read.h), so they can be made
 * again at any time, also of a run that failed or still goes on.
 *
 *     CO_TRY(co_book_write("logs/train/runs/DATE", NULL));
 */
#ifndef CO_BOOK_BOOK_H
#define CO_BOOK_BOOK_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* Writes the book of the run in `dir`. With run_id, only if the folder still belongs to the run of that id:
 * else nothing is written. CO_EINPUT: not a run folder. */
co_err co_book_write(const char *dir, const char *run_id);
/* The book of one run as Markdown, its figures as a JSON object; either may be NULL. The object is the
 * caller's. */
co_err co_book_of_run(const char *dir, co_str *markdown, json_t **figures);

/* All runs below `dir`: book.md and book.html in it, a row for each run with a link to its own book, which is
 * made if it is missing. `text` gets the table, `runs` an array of figures. CO_EINPUT: there is no run below
 * it. */
co_err co_book_collect(const char *dir, co_str *text, json_t **runs);

/* Several runs side by side, the first one the base: times per host, speed-up, efficiency, accuracy, curves
 * over one another, and a sentence for each difference. Writes book.md, book.html and plots/ below `to`. */
co_err co_book_compare(const char *const *dirs, int n, const char *to, co_str *text, json_t **comparison);
enum { CO_BOOK_COMPARED = 12 };

/* Does the key look as if its value were a secret? Such values are not shown. */
bool co_book_is_secret(const char *key);

#endif
