/* doc.h -- finds the pages of docs/ that messages cite: installed beside the program, or in the source
 * tree. */
#ifndef CO_BASE_DOC_H
#define CO_BASE_DOC_H

#include <limits.h>

/* Writes the path of a page ("data.md") that exists on this machine, or "docs/data.md of cohort's source" if
 * there is none. Returns `out`. */
const char *co_doc(char out[PATH_MAX], const char *page);

#endif
