/* over_int.h -- one `cohort train` among several hosts. */
#ifndef CO_CLI_OVER_INT_H
#define CO_CLI_OVER_INT_H

#include "cli/train_int.h"
#include "job/meet.h"

typedef struct over {
    co_train_hosts given;
    bool guest;                /* another host writes the record */
    char *facts;               /* what must be the same on all hosts */
    char keeper[CO_HOST_NAME]; /* the host with the record, by the last view; "": there was none yet */
    bool comes_back;           /* this guest was left by the others, and joins them again */
    json_t *figures;           /* of the other hosts, as they sent them */
    char label[CO_USE_HOST];   /* this host's name in the names of figures; "": there was no view yet */
    json_t *listed; /* the hosts of the last view and those that were lost, as `cohort ps` lists them */
    co_train_hooks record, hooks;
} over;

/* Rehearsal (fault.host_join_s): waits before this host looks for the others. */
void over_come_late(const training *s);
/* After the plan. Does nothing for one host. */
co_err over_open(training *s);
/* What is wrong here is told to the host that waits for this one. */
void over_decline(const training *s);
void over_close(training *s); /* returns when all hosts know that the run is over, or after 2 s */
bool over_guest(const training *s);
void over_list_guest(training *s); /* for `cohort ps` on this host */
const co_train_hooks *over_hooks(training *s);
/* The host with the record: takes what the others have logged; `last`: waits for their last lines. */
void over_listen(training *s, bool last);
void over_add_figures(const training *s, json_t *hosts);
/* over_use.c. A guest: sends what it has measured to the host with the record. */
void over_send_use(training *s); /* call it often */
bool over_can_return(const line *l);
/* A host that comes back looks for the others; it does not keep a roster and wait for them. */
void over_as_returned(co_meet *meet);
_Noreturn void over_return(training *s, const line *l); /* starts this command again, as a newcomer */
/* The last lines of a guest without a record; the exit status. */
int over_report(training *s, const line *l, co_err err);

/* --- between the files of this part --------------------------------------------------------------------- */
enum { LAST_LINES_MS = 3000 }; /* how long the last lines of guests have */
/* In the order in which they are compared: what explains most comes first. NULL: out of memory. */
char *facts_of(const training *s);
/* To the host with the record: a line of text, or a JSON object with the figures of this host. */
void log_line(training *s, const char *text);
co_err listening_turn(void *ctx); /* the hook `turn` of the host with the record */
co_train_hooks guest_hooks(training *s);
bool guest_comes_back(void *ctx);
int returns_so_far(void);                                 /* how often this guest has come back */
void list_hosts(training *s, const co_roster_view *view); /* over_listed.c: for `cohort ps` */
void label_host(training *s, const co_roster_view *view); /* over_use.c */
/* The member of a view that keeps the record. It makes the checkpoints, too, unless it is still being fed: then another
 * makes those that are due (deal.writer), and keeps no record because of that. */
enum { RECORD_KEEPER = 0 };
/* A guest learns from the view whether it keeps the record. If its folder does not open, the first checkpoint
 * tries again. */
void guest_view(training *s, const co_deal *deal, const char *keeper);

#endif
