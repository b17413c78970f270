/* proto.h -- writes messages of Protocol Buffers, field by field, into a string.
 *
 * There is no schema: the caller knows the numbers of the fields, and writes them in rising order as
 * protobuf's own writers do. A whole number or text that has its default (0, "") is left out, as in proto3; a
 * member of a oneof is not, because its presence says which member it is: co_proto_choice, co_proto_text_n. A
 * few dozen messages are needed here, and only to be written: protobuf-c would bring a compiler into the
 * build, schemas of some thousand lines into the tree, and one more library.
 *
 *     size_t at = co_proto_begin(&out, 17);      // a message inside
 *     co_proto_text(&out, 1, "abcd1234");
 *     co_proto_end(&out, at);
 */
#ifndef CO_BASE_PROTO_H
#define CO_BASE_PROTO_H

#include "base/str.h"

void co_proto_int(co_str *s, int field, int64_t x);
void co_proto_choice(co_str *s, int field, int64_t x); /* as co_proto_int, but 0 is written, too */
void co_proto_f32(co_str *s, int field, float x);      /* 0 is written, too, as in the two below */
void co_proto_f64(co_str *s, int field, double x);
void co_proto_f64s(co_str *s, int field, const double *x, size_t n); /* packed */
void co_proto_text(co_str *s, int field, const char *text);          /* NULL: left out */
void co_proto_text_n(co_str *s, int field, const char *text, size_t len);
void co_proto_time(co_str *s, int field, double wall_s); /* google.protobuf.Timestamp */
size_t co_proto_begin(co_str *s, int field);             /* a message; end it with what this returned */
void co_proto_end(co_str *s, size_t at);

#endif
