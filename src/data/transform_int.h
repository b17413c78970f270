/* transform_int.h -- from a picture's bytes to a sample: sizes, crops, colours, normalisation, mixing.
 *
 * Definitions and defaults are torchvision's, with the arithmetic and the rounding that its functions have on
 * Pillow's pictures (what ImageFolder gives them): every step but normalising, erasing and mixing goes from
 * 8-bit pixels to 8-bit pixels. In this order, each only if its key asks for it:
 *
 *     training     resize -> pad, random crop; or, with random_resized_crop, that on the picture as it comes
 *                  -> flip -> colour jitter -> TrivialAugmentWide -> normalise -> erase
 *                  -> mix, a slice at once
 *     evaluation   resize -> centre crop -> normalise
 *
 * What is drawn (a box, a flip, a factor) is a function of (seed, epoch, id) and stands in a struct of its
 * own, so that torchvision can be shown it too; applying it is pure. A set uses it so:
 *
 *     struct my_cfg { char *dir; struct transform_cfg pictures; };
 *     static const co_option options[] = {{"dir", ...}, TRANSFORM_OPTIONS(struct my_cfg, pictures), {0}};
 *
 *     // at open
 *     CO_TRY(transform_init(&t, &c->pictures, 0, 0, 3, imagenet_mean, imagenet_std));
 *     transform_io(&t, &d->io);
 *
 *     // in fill, for each sample
 *     struct drawn drawn;
 *     bool vary = transform_draw(&drawn, &t, draw, id[i], p.height, p.width);
 *     transform_apply(x + i * t.numbers, &t, p, vary ? &drawn : NULL);
 *     // once, when all are in
 *     transform_mix(&t, draw, id, n, dst);
 *
 * A transform is read-only after init and shared by all threads. Scratch memory belongs to the thread, only
 * grows, and goes with it. Fill's time is for the set to account (draw->times).
 */
#ifndef CO_DATA_TRANSFORM_INT_H
#define CO_DATA_TRANSFORM_INT_H

#include "data/data_int.h"

/* 8-bit pixels, interleaved: the first of pixel (y, x) is at bytes + y * stride + x * planes. */
typedef struct picture {
    const uint8_t *bytes; /* [height,width,planes] */
    uint32_t height, width, planes;
    size_t stride; /* bytes from one row to the next */
    /* Decoded at reduced size (reduce.c): how many times smaller, and the file's size. 0: it was not. */
    uint32_t reduced_by, full_height, full_width;
} picture;

static inline uint32_t picture_full_height(const picture *p)
{
    return p->full_height ? p->full_height : p->height;
}

static inline uint32_t picture_full_width(const picture *p)
{
    return p->full_width ? p->full_width : p->width;
}

enum { PICTURE_SIDE_MAX = 65535 }; /* more is refused by whoever decodes */

/* The options of every set of pictures: a set embeds this struct in its cfg and TRANSFORM_OPTIONS in its
 * table. */
struct transform_cfg {
    int augment;  /* TRANSFORM_AUGMENT's */
    int pad_mode; /* TRANSFORM_PAD's */
    char *resize, *crop, *pad, *flip, *scale, *ratio, *normalize;
    bool random_resized_crop, trivial_augment, eval_flip;
    double brightness, contrast, saturation, hue, erase, mixup, cutmix;
};

/* Check what the user gave for a key; `key` is its full name. */
co_err transform_check_size(const char *key, const char *value);
co_err transform_check_pad(const char *key, const char *value);
co_err transform_check_flip(const char *key, const char *value);
co_err transform_check_scale(const char *key, const char *value);
co_err transform_check_ratio(const char *key, const char *value);
co_err transform_check_normalize(const char *key, const char *value);

