/* remedy_int.h -- what to do about a rank in trouble: one decision, a pure function of the facts. Seen by
 * this room only.
 *
 * A rank that dies is replaced. One that dies again and again at the same place, or that was killed and is
 * held by the kernel, shows that this host cannot go on. Alone, the run ends. Among several hosts only this
 * host leaves: the others go on with a new view.
 */
#ifndef CO_TRAIN_REMEDY_INT_H
#define CO_TRAIN_REMEDY_INT_H

#include <stdbool.h>

enum { SAME_PLACE_LIMIT = 3 }; /* a slot that dies this often in a row at one place is not replaced again */

typedef enum {
    REMEDY_LET_GO,  /* nobody has to take its place */
    REMEDY_REPLACE, /* a new incarnation */
    REMEDY_LEAVE,   /* this host leaves the view */
    REMEDY_END      /* the run ends with a report */
} remedy;

typedef struct trouble {
    int hosts;    /* members of the view, this one among them */
    int in_a_row; /* deaths of the slot at one place, this one among them */
    bool held;    /* it was killed and does not exit (disk wait) */
    bool done;    /* its work was done: it only had to exit */
} trouble;

remedy remedy_for(const trouble *what);

#endif
