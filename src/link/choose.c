/* choose.c -- the links as a table, and which of them trainer.link means. */
#include "link/mpi_int.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"

static co_err (*const open_link[])(co_link **, const co_link_spec *) = {
    [CO_LINK_TCP] = co_link_tcp, [CO_LINK_MPI] = co_link_mpi};

co_err co_link_open(co_link **out, co_link_kind kind, const co_link_spec *spec)
{
    CO_ASSERT(kind == CO_LINK_TCP || kind == CO_LINK_MPI, "co_link_choose has chosen");
    return open_link[kind](out, spec);
}

int co_link_inherits(co_link_kind kind)
{
    const char *text = kind == CO_LINK_MPI ? getenv("PMI_FD") : NULL;
    long long fd;

    return text && co_str_to_i64(text, &fd) && fd >= 0 && fd <= INT_MAX ? (int)fd : -1;
}

co_err co_link_choose(co_link_kind *out, co_link_kind wanted, char *say, size_t size)
{
    const mpi_calls *calls = mpi_launcher();
    char file[80], why[1024];

    if (wanted == CO_LINK_MPI && !calls)
        return co_fail(CO_EINPUT, "trainer.link=mpi: " MPI_NOT_LAUNCHED ", or use trainer.link=tcp");
    *out = CO_LINK_TCP;
    if (wanted == CO_LINK_TCP || !calls) {
        snprintf(say, size, "link: tcp");
    } else if (mpi_loads(calls, file, sizeof file, why, sizeof why)) {
        *out = CO_LINK_MPI;
        snprintf(say, size, "link: mpi (%s, %s)", calls->name, file);
    } else if (wanted == CO_LINK_MPI) {
        return co_fail(CO_EINPUT, "trainer.link=mpi: %s", why);
    } else {
        snprintf(say, size, "link: tcp, because %s", why);
    }
    return CO_OK;
}
