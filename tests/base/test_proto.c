#include "harness.h"

#include <stdio.h>
#include <string.h>

#include "base/proto.h"

static void check_bytes(co_str *s, const char *want)
{
    char hex[256] = "";
    for (size_t i = 0; i < s->len; i++)
        snprintf(hex + 2 * i, 3, "%02x", (unsigned char)s->p[i]);
    CHECK(strcmp(hex, want) == 0, "%s, want %s", hex, want);
    co_str_clear(s);
}

TEST(fields_of_protocol_buffers_have_the_bytes_of_the_format)
{
    co_str s = {0};
    co_proto_int(&s, 1, 150); /* the example of protobuf's own pages */
    check_bytes(&s, "089601");
    co_proto_int(&s, 1, -1);
    check_bytes(&s, "08ffffffffffffffffff01");
    co_proto_int(&s, 1, 0);
    co_proto_text(&s, 2, "");
    co_proto_text(&s, 2, NULL);
    check_bytes(&s, "");
    co_proto_choice(&s, 4, 0);
    co_proto_text_n(&s, 3, "", 0);
    check_bytes(&s, "20001a00");
    co_proto_f32(&s, 2, 0.5f);
    co_proto_f64(&s, 1, 0);
    check_bytes(&s, "150000003f090000000000000000");
    co_proto_f64s(&s, 16, (double[]){1, -2}, 2);
    check_bytes(&s, "820110000000000000f03f00000000000000c0");
    size_t outer = co_proto_begin(&s, 3), inner = co_proto_begin(&s, 1);
    co_proto_text(&s, 2, "hi");
    co_proto_end(&s, inner);
    co_proto_end(&s, outer);
    check_bytes(&s, "1a060a0412026869");
    co_str_fini(&s);
}
