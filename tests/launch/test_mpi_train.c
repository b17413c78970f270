/* `cohort train` under real mpiruns: Open MPI's and MPICH's, over the link mpi and over tcp, undisturbed and with ranks
 * killed. Two names of one machine are two hosts; mpirun cannot tell the difference. All rows end with the weights
 * of one host. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#define TRAIN                                                                                                \
    "$COHORT train data=digits model=cnn trainer.slices=16 trainer.devices=1 trainer.max_steps=40 "          \
    "data.batch_size=64 console=plain "
#define OPEN_MPI                                                                                             \
    "mpirun.openmpi --mca plm rsh --mca plm_rsh_agent $PWD/shell --host localhost:1,127.0.0.2:1 -n 2 "
#define MPICH "mpirun.mpich -launcher fork -hosts 127.0.0.1,127.0.0.2 -n 2 -ppn 1 "

static void needs(const char *program, const char *package)
{
    if (test_sh("command -v %s", program).status != 0)
        test_skip("no %s here (package %s)", program, package);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_oob_tcp_if_include", "lo", 1);
    setenv("OMPI_MCA_btl_tcp_if_include", "lo", 1);
    setenv("TMPDIR", "/tmp", 1); /* Open MPI's sockets need a short path */
    test_run r =
        test_sh("printf '#!/bin/sh\\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\\nshift\\n"
                "exec /bin/sh -c \"$*\"\\n' > shell; chmod +x shell"); /* a remote shell to this machine */
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
}

/* The hash of a finished run's weights, from its summary. */
static void hash_of(char hash[65], const char *folder)
{
    test_run r =
        test_sh("sed -n 's/.*\"weights_sha256\": \"\\([0-9a-f]*\\)\".*/\\1/p' %s/summary.json", folder);

    CHECK(r.status == 0 && strlen(r.out) >= 64, "%s: no hash: %s", folder, r.out);
    snprintf(hash, 65, "%.64s", r.out);
    free(r.out);
}

/* The number of ranks that were replaced. */
static long recoveries_of(const char *folder)
{
    test_run r = test_sh("sed -n 's/.*\"recoveries\": \\([0-9]*\\).*/\\1/p' %s/summary.json", folder);
    long n = atol(r.out);

    free(r.out);
    return n;
}

static void ends_with(const char *want, const char *mpirun, const char *link, bool kills)
{
    char hash[65], folder[64];

    snprintf(folder, sizeof folder, "%s-%d", link, kills);
    test_run r = test_sh("%s " TRAIN "trainer.link=%s run.dir=%s %s", mpirun, link, folder,
                         kills ? "fault.phase=random fault.kills=5" : "");
    CHECK(r.status == 0, "%s, %s: status %d: %s", mpirun, link, r.status, r.out);
    CHECK(strstr(r.out, "over 2 hosts"), "not two hosts: %s", r.out);
    hash_of(hash, folder);
    CHECK(strcmp(hash, want) == 0, "%s, %s, kills %d: %s, one host has %s", mpirun, link, kills, hash, want);
    CHECK(!kills || recoveries_of(folder) > 0, "no rank was killed");
    test_note("%s%s: %.2f s", link, kills ? ", 5 kills" : "", r.secs);
    free(r.out);
}

static void trains_under(const char *mpirun)
{
    char want[65];
    test_run one = test_sh(TRAIN "run.dir=one");

    CHECK(one.status == 0, "%s", one.out);
    free(one.out);
    hash_of(want, "one");
    for (int kills = 0; kills < 2; kills++) {
        ends_with(want, mpirun, "mpi", kills);
        ends_with(want, mpirun, "tcp", kills);
    }
}

TEST_LONG_WITHIN(a_training_under_open_mpi_ends_with_the_weights_of_one_host_over_both_links, 400)
{
    needs("mpirun.openmpi", "openmpi-bin");
    trains_under(OPEN_MPI);
}

TEST_LONG_WITHIN(a_training_under_mpich_ends_with_the_weights_of_one_host_over_both_links, 400)
{
    needs("mpirun.mpich", "mpich");
    trains_under(MPICH);
}
