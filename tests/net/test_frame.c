/* Frames: a frame reads back wherever its bytes are cut; bytes that are not a frame are refused at the first
 * wrong one. */
#include "net/net.h"

#include <string.h>

#include "harness.h"

TEST(a_frame_reads_back_and_no_prefix_of_it_does)
{
    static const char body[] = "{\"a\":1}";
    co_frame f = {.type = 7, .flags = 0xabcd, .view = 0x01020304, .run = 0x1122334455667788, .step = 42, .len = 7},
             back;
    uint8_t bytes[CO_FRAME_HEAD + 8];
    size_t used;

    co_frame_head(bytes, &f);
    memcpy(bytes + CO_FRAME_HEAD, body, 8);
    for (size_t n = 0; n < CO_FRAME_HEAD + 7; n++) {
        CHECK_OK(co_frame_parse(&back, &used, bytes, n));
        CHECK(used == 0, "%zu bytes were enough", n);
    }
    CHECK_OK(co_frame_parse(&back, &used, bytes, sizeof bytes));
    CHECK(used == CO_FRAME_HEAD + 7 && back.type == 7 && back.flags == 0xabcd && back.view == 0x01020304 &&
              back.run == f.run && back.step == 42 && back.len == 7 && memcmp(back.body, body, 7) == 0,
          "came back changed");
}

TEST(what_is_not_a_frame_is_refused_at_its_first_wrong_byte)
{
    uint8_t bytes[CO_FRAME_HEAD];
    co_frame back;
    size_t used;

    CHECK_FAILS(co_frame_parse(&back, &used, "GET / HTTP/1.1", 1), CO_EFORMAT, "begins with byte 0x47");
    CHECK_FAILS(co_frame_parse(&back, &used, "COHX", 4), CO_EFORMAT, "not a frame");
    co_frame_head(bytes, &(co_frame){0});
    bytes[4] = 9;
    CHECK_FAILS(co_frame_parse(&back, &used, bytes, 5), CO_EFORMAT, "the frame has version 9");
    co_frame_head(bytes, &(co_frame){.len = CO_FRAME_MOST + 1});
    CHECK_FAILS(co_frame_parse(&back, &used, bytes, sizeof bytes), CO_EFORMAT, "the frame has 1048577 bytes");
    co_frame_head(bytes, &(co_frame){.len = CO_FRAME_MOST});
    CHECK_OK(co_frame_parse(&back, &used, bytes, sizeof bytes));
    CHECK(used == 0, "the body is still to come");
}
