/* fuzz_wandb.c -- any bytes as a netrc, and as an answer of the W&B service. A key that was put into a netrc
 * must be found there again, and the keys of other machines must stay. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "wandb/wandb_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check_netrc(const char *text, size_t len)
{
    co_str out = {0};
    char *other = netrc_find(text, len, "b");

    netrc_put(&out, text, len, "api.wandb.ai", "user", "KEY");
    char *found = netrc_find(out.p, out.len, "api.wandb.ai"), *same = netrc_find(out.p, out.len, "b");
    /* inside quotes, a comment or a macro without its end, what is appended belongs to it */
    if (found && strcmp(found, "KEY") == 0 && other && (!same || strcmp(same, other) != 0) &&
        !strstr(other, "\n"))
        abort();
    co_http_wipe(other);
    co_http_wipe(found);
    co_http_wipe(same);
    co_str_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    json_t *data = NULL;
    run_status status;

    check_netrc((const char *)bytes, len);
    if (api_reply(&data, (const char *)bytes, len, "fuzz") == CO_OK) {
        api_status_of(&status, data);
        for (int i = 0; i < N_CHANNELS; i++)
            if (status.lines[i] < 0)
                abort();
        co_str text = {0};
        json_write(&text, data, JSON_DEPTH);
        co_str_fini(&text);
        json_decref(folder_nest(data));
    }
    json_decref(data);
    return 0;
}
