/* pack.h -- writes a folder of pictures as one file with an index (docs/formats/pack.md), which trains to the
 * same weights as the folder: it has the same samples, in the same order, with the same fingerprint. */
#ifndef CO_DATA_PACK_H
#define CO_DATA_PACK_H

#include <stdint.h>

#include "base/err.h"

typedef struct co_pack_facts {
    const char *data; /* the choice of data= for it */
    uint64_t files, bytes;
} co_pack_facts;

/* `dir` is a folder or archive that data=imagefolder, tinyimagenet, cinic10 or imagenet reads. `out` must end
 * in .pack and not exist; it is written whole or not at all. `tell` may be NULL. CO_EINPUT: the folder is no
 * such set, or a file of it cannot be read. */
co_err co_data_pack(co_pack_facts *facts, const char *dir, const char *out,
                    void (*tell)(void *ctx, uint64_t done, uint64_t of), void *ctx);

#endif
