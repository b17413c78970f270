/* images_int.h -- sets of small pictures kept as bytes, and the packed files they come in. */
#ifndef CO_DATA_IMAGES_INT_H
#define CO_DATA_IMAGES_INT_H

#include "data/pictures_int.h"

/* --- packed files
 * ------------------------------------------------------------------------------------------- Bytes of a file
 * in order, unpacked on the way if its name ends in .xz or .gz. Every failure names the file and is
 * CO_EINPUT, or CO_ENOMEM. */
typedef struct packed packed;
co_err packed_open(packed **out, const char *path);
co_err packed_of_bytes(packed **out, const void *bytes, size_t len, const char *name); /* borrows `bytes` */
co_err packed_read(packed *p, void *to, size_t want, size_t *got); /* got < want: that was the end */
/* Reads `want` bytes and then expects the end; if not, the message has both sizes. `before` bytes were read
 * already. */
co_err packed_exactly(packed *p, void *to, size_t want, size_t before);
co_err packed_skip(packed *p, uint64_t n); /* past the end: the next read gives nothing */
/* No more than `most` bytes may come out of a packed file. Without this call the limit is 64 MiB and 50 times
 * the file's length. Reading beyond it fails with a sentence, and packed_is_over is true from then on. */
void packed_limit(packed *p, uint64_t most);
bool packed_is_over(const packed *p);
const char *packed_path(const packed *p);
void packed_close(packed *p); /* NULL is fine */

/* 30730000 as "30,730,000". */
const char *with_commas(char out[32], uint64_t n);

/* --- tar ------------------------------------------------------------------------------------------------ */
typedef struct tar {
    packed *in;      /* borrowed */
    char name[1024]; /* of the file in hand */
    uint64_t size;   /* its bytes */
    uint64_t at;     /* where they begin in the archive, unpacked */
    uint64_t unread; /* of them and the padding after them */
} tar;
/* Goes on to the next regular file; *is_one = false at the end of the archive. Begin with (tar){.in = p}. */
co_err tar_next(tar *t, bool *is_one);
/* The next `len` bytes of it; all parts together: `size` at most. */
co_err tar_part(tar *t, void *to, size_t len);
co_err tar_read(tar *t, void *to); /* the whole file in hand, `size` bytes, once */

/* --- idx ------------------------------------------------------------------------------------------------ */
enum { IDX_SIDE = 28, IDX_MOST = 250000 };
/* Reads and checks the head of a file of pictures (28x28) or labels: *n of them follow, a byte a number. */
co_err idx_head(packed *p, bool pictures, uint32_t *n);
size_t idx_head_len(bool pictures);

/* --- pictures in memory --------------------------------------------------------------------------------- */
struct images_cfg {
    char *dir;
    double val_fraction;
    struct transform_cfg pictures;
};
extern const co_option images_options[];

/* Row r is a picture: [planes,height,width] bytes at bytes + r * stride + skip. Rows to train on come first,
 * then those to test on. */
typedef struct images_spec {
    const char *name;
    uint32_t planes, height, width, classes;
    uint32_t n_train, n_test;
    size_t stride, skip;
    float mean[3], std[3]; /* of byte / 255, by plane */
} images_spec;

typedef struct images {
    co_dataset base;
    images_spec spec;
    uint8_t *bytes;  /* [n_train + n_test][stride]; its first plane * planes after skip are used */
    uint16_t *label; /* [n_train + n_test] */
    uint32_t *place; /* which row: see split_permute; those to test on keep their order */
    transform how;
    picture_use use;
} images;

/* Checks the keys of c and gives memory for the rows, which the caller fills, checks and gives to
 * images_finish. */
co_err images_new(images **out, const images_spec *spec, const struct images_cfg *c);
void images_finish(images *im, double val_fraction); /* splits, fingerprint */
void images_free(images *im);                        /* NULL is fine */
/* Is data.dir a folder? The message names `files`, or the page that does if it is NULL. */
co_err images_check_dir(const char *name, const char *files, const struct images_cfg *c);

/* Files to read whole into memory, each `want` bytes. By as many threads as there are CPUs; none is left when
 * it returns. The failure is that of the first file, in order, that failed. */
struct unpack_job {
    char path[4096];
    uint8_t *to;
    size_t want;
    co_err err;
    char why[1024];
};
co_err unpack_all(struct unpack_job *jobs, int n);

#endif
