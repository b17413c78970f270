/* tensorboard_int.h -- what the files of the tensorboard tracker share. The messages are those of TensorBoard's
 * event.proto and summary.proto; the names of their fields stand beside the numbers. */
#ifndef CO_TRACK_TENSORBOARD_INT_H
#define CO_TRACK_TENSORBOARD_INT_H

#include "base/proto.h"
#include "track/track_int.h"

/* tensorboard_summary.c: a line of the record as a Summary; *made is false if there is nothing to show in it.
 * `dir` is the run folder, where the files of images are. */
co_err summary_of_line(co_str *summary, bool *made, const json_t *line, const char *dir);
/* Begins a Summary.Value under a tag; end it with co_proto_end and what this returned. */
size_t tb_value_begin(co_str *summary, const char *tag);
/* Adds a Summary.Value: Markdown under a tag. */
void summary_add_text(co_str *summary, const char *tag, const char *text);

/* tensorboard_hparams.c: the settings of a run (run_start), and how it ended (run_end), for the HParams page. */
void hparams_start(co_str *summary, const json_t *line, const char *name);
bool hparams_end(co_str *summary, const json_t *line); /* false: the run may go on, so nothing is said */

/* tensorboard_files.c: which lines of the record the folder's event files hold already. */
typedef struct events_found {
    int64_t upto;     /* bytes of the record; 0: none */
    uint64_t of;      /* which record it is */
    int64_t last_sec; /* the time in the newest file's name; 0: there is no file */
} events_found;
/* A file whose writer was killed is cut after its last mark: what follows is written again, by another file. */
co_err events_find(events_found *out, const char *folder);
/* The last mark in the bytes of an event file; returns where it ends, 0: there is none. */
size_t events_last_mark(events_found *out, const char *bytes, size_t len);
/* Adds an Event as a record; `what` is the message in its field `field`. */
void tb_event_add(co_str *out, double t, int64_t step, int field, const co_str *what);
/* The mark that ends every write: an Event with a SessionLog of status CHECKPOINT, which readers pass over. */
void mark_add(co_str *out, double t, const events_found *upto);

#endif
