/* Event files of TensorBoard that an earlier start left, possibly cut or spoilt: their records and the last
 * mark. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "track/tfrecord_int.h"
#include "track/trackers/tensorboard_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size + !size); /* exactly as long: a read past its end is seen */
    events_found found = {0};
    co_str frame = {0};

    memcpy(bytes, data, size);
    if (events_last_mark(&found, bytes, size) > size)
        abort();
    tfrecord_add(&frame, bytes, size); /* the same bytes with right sums around them */
    mark_add(&frame, 1, &(events_found){.of = 7, .upto = (int64_t)size});
    if (events_last_mark(&found, frame.p, frame.len) != frame.len || found.of != 7 ||
        found.upto != (int64_t)size)
        abort();
    co_str_fini(&frame);
    free(bytes);
    return 0;
}
