/* pmix_abi.h -- what is used of PMIx, declared by hand, so that building needs no header of it. As in
 * pmix_common.h of 4.2.2; a test compares it with the header that is installed, if one is (a different
 * libpmix.so.2 at run time cannot be checked: the name of the library promises that it is the same).
 */
#ifndef CO_PLACE_PMIX_ABI_H
#define CO_PLACE_PMIX_ABI_H

#include <stdbool.h>
#include <stdint.h>

enum { TYPE_BOOL = 1, TYPE_STRING = 3, TYPE_UINT32 = 14, SCOPE_GLOBAL = 3 };
enum { RANK_WILDCARD = -2 };
enum { OVER_AT_ONCE = -157 }; /* of a call with a callback: there will be none */

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
        uint64_t room[4]; /* its largest member has 24 bytes */
    } data;
} abi_value;

typedef struct abi_info {
    char key[512];
    uint32_t flags;
    abi_value value;
} abi_info;

#endif
