/* pmix_abi.h -- the parts of PMIx that we use, declared by hand so that a build does not need its headers.
 *
 * The declarations are those of pmix_common.h 4.2.2. A test compares them with the installed header, if
 * there is one. The libpmix.so.2 that is loaded at run time cannot be checked: we rely on its version number,
 * which promises the same types.
 */
#ifndef CO_PLACE_PMIX_ABI_H
#define CO_PLACE_PMIX_ABI_H

#include <stdbool.h>
#include <stdint.h>

enum { TYPE_BOOL = 1, TYPE_STRING = 3, TYPE_UINT32 = 14, SCOPE_GLOBAL = 3 };
enum { RANK_WILDCARD = -2 };
enum { OVER_AT_ONCE = -157 }; /* status of a call that is complete: its callback will not be called */

typedef struct abi_proc {
    char nspace[256];
    uint32_t rank;
} abi_proc;

typedef struct abi_value {
    uint16_t type;
    union {
        bool flag;
        char *string;
        uint32_t uint32;
        uint64_t room[4]; /* the union's largest member in PMIx has 24 bytes */
    } data;
} abi_value;

typedef struct abi_info {
    char key[512];
    uint32_t flags;
    abi_value value;
} abi_info;

#endif
