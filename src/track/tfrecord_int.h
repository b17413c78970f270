/* tfrecord_int.h -- TFRecord: the framing of TensorBoard's event files.
 *
 *     8 bytes length | 4 masked CRC-32C of those | the payload | 4 masked CRC-32C of the payload     little-endian
 */
#ifndef CO_TRACK_TFRECORD_INT_H
#define CO_TRACK_TFRECORD_INT_H

#include "base/str.h"

uint32_t tf_crc32c(const void *bytes, size_t len);
/* Adds the payload as one record. */
void tfrecord_add(co_str *out, const void *payload, size_t len);

enum { TFRECORD_MOST = 64 << 20 }; /* of a payload that we read */
/* The record at the beginning of the bytes: its payload, and how many bytes it takes in all. 0: it is cut
 * short, or its sums are wrong; then nothing after it can be read either. */
size_t tfrecord_get(const char **payload, size_t *payload_len, const char *bytes, size_t len);

#endif