#define TRANSFORM_AT(STRUCT, FIELD, NAME) (offsetof(STRUCT, FIELD) + offsetof(struct transform_cfg, NAME))
/* Rows for the table of STRUCT, which has a struct transform_cfg FIELD. */
/* clang-format off */
#define TRANSFORM_OPTIONS(STRUCT, FIELD) \
    {"augment", CO_OPT_ENUM, TRANSFORM_AT(STRUCT, FIELD, augment), "none", \
     "a recipe for what is not set below: cifar (pad 4, crop, flip), imagenet (random resized crop, flip)", \
     0, 0, "none|cifar|imagenet"}, \
    {"resize", CO_OPT_STR, TRANSFORM_AT(STRUCT, FIELD, resize), "null", \
     "size before the crop: 256 (the shorter side) or 224x224 (height x width)", \
     .check = transform_check_size}, \
    {"crop", CO_OPT_STR, TRANSFORM_AT(STRUCT, FIELD, crop), "null", \
     "size of the sample: 224 or 224x192; random in training, central otherwise", \
     .check = transform_check_size}, \
    {"pad", CO_OPT_STR, TRANSFORM_AT(STRUCT, FIELD, pad), "null", \
     "pixels put around a picture before its random crop", \
     .check = transform_check_pad}, \
    {"pad_mode", CO_OPT_ENUM, TRANSFORM_AT(STRUCT, FIELD, pad_mode), "black", \
     "what those pixels are: black, or the picture mirrored at its edge", \
     0, 0, "black|reflect"}, \
    {"random_resized_crop", CO_OPT_BOOL, TRANSFORM_AT(STRUCT, FIELD, random_resized_crop), "false", \
     "in training, resize a random box of the picture to data.crop"}, \
    {"scale", CO_OPT_STR, TRANSFORM_AT(STRUCT, FIELD, scale), "0.08:1", \
     "area of that box, least and most, as part of the picture", \
     .check = transform_check_scale}, \
    {"ratio", CO_OPT_STR, TRANSFORM_AT(STRUCT, FIELD, ratio), "0.75:1.3333333333333333", \
     "width / height of that box, least and most", \
     .check = transform_check_ratio}, \
    {"flip", CO_OPT_STR, TRANSFORM_AT(STRUCT, FIELD, flip), "null", \
     "how often left and right are swapped in training: true (0.5), false, a probability, or alternate: " \
     "at random in the first epoch, then in every second epoch", \
     .check = transform_check_flip}, \
    {"eval_flip", CO_OPT_BOOL, TRANSFORM_AT(STRUCT, FIELD, eval_flip), "false", \
     "in evaluation and prediction, show the model each picture and its mirror image, " \
     "and take the mean of both answers"}, \
    {"brightness", CO_OPT_FLOAT, TRANSFORM_AT(STRUCT, FIELD, brightness), "0", \
     "colour jitter: brightness times 1 - b to 1 + b", 0, 100}, \
    {"contrast", CO_OPT_FLOAT, TRANSFORM_AT(STRUCT, FIELD, contrast), "0", \
     "colour jitter: contrast times 1 - c to 1 + c", 0, 100}, \
    {"saturation", CO_OPT_FLOAT, TRANSFORM_AT(STRUCT, FIELD, saturation), "0", \
     "colour jitter: saturation times 1 - s to 1 + s", 0, 100}, \
    {"hue", CO_OPT_FLOAT, TRANSFORM_AT(STRUCT, FIELD, hue), "0", \
     "colour jitter: hue turned by -h to h of the circle", 0, 0.5}, \
    {"trivial_augment", CO_OPT_BOOL, TRANSFORM_AT(STRUCT, FIELD, trivial_augment), "false", \
     "TrivialAugmentWide: one of 14 operations of random strength on each picture"}, \
    {"erase", CO_OPT_FLOAT, TRANSFORM_AT(STRUCT, FIELD, erase), "0", \
     "how often a random box is erased in training", 0, 1}, \
    {"mixup", CO_OPT_FLOAT, TRANSFORM_AT(STRUCT, FIELD, mixup), "0", \
     "MixUp within a slice: alpha of its Beta distribution; 0: none", 0, 1000}, \
    {"cutmix", CO_OPT_FLOAT, TRANSFORM_AT(STRUCT, FIELD, cutmix), "0", \
     "CutMix within a slice: alpha of its Beta distribution; " \
     "with data.mixup too, each slice gets one of them", \
     0, 1000}, \
    {"normalize", CO_OPT_STR, TRANSFORM_AT(STRUCT, FIELD, normalize), "null", \
     "mean and std taken out: imagenet, cifar, tinyimagenet, cinic10, none, or numbers as " \
     "0.5:0.5:0.5/1:1:1; null: the set's own", \
     .check = transform_check_normalize}
/* clang-format on */

enum { TRANSFORM_PAD_BLACK, TRANSFORM_PAD_REFLECT };
enum { TRANSFORM_AUGMENT_NONE, TRANSFORM_AUGMENT_CIFAR, TRANSFORM_AUGMENT_IMAGENET };
extern const float imagenet_mean[3], imagenet_std[3], tinyimagenet_mean[3], tinyimagenet_std[3],
    cinic10_mean[3], cinic10_std[3];

typedef struct transform {
    uint32_t planes, height, width; /* of the sample */
    size_t numbers;                 /* planes * height * width */
    bool plain;                     /* a sample is a picture's own pixels through `value`, always; */
    bool plain_eval;                /* or at least in evaluation */
    bool mix;
    float value[3][256]; /* of a byte in a plane: (byte / 255 - mean) / std */
    /* the rest is transform*.c's own */
    uint32_t resize_short, resize_h, resize_w; /* 0: not */
    bool crops;      /* data.crop, given or of a recipe; else the picture's size is the sample's */
    bool random_box; /* random_resized_crop */
    bool trivial;
    bool alternate; /* flips by the parity of the epoch */
    bool reflect;   /* what pads is the picture, mirrored */
    bool eval_flip;
    bool reduced; /* data.decode: JPEG files may be decoded at reduced size */
    uint32_t pad;
    double scale[2], log_ratio[2], ratio[2];
    double flip, erase, jitter[4], mixup, cutmix;
} transform;

/* For pictures of in_h x in_w, or of any size (0), with these mean and std unless data.normalize gives
 * others. CO_EINPUT names the key that is wrong or missing. Nothing to free. */
