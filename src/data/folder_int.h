/* folder_int.h -- pictures in folders: which files there are, and what they are samples of. */
#ifndef CO_DATA_FOLDER_INT_H
#define CO_DATA_FOLDER_INT_H

#include "base/alloc.h"
#include "base/hash.h"
#include "data/data_int.h"
#include "data/decode_int.h"

/* --- what is there -------------------------------------------------------------------------------------- */
typedef enum { ENTRY_PICTURE, ENTRY_TEXT, ENTRY_FOLDER } entry_kind;

typedef struct entry {
    uint64_t at;   /* in block, or in the archive */
    uint64_t size; /* bytes */
    uint32_t path; /* in names, from root */
    entry_kind kind;
} entry;

/* The files of a folder or of a tar archive: pictures by the end of their names, and the texts that label
 * them. Paths stand in one piece of memory, and so do the files themselves if they are small enough.
 * Read-only once loaded. */
typedef struct listing {
    char *root; /* the folder or archive, for messages and for opening what lies in a folder */
    char *names;
    size_t names_len, names_room;
    entry *entries;
    size_t n, room;
    uint64_t bytes;                    /* of all pictures */
    uint64_t passed_over;              /* files that are no pictures nor texts; hidden ones do not count */
    uint32_t passed_path;              /* the first of them */
    uint64_t unsupported[UNSUPPORTED]; /* pictures of formats that are not read, by unsupported_endings */
    bool is_archive;
    int fd; /* of an archive that is not in memory; else -1 */
    size_t block_bytes;
    uint8_t *block; /* the archive, or the pictures of the folder one after the other; NULL: on disk */
} listing;

/* `dir` is a folder, an archive (.tar, .tar.xz, .tar.gz) or a folder with nothing in it but one archive. At
 * most `in_memory` bytes are kept in memory. CO_EINPUT says what is wrong. */
co_err listing_open(listing *out, const char *dir, uint64_t in_memory);
void listing_close(listing *l);
static inline const char *listing_path(const listing *l, uint32_t path)
{
    return l->names + path;
}

enum { PICTURE_FILE_MOST = 256 << 20 };
#define ENTRY_UNREAD UINT64_MAX /* `at` of a file that is not in the block, nor in an archive */
/* The bytes of a file: those in the block, or read into `room` [size]. NULL: it cannot be read, co_errmsg and
 * errno say why. */
const uint8_t *listing_read(const listing *l, uint64_t at, uint64_t size, uint32_t path, void *room);
/* The same for `len` bytes of it after the first `skip`. */
const uint8_t *listing_read_part(const listing *l, uint64_t at, uint64_t skip, uint64_t len, uint32_t path,
                                 void *room);

/* "12 .tiff files, 3 .heic files"; "": there are none. */
const char *listing_unsupported(const listing *l, char out[256]);

co_err listing_add(listing *l, const char *path, entry_kind kind, uint64_t at, uint64_t size);
co_err listing_take(listing *l, const char *path, uint64_t at, uint64_t size); /* adds it if it is of use */
/* A pack (docs/formats/pack.md), by its index. */
co_err listing_open_pack(listing *l, uint64_t in_memory);
/* `size` bytes at `at` of a file. False: co_errmsg says why, naming `path`. */
bool listing_read_fd(int fd, uint8_t *to, uint64_t size, uint64_t at, const char *path);
co_err listing_walk(listing *l); /* the folder `root` */

/* --- what it means -------------------------------------------------------------------------------------- */
typedef struct sample {
    uint64_t at;
    uint32_t size, path, label;
} sample;

typedef struct folder_index {
    sample *samples; /* those to train on, then val, then test */
    uint32_t count[CO_SPLIT_COUNT];
    const char **classes; /* names of their folders, sorted: a label is a place here */
    const char **titles;  /* names for people, from words.txt; NULL: there are none */
    uint32_t n_classes;
    size_t base_len; /* of the path of the one folder that everything is in: 0, or it ends in / */
    co_pool pool;    /* holds the names */
} folder_index;

/* What a data set expects of its folders. All zero: folders of the user's own. */
typedef struct folder_rules {
    bool annotated; /* val/ may be flat: its val_annotations.txt gives the classes, wnids.txt lists them */
    bool has_parts; /* train/ and val/ must both be there */
    const char *const *classes; /* the classes, sorted, NULL-terminated; NULL: whatever folders train/ has */
    const char *make_classes;   /* how a flat val/ is put into class folders, for a message; NULL: by hand */
} folder_rules;

/* The fractions are used where train, val and test have no folders of their own. */
co_err folder_index_make(folder_index *out, const listing *l, const folder_rules *rules, double val_fraction,
                         double test_fraction);
void folder_index_fini(folder_index *x);
/* Hashes a sample of the bytes of all n files: pieces at places that only the files' sizes decide. Skips
 * files that cannot be read. */
