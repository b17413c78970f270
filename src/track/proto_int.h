/* proto_int.h -- messages of Protocol Buffers, written field by field.
 *
 * There is no schema: the caller knows the numbers of the fields. A message inside a message is built in a string
 * of its own first, because its length comes before it.
 *
 *     proto_text(&value, 1, "loss");
 *     proto_f32(&value, 2, 0.5f);
 *     proto_sub(&summary, 1, &value);  // and `value` is empty again
 */
#ifndef CO_TRACK_PROTO_INT_H
#define CO_TRACK_PROTO_INT_H

#include "base/str.h"

void proto_varint(co_str *out, uint64_t x); /* without a field */
void proto_int(co_str *out, int field, int64_t x);
void proto_f64(co_str *out, int field, double x);
void proto_f32(co_str *out, int field, float x);
void proto_bytes(co_str *out, int field, const void *bytes, size_t len);
void proto_text(co_str *out, int field, const char *text);
void proto_f64s(co_str *out, int field, const double *x, size_t n); /* packed */
void proto_sub(co_str *out, int field, co_str *message);            /* adds the message and clears it */

#endif
