/* doc.h -- where the pages of docs/ are that messages cite: installed beside the program, or in the source tree. */
#ifndef CO_BASE_DOC_H
#define CO_BASE_DOC_H

#include <limits.h>

/* The path of a page ("data.md") that exists here; "docs/data.md of cohort's source" if none does. Returns `out`. */
const char *co_doc(char out[PATH_MAX], const char *page);

#endif