void folder_sample_bytes(co_sha256 *h, const listing *l, const sample *files, uint32_t n);

/* --- sets of this kind ---------------------------------------------------------------------------------- */
struct folder_cfg {
    char *dir;
    double val_fraction, test_fraction;
    int64_t cache_mb;
    int on_error; /* ON_ERROR_STOP, or leave it out */
    int decode;   /* DECODE's */
    struct transform_cfg pictures;
};
enum { ON_ERROR_STOP = 0 };
enum { DECODE_FULL, DECODE_REDUCED };

/* Rows that all of their tables have. */
/* clang-format off */
#define FOLDER_DIR(HELP) \
    {"dir", CO_OPT_STR, offsetof(struct folder_cfg, dir), "null", HELP, .alias = "data.data_dir", \
     .path = true}
#define FOLDER_OPTIONS \
    {"cache_mb", CO_OPT_INT, offsetof(struct folder_cfg, cache_mb), "1024", \
     "files are kept in memory if all of them are not more than this, in MiB", .min = 0, .max = 1 << 30, \
     .may_change = true, .of_host = true}, \
    {"on_error", CO_OPT_ENUM, offsetof(struct folder_cfg, on_error), "stop", \
     "a file that cannot be decoded ends the run, or is left out and counted", .choices = "stop|skip", \
     .may_change = true}, \
    {"decode", CO_OPT_ENUM, offsetof(struct folder_cfg, decode), "full", \
     "reduced: JPEG files are decoded at 1/2, 1/4 or 1/8 of their size where the sample needs no more; " \
     "faster, other pixels", .choices = "full|reduced"}, \
    TRANSFORM_OPTIONS(struct folder_cfg, pictures)
/* clang-format on */

typedef struct folder_set {
    co_dataset_def def; /* the first: folder_set_open casts */
    folder_rules rules;
    const char *expects;     /* what data.dir is to have, for a message */
    const float *mean, *std; /* of byte / 255, by colour */
    /* all pictures have the size of the first: one of another size is a bad sample, and says so */
    bool one_size;
    /* without data.crop and data.resize: 224 x 224, by ImageNet's recipe, whatever the size */
    bool is_imagenet;
} folder_set;
extern const folder_set imagefolder_set, tinyimagenet_set, cinic10_set, imagenet_set;
co_err folder_set_open(co_dataset **out, const co_dataset_def *def, const void *cfg);

/* --- for folder_*.c ------------------------------------------------------------------------------------- */
/* The files whose path begins with prefix, and the folders that they are in. */
typedef struct folder_part {
    const char *prefix; /* "", or ends in / */
    const char **classes;
    uint32_t n_classes;
    uint64_t flat;     /* pictures that lie in no folder */
    const entry *text; /* its val_annotations.txt */
    bool is_one_pile;  /* its pictures are in no folder, or all in one folder images/ */
} folder_part;

typedef struct folder_work {
    folder_index *x;
    const listing *l;
    const folder_rules *rules;
    const char *base; /* prefix of all: "", or the one folder that everything is in */
    size_t room, n;   /* of x->samples */
} folder_work;

/* What lies under a prefix. The caller frees p->classes, also after a failure. */
co_err part_look(folder_part *p, const folder_work *w, const char *prefix);
bool part_has(const folder_part *p, const char *name); /* a folder of this name */
/* The part's name as the user knows it, without its last /. */
const char *part_shown(char out[512], const folder_work *w, const char *prefix);
/* Adds the pictures of the part to the samples: by their folders, or by its text. */
co_err part_take_classes(folder_work *w, const folder_part *p);
co_err part_take_labelled(folder_work *w, const folder_part *p);

/* Place of a class among `n` sorted names; -1: it is not there. */
int64_t class_of(const char *const *classes, uint32_t n, const char *name, size_t len);

/* Lines NAME<TAB>CLASS...: the class of each file of a folder. */
typedef struct labels {
    char *text;
    struct label_row {
        const char *name;
        uint32_t label;
    } * rows; /* sorted by name */
    size_t n;
} labels;
co_err labels_open(labels *out, const listing *l, const entry *e, const char *const *classes,
                   uint32_t n_classes);
const struct label_row *labels_find(const labels *t, const char *name);
void labels_close(labels *t);

/* The lines of wnids.txt must be the classes, in any order.
 * CO_EINPUT names one that is missing on either side. */
co_err wnids_check(const listing *l, const entry *e, const char *const *classes, uint32_t n_classes);

/* Lines CLASS<TAB>NAME, NAME...: titles[i] is the first name of classes[i], or classes[i]. */
co_err titles_read(const char **titles, const listing *l, const entry *e, const char *const *classes,
                   uint32_t n_classes, co_pool *pool);

#endif
