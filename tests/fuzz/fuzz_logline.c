/* Lines of logs, which also come from other hosts (job.log). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "job/logs_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = malloc(size + !size); /* exactly as long: a read past its end is seen */
    co_log_line l;

    if (!line)
        return 0;
    memcpy(line, data, size);
    if (log_line_parse(&l, line, size)) {
        if (l.text < line || l.len > size || l.text + l.len != line + size || l.rank < -1 ||
            strlen(l.stamp) != CO_STAMP - 1 || strlen(l.host) >= sizeof l.host)
            abort();
    }
    free(line);
    return 0;
}
