/* mpi_ompi.c -- Open MPI's calls. Its handles are pointers; the predefined ones are the addresses of
 * variables of the library.
 *
 * A rank's first PMIx client gets what the server knows through shared memory, and a second client of the
 * same rank finds nothing there (Open MPI 4.1.4 with PMIx 4.2.2: "getting local rank failed"). The
 * launcher may have been a client before (place/pmix.c), so we ask for the data over the socket:
 * PMIX_MCA_gds=hash.
 */
#include "link/mpi_int.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/library.h"

enum { THREAD_FUNNELED = 1 };

/* MPI_Status; larger than any version's */
typedef union status {
    struct {
        int source, tag, error, cancelled;
        size_t count;
    } fields;
    char room[128];
} status;

/* The library is one per process, and so is what it offers. */
static struct {
    int (*init)(int *, char ***, int, int *);
    int (*finalize)(void);
    int (*rank)(void *, int *);
    int (*size)(void *, int *);
    int (*handler)(void *, void *);
    int (*isend)(const void *, int, void *, int, int, void *, void **);
    int (*irecv)(void *, int, void *, int, int, void *, void **);
    int (*test)(void **, int *, status *);
    int (*count)(const status *, void *, int *);
    int (*cancel)(void **);
    int (*free)(void **);
    int (*allreduce)(const void *, void *, int, void *, void *, void *);
    int (*text)(int, char *, int *);
    void *world, *byte, *float_, *sum, *errors_return;
} ompi;

static bool launched(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") || (getenv("PMIX_RANK") && getenv("PMIX_NAMESPACE"));
}

static bool load(const char *file, char *why, size_t size)
{
    const co_symbol symbols[] = {{"MPI_Init_thread", &ompi.init},
                                 {"MPI_Finalize", &ompi.finalize},
                                 {"MPI_Comm_rank", &ompi.rank},
                                 {"MPI_Comm_size", &ompi.size},
                                 {"MPI_Comm_set_errhandler", &ompi.handler},
                                 {"MPI_Isend", &ompi.isend},
                                 {"MPI_Irecv", &ompi.irecv},
                                 {"MPI_Test", &ompi.test},
                                 {"MPI_Get_count", &ompi.count},
                                 {"MPI_Cancel", &ompi.cancel},
                                 {"MPI_Request_free", &ompi.free},
                                 {"MPI_Allreduce", &ompi.allreduce},
                                 {"MPI_Error_string", &ompi.text},
                                 {"ompi_mpi_comm_world", &ompi.world},
                                 {"ompi_mpi_byte", &ompi.byte},
                                 {"ompi_mpi_float", &ompi.float_},
                                 {"ompi_mpi_op_sum", &ompi.sum},
                                 {"ompi_mpi_errors_return", &ompi.errors_return}};
    const char *missing;

    /* its plug-ins look for its symbols */
    if (co_library_load(file, CO_LIBRARY_GLOBAL, symbols, CO_COUNT(symbols), &missing))
        return true;
    const char *trouble = missing ? NULL : dlerror();
    snprintf(why, size, "%s%s", missing ? "it lacks " : "", missing ? missing : trouble ? trouble : file);
    return false;
}

static int start(int *rank, int *size)
{
    int level;

    setenv("PMIX_MCA_gds", "hash", 0);
    int code = ompi.init(NULL, NULL, THREAD_FUNNELED, &level);
    if (code == 0)
        code = ompi.handler(ompi.world, ompi.errors_return);
    if (code == 0)
        code = ompi.rank(ompi.world, rank);
    return code ? code : ompi.size(ompi.world, size);
}

static int isend(const void *bytes, int len, int to, int tag, mpi_request *out)
{
    return ompi.isend(bytes, len, ompi.byte, to, tag, ompi.world, &out->pointer);
}

static int irecv(void *to, int len, int from, int tag, mpi_request *out)
{
    return ompi.irecv(to, len, ompi.byte, from, tag, ompi.world, &out->pointer);
}

static int test(mpi_request *request, int *done, int *len)
{
    status st = {{0}};
    int code = ompi.test(&request->pointer, done, &st);

    return code || !*done || !len ? code : ompi.count(&st, ompi.byte, len);
}

static void cancel(mpi_request *request)
{
    status st;
    int done = 0;

    ompi.cancel(&request->pointer);
    if (ompi.test(&request->pointer, &done, &st) == 0 && !done)
        ompi.free(&request->pointer);
}

static int add_up(const float *from, float *to, int n)
{
    return ompi.allreduce(from, to, n, ompi.float_, ompi.sum, ompi.world);
}

static void text(int code, char *out, size_t size)
{
    char words[1024] = ""; /* MPI_MAX_ERROR_STRING is 256 */
    int len;

    ompi.text(code, words, &len);
    snprintf(out, size, "%s", words);
}

static int finish(void)
{
    return ompi.finalize();
}

static const char *const files[] = {"libmpi.so.40", NULL};
const mpi_calls mpi_ompi = {"Open MPI", files, launched, load,   start, isend,
                            irecv,      test,  cancel,   add_up, text,  finish};
