/* hashes.h -- the expected weights_sha256 of the sameness table, one set per kernel level. A machine that
 * matches these hashes agrees with every other machine that does. Change a hash only on purpose: raise the
 * level's version and add a line to CHANGELOG. */
#ifndef CO_BENCH_HASHES_H
#define CO_BENCH_HASHES_H

typedef struct expected_hash {
    const char *column, *kernels, *sha;
} expected_hash;

/* clang-format off */
static const expected_hash expected_hashes[] = {
    {"cifar10/resnet18", "avx2.2", "bb669c85c4cd439a933b0d30f6d00fc06437763ed378e327e30ae73030590b37"},
    {"digits/cnn", "avx2.2", "e53f8eb53dd804b090ae7882070cb5105b03a36d407a01a5857f9f0ebb93c64c"},
    {"digits/mlp", "avx2.2", "8cbf969ae2df0e8215d98c9b7d801bcff342bb5c9d77827348d210a1a4866868"},
    {"fake/linear", "avx2.2", "c25027ff8186e2490195255d199817380e8980227e96ecfa7a0ca047f9ab299c"},
    {"images/vit", "avx2.2", "fd7f028fa784923bfaba1aee986f9b841aca0290d7d6a52ab73b226217ae7c34"},
    {"pairs/transformer", "avx2.2", "bd74e0e7ca3b8c76b33a3a409afbac1cfdcdbbcf6c793808bba7e8139bbbc3fd"},
    {"pictures/fastnet", "avx2.2", "4eb2bca077cae67a740841a9d92960a98987ddc920906bf306338454e2bc8e14"},
    {"pictures/resnet50", "avx2.2", "f51aeab872a82f08abe9e187e4070fea080329ccfb745bb8cb05c7c31bfbe059"},
    {"ratings/factors", "avx2.2", "b2351816eb3302a12e4754c34e0ec73cc638976d01475896fd5da25c02ca1ba4"},
    {"text/lm", "avx2.2", "ef90d2337b4efe3db6c74068dcba796793447bbccabc1e053e97688fa3469169"},
    {"cifar10/resnet18", "ref.1", "6f3b4a592e167560ec584f137b284ea878feee3ffdead2753a08fb3e30e211fd"},
    {"digits/cnn", "ref.1", "425afdb3c561b3757df3036c23ae841be6b4f94bef58a412e3e672c412f25e48"},
    {"digits/mlp", "ref.1", "af9812575082ec99f0d4f78755acbe4dc3fac71045ea10401f72afb978325e9b"},
    {"fake/linear", "ref.1", "ecdc941de13567d108f4d3bc5787df5957d175b1fd0a376adcde2c9077873ad7"},
    {"images/vit", "ref.1", "839419f239099a61d2c0d2a4ec1a810a3e5bf343374a1dfdb69e5de6afa61b79"},
    {"pairs/transformer", "ref.1", "aad20bd3da84862d830fc23b10bc56c8833be5976b3567ab418ac67b88df9802"},
    {"pictures/fastnet", "ref.1", "93d7b2094a865b24b158db1201ccd7141a6c2c2aba93d43ece77d73186722d8c"},
    {"pictures/resnet50", "ref.1", "4b60d0fb6e2f175f07a861ceb219c0de29d9f34fb785684923506019e46227ca"},
    {"ratings/factors", "ref.1", "b2351816eb3302a12e4754c34e0ec73cc638976d01475896fd5da25c02ca1ba4"},
    {"text/lm", "ref.1", "4f3fc383eb1a2fbd636202f1b317f4fc26a23b5bdb7680ba25d2a43b80c9fbb3"},
};
/* clang-format on */

#endif
