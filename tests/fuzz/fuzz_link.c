/* fuzz_link.c -- any bytes as the hello of a bulk connection and as the head of a message: what is accepted
 * must print back to the same bytes, and a head's kind is one that exists. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "link/tcp_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Puts the right check behind the bytes, so that the fuzzer gets past it. */
static void seal(uint8_t *bytes, size_t len)
{
    uint64_t check = co_fnv1a64(bytes, len);

    for (int i = 0; i < 8; i++)
        bytes[len + (size_t)i] = (uint8_t)(check >> 8 * i);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    uint8_t in[CO_STREAM_HELLO] = {0}, out[CO_STREAM_HELLO];
    uint32_t message;
    co_tag tag;
    hello h;

    memcpy(in, bytes, len < sizeof in ? len : sizeof in);
    if (len > sizeof in && (bytes[sizeof in] & 1))
        seal(in, CO_STREAM_HELLO - 8);
    if (hello_read(&h, in) == CO_OK && h.version == HELLO_VERSION) {
        hello_write(out, &h);
        if (memcmp(in, out, CO_STREAM_HELLO) != 0)
            abort();
    }
    if (len > sizeof in && (bytes[sizeof in] & 1))
        seal(in, LINK_HEAD - 8);
    if (head_read(&tag, &message, in) == CO_OK) {
        head_write(out, &tag, message);
        if (memcmp(in, out, LINK_HEAD) != 0 || tag.kind > CO_MSG_FED)
            abort();
    }
    return 0;
}
