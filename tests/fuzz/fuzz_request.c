/* Requests to the page for Prometheus. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "track/trackers/prometheus_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size + !size); /* exactly as long: a read past its end is seen */
    bool head = false;

    memcpy(bytes, data, size);
    int status = prom_http_judge(bytes, size, &head);
    if (status != 0 && status != 200 && status != 400 && status != 404 && status != 405)
        abort();
    free(bytes);
    return 0;
}