co_err transform_init(transform *t, const struct transform_cfg *cfg, uint32_t in_h, uint32_t in_w,
                      uint32_t planes, const float *mean, const float *std);
void transform_io(const transform *t, co_io *io); /* sets x and mix */
/* All settings beyond mean and std, as text for a fingerprint; "" if there are none. */
void transform_says(const transform *t, char out[512]);

/* --- drawing and applying ------------------------------------------------------------------------------- */
typedef struct box {
    int32_t top, left, height, width; /* pixels outside the picture: see transform.reflect */
} box;

/* The operations of TrivialAugmentWide, in torchvision's order. */
enum trivial_op {
    TRIVIAL_IDENTITY,
    TRIVIAL_SHEAR_X,
    TRIVIAL_SHEAR_Y,
    TRIVIAL_TRANSLATE_X,
    TRIVIAL_TRANSLATE_Y,
    TRIVIAL_ROTATE,
    TRIVIAL_BRIGHTNESS,
    TRIVIAL_COLOR,
    TRIVIAL_CONTRAST,
    TRIVIAL_SHARPNESS,
    TRIVIAL_POSTERIZE,
    TRIVIAL_SOLARIZE,
    TRIVIAL_AUTO_CONTRAST,
    TRIVIAL_EQUALIZE,
    TRIVIAL_OPS
};
enum { TRIVIAL_BINS = 31 };

enum { JITTER_BRIGHTNESS, JITTER_CONTRAST, JITTER_SATURATION, JITTER_HUE, JITTER_OPS };

struct drawn {
    box crop; /* in the picture (after resize, without the padding: top may be -pad); height 0: none */
    bool flip;
    uint8_t order[JITTER_OPS];
    float jitter[JITTER_OPS]; /* factors; of an operation that is off: unused */
    uint8_t op;               /* trivial_op */
    int8_t bin;               /* its strength: 0..30, negative for the other direction (-1 - bin) */
    box erase;                /* in the sample; height 0: none */
};

/* The random choices for this sample. False: there are none (evaluation, or nothing random is set). */
bool transform_draw(struct drawn *out, const transform *t, const co_draw *draw, uint32_t id, uint32_t in_h,
                    uint32_t in_w);
/* out [planes,height,width]; drawn NULL: as in evaluation. p.planes must be t's; sides at least 1. */
void transform_apply(float *out, const transform *t, picture p, const struct drawn *drawn);
void transform_apply_timed(float *out, const transform *t, picture p, const struct drawn *drawn,
                           co_stage_times *times); /* NULL: not timed */
/* Resized until it covers height x width, and cut to its middle of that size. The result lies in
 * SCRATCH_PICTURE. */
picture transform_fit(picture p, uint32_t height, uint32_t width);
/* In training with data.mixup or data.cutmix mixes a slice's samples with their neighbours, dst->x and dst->y
 * being filled, and fills dst->y2 and dst->lam; without, but if the model wants them, y2 = y and lam = 1. A
 * sample that could not be read keeps y = CO_IGNORE and gets y2 = CO_IGNORE. Drawn by the id of the slice's
 * first sample. */
void transform_mix(const transform *t, const co_draw *draw, const uint32_t *ids, int n,
                   const co_slice_dst *dst);

struct mix_drawn {
    bool cuts;     /* CutMix */
    double lambda; /* weight of a sample's own label */
    box box;       /* CutMix: what comes from the other */
};
void transform_mix_by(const transform *t, const struct mix_drawn *m, int n,
                      const co_slice_dst *dst); /* NULL: not */
/* What a slice that begins with this sample is mixed by. False: it is not. */
bool transform_draw_mix(struct mix_drawn *out, const transform *t, const co_draw *draw, uint32_t first_id);

/* What the files of transform*.c share. */
void transform_resized(const transform *t, uint32_t *h, uint32_t *w); /* a picture's size after data.resize */
bool transform_varies(const transform *t);                            /* anything random but mixing? */
bool transform_jitters(const transform *t);
/* How many times smaller (1, 2, 4 or 8) a picture of height x width may be decoded for this sample, so that resizing
 * still never enlarges what was decoded. drawn NULL: for evaluation. */
uint32_t transform_reduction(const transform *t, const struct drawn *drawn, uint32_t height, uint32_t width);

/* --- memory of a thread --------------------------------------------------------------------------------- */
typedef enum {
    SCRATCH_FILE,    /* for a set: bytes as they came */
    SCRATCH_PICTURE, /* for a set: decoded */
    SCRATCH_DECODER, /* for a decoder's own needs */
    SCRATCH_A,       /* the picture in hand is in one of these */
    SCRATCH_B,
    SCRATCH_ROWS,   /* within one operation */
    SCRATCH_ACROSS, /* weights of a resize */
    SCRATCH_DOWN,
    SCRATCH_MIX,
    SCRATCH_SLOTS
} scratch_slot;
/* At least `len` bytes, 64-byte aligned, valid until the thread asks for more of the same slot. Ends the
 * process when memory is out: a rank that dies is replaced and its samples are filled again, a sample left
 * out would change bits. */
void *scratch_get(scratch_slot slot, size_t len);

#endif
