/* samples_int.h -- samples as pictures, each with the class that was predicted and the right one, and
 * tables of them. */
#ifndef CO_CLI_SAMPLES_INT_H
#define CO_CLI_SAMPLES_INT_H

#include "cli/train_int.h"

/* Room for one sample. */
typedef struct picture {
    int channels, height, width;
    float *x;        /* [channels, height, width] */
    uint8_t *pixels; /* [height, width, channels] */
} picture;

bool picture_fits(const co_io *io); /* samples are pictures of classes */
co_err picture_open(picture *p, const co_io *io);
void picture_close(picture *p);
/* Reads a sample and writes it to `file`, below the run folder. *written is false if the sample cannot be
 * read. */
co_err picture_write(const training *s, picture *p, co_split split, uint32_t id, const char *file,
                     char sha256[65], bool *written);

/* The lines of one evaluation. */
typedef struct shown {
    const char *prefix; /* of the lines' names: "test/" or "" */
    int64_t step;
    json_t *rows; /* of the table so far; the caller's */
} shown;
/* A line `sample_images`, and a row of the table. */
void shown_add(training *s, shown *to, uint32_t id, const char *file, const char *sha256, int64_t chosen,
               int64_t right);
/* The line `table`; its file is media/NAME. */
co_err shown_table(training *s, const shown *from, const char *name);

#endif
