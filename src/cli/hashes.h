/* hashes.h -- the expected weights_sha256 of the sameness table, one set per kernel level. Any machine checks itself
 * against these, and so against every other. A changed hash is a decision: bump the level's version, say it in CHANGELOG. */
#ifndef CO_CLI_HASHES_H
#define CO_CLI_HASHES_H

typedef struct expected_hash {
    const char *column, *kernels, *sha;
} expected_hash;

static const expected_hash expected_hashes[] = {
    {"digits/mlp", "ref.1", ""},
};

#endif
