/* mpi_mpich.c -- the calls of MPICH and of the MPIs that share its binary interface (Intel's, Cray's,
 * MVAPICH). Handles are numbers, which this interface fixes. */
#include "link/mpi_int.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/library.h"

enum {
    THREAD_FUNNELED = 1,
    COMM_WORLD = 0x44000000,
    BYTE = 0x4c00010d,
    FLOAT = 0x4c00040a,
    SUM = 0x58000003,
    ERRORS_RETURN = 0x54000001
};

/* MPI_Status */
typedef union status {
    struct {
        int count_low, count_high, source, tag, error;
    } fields;
    char room[128];
} status;

/* The library is one per process, and so is what it offers. */
static struct {
    int (*init)(int *, char ***, int, int *);
    int (*finalize)(void);
    int (*rank)(int, int *);
    int (*size)(int, int *);
    int (*handler)(int, int);
    int (*isend)(const void *, int, int, int, int, int, int *);
    int (*irecv)(void *, int, int, int, int, int, int *);
    int (*test)(int *, int *, status *);
    int (*count)(const status *, int, int *);
    int (*cancel)(int *);
    int (*free)(int *);
    int (*allreduce)(const void *, void *, int, int, int, int);
    int (*text)(int, char *, int *);
} mpich;

/* Under Open MPI's mpirun PMI_RANK may come from an outer srun. */
static bool launched(void)
{
    return getenv("PMI_RANK") && getenv("PMI_SIZE");
}

static bool load(const char *file, char *why, size_t size)
{
    const co_symbol symbols[] = {{"MPI_Init_thread", &mpich.init},
                                 {"MPI_Finalize", &mpich.finalize},
                                 {"MPI_Comm_rank", &mpich.rank},
                                 {"MPI_Comm_size", &mpich.size},
                                 {"MPI_Comm_set_errhandler", &mpich.handler},
                                 {"MPI_Isend", &mpich.isend},
                                 {"MPI_Irecv", &mpich.irecv},
                                 {"MPI_Test", &mpich.test},
                                 {"MPI_Get_count", &mpich.count},
                                 {"MPI_Cancel", &mpich.cancel},
                                 {"MPI_Request_free", &mpich.free},
                                 {"MPI_Allreduce", &mpich.allreduce},
                                 {"MPI_Error_string", &mpich.text}};
    const char *missing;

    if (co_library_load(file, CO_LIBRARY_GLOBAL, symbols, CO_COUNT(symbols), &missing))
        return true;
    const char *trouble = missing ? NULL : dlerror();
    snprintf(why, size, "%s%s", missing ? "it lacks " : "", missing ? missing : trouble ? trouble : file);
    return false;
}

static int start(int *rank, int *size)
{
    int level, code = mpich.init(NULL, NULL, THREAD_FUNNELED, &level);

    if (code == 0)
        code = mpich.handler(COMM_WORLD, ERRORS_RETURN);
    if (code == 0)
        code = mpich.rank(COMM_WORLD, rank);
    return code ? code : mpich.size(COMM_WORLD, size);
}

static int isend(const void *bytes, int len, int to, int tag, mpi_request *out)
{
    return mpich.isend(bytes, len, BYTE, to, tag, COMM_WORLD, &out->number);
}

static int irecv(void *to, int len, int from, int tag, mpi_request *out)
{
    return mpich.irecv(to, len, BYTE, from, tag, COMM_WORLD, &out->number);
}

static int test(mpi_request *request, int *done, int *len)
{
    status st = {{0}};
    int code = mpich.test(&request->number, done, &st);

    return code || !*done || !len ? code : mpich.count(&st, BYTE, len);
}

static void cancel(mpi_request *request)
{
    status st;
    int done = 0;

    mpich.cancel(&request->number);
    if (mpich.test(&request->number, &done, &st) == 0 && !done)
        mpich.free(&request->number);
}

static int add_up(const float *from, float *to, int n)
{
    return mpich.allreduce(from, to, n, FLOAT, SUM, COMM_WORLD);
}

static void text(int code, char *out, size_t size)
{
    char words[1024] = ""; /* MPI_MAX_ERROR_STRING is 512 */
    int len;

    mpich.text(code, words, &len);
    snprintf(out, size, "%s", words);
}

static int finish(void)
{
    return mpich.finalize();
}

static const char *const files[] = {"libmpich.so.12", "libmpi.so.12", "libmpi_cray.so.12", NULL};
const mpi_calls mpi_mpich = {"MPICH", files, launched, load,   start, isend,
                             irecv,   test,  cancel,   add_up, text,  finish};
