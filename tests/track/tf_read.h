/* tf_read.h -- a plain reader of TensorBoard's event files, for the tests: its own sums, its own parser. */
#ifndef TESTS_TRACK_TF_READ_H
#define TESTS_TRACK_TF_READ_H

#include <stddef.h>

/* What a folder's event files show as one run, read in the order of their names, up to where a file is cut: a
 * line "STEP TAG VALUE" each; VALUE is "text", "image", "histogram" or "hparams" for what is no scalar. A
 * START drops the values of its step and later ones; a later value of a step takes the place of an earlier
 * one, and *twice counts those (NULL: not needed). The caller's, free. */
char *tf_shows(const char *folder, int *twice);
/* The same for the folder tensorboard/ of a run folder. */
char *tf_shows_run(const char *run);

#endif
