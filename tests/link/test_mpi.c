/* The link mpi under real mpiruns: Open MPI's and MPICH's. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "link/mpi_part.h"

static const struct mpirun {
    const char *program, *package, *line, *name;
} open_mpi = {"mpirun.openmpi", "openmpi-bin", "mpirun.openmpi --oversubscribe", "Open MPI"},
  mpich = {"mpirun.mpich", "mpich", "mpirun.mpich", "MPICH"};

static void prepare(const struct mpirun *mpirun)
{
    if (test_sh("command -v %s", mpirun->program).status != 0)
        test_skip("no %s here (package %s)", mpirun->program, mpirun->package);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_oob_tcp_if_include", "lo", 1);
    setenv("OMPI_MCA_btl_tcp_if_include", "lo", 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* MPI does not free all its memory */
    setenv("TMPDIR", "/tmp", 1);                 /* Open MPI's sockets need a short path */
}

static const char *program(void)
{
    static char path[1024];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    CHECK(n > 0, "readlink");
    path[n] = '\0';
    return path;
}

static void all_play(const struct mpirun *mpirun, const char *part, int hosts, const char *more)
{
    char want[60];
    test_run r = test_sh("%s -n %d env TEST_LINK_MPI=%s %s %s", mpirun->line, hosts, part, more, program());
    CHECK(r.status == 0, "%s of %d hosts, %s: status %d: %s", part, hosts, mpirun->name, r.status, r.out);
    for (int h = 0; h < hosts; h++) {
        snprintf(want, sizeof want, "host %d of %d: all is well", h, hosts);
        CHECK(strstr(r.out, want), "%s: no \"%s\" in: %s", part, want, r.out);
    }
    test_note("%s, %d hosts, %s: %.2f s", part, hosts, mpirun->name, r.secs);
    free(r.out);
}

static void traffic(const struct mpirun *mpirun)
{
    prepare(mpirun);
    all_play(mpirun, "traffic", 2, "TEST_SEED=1");
    all_play(mpirun, "traffic", 3, "TEST_SEED=2");
}

TEST(messages_over_open_mpi_come_whole_and_in_order_and_wait_for_their_receives)
{
    traffic(&open_mpi);
}

TEST_LONG(messages_over_mpich_come_whole_and_in_order_and_wait_for_their_receives)
{
    traffic(&mpich);
}

static void views(const struct mpirun *mpirun)
{
    prepare(mpirun);
    all_play(mpirun, "views", 2, "TEST_SEED=1");
    all_play(mpirun, "views", 3, "TEST_SEED=2");
}

TEST(nothing_lands_over_open_mpi_after_a_cut_and_nothing_that_was_cut_is_reported)
{
    views(&open_mpi);
}

TEST_LONG(nothing_lands_over_mpich_after_a_cut_and_nothing_that_was_cut_is_reported)
{
    views(&mpich);
}

TEST(a_host_that_leaves_over_open_mpi_is_lost_after_its_last_message)
{
    prepare(&open_mpi);
    all_play(&open_mpi, "leave", 3, "");
}

TEST(a_host_that_leaves_over_mpich_is_lost_after_its_last_message)
{
    prepare(&mpich);
    all_play(&mpich, "leave", 3, "");
}

/* Nothing may land after a cut, even if the sender wakes up later, so the owner of the link is told to end
 * its process. */
static void stalls(const struct mpirun *mpirun)
{
    prepare(mpirun);
    test_run r = test_sh("%s -n 2 env TEST_LINK_MPI=stall %s", mpirun->line, program());
    CHECK(strstr(r.out, "host 0 of 2: all is well"), "status %d: %s", r.status, r.out);
    free(r.out);
}

TEST(a_cut_over_open_mpi_gives_up_on_a_host_that_hangs_in_the_middle_of_a_message)
{
    stalls(&open_mpi);
}

TEST_LONG(a_cut_over_mpich_gives_up_on_a_host_that_hangs_in_the_middle_of_a_message)
{
    stalls(&mpich);
}

/* The launcher's own connection (PMIx, PMI) was used before, by the parent. */
TEST(a_child_opens_the_link_over_open_mpi_after_its_parent_met_the_others)
{
    prepare(&open_mpi);
    all_play(&open_mpi, "fork", 2, "");
}

TEST(a_child_opens_the_link_over_mpich_after_its_parent_met_the_others)
{
    prepare(&mpich);
    all_play(&mpich, "fork", 2, "");
}

/* --- measuring ------------------------------------------------------------------------------------------ */
static void measures(const struct mpirun *mpirun)
{
    prepare(mpirun);
    test_run r = test_sh("%s -n 2 $COHORT bench exchange --rounds 3", mpirun->line);
    CHECK(r.status == 0 && strstr(r.out, "\"link\":\"mpi\"") && strstr(r.out, mpirun->name) &&
              strstr(r.out, "\"allreduce_ms\":"),
          "status %d: %s", r.status, r.out);
    test_note("%s", strchr(r.out, '{'));
    free(r.out);
    r = test_sh("%s -n 3 $COHORT bench exchange", mpirun->line);
    CHECK(r.status != 0 && strstr(r.out, "start it with mpirun -n 2 (not 3)"), "status %d: %s", r.status,
          r.out);
    free(r.out);
}

TEST(bench_exchange_under_mpirun_of_open_mpi_measures_its_link_and_its_allreduce)
{
    measures(&open_mpi);
}

TEST(bench_exchange_under_mpirun_of_mpich_measures_its_link_and_its_allreduce)
{
    measures(&mpich);
}

/* --- choosing ------------------------------------------------------------------------------------------- */
static void chooses(co_link_kind wanted, co_link_kind link, const char *words)
{
    co_link_kind got = CO_LINK_AUTO;
    char say[600] = "";

    CHECK_OK(co_link_choose(&got, wanted, say, sizeof say));
    CHECK(got == link, "%d gives %d", wanted, got);
    CHECK(test_contains(say, words), "it says \"%s\", wanted \"%s\"", say, words);
}

static void forget_launchers(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK",
                                        "PMI_SIZE"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

TEST(without_mpirun_the_link_is_tcp_and_mpi_is_refused_with_the_line_that_works)
{
    co_link_spec spec = {.me = 0, .listener = -1};
    co_link_kind got;
    co_link *link;
    char say[600];

    forget_launchers();
    chooses(CO_LINK_AUTO, CO_LINK_TCP, "link: tcp");
    chooses(CO_LINK_TCP, CO_LINK_TCP, "link: tcp");
    CHECK_FAILS(co_link_choose(&got, CO_LINK_MPI, say, sizeof say), CO_EINPUT,
                "trainer.link=mpi: no MPI has started this program. Start it with mpirun");
    CHECK_FAILS(co_link_open(&link, CO_LINK_MPI, &spec), CO_EINPUT, "no MPI has started this program");
}

TEST(under_mpirun_the_link_is_mpi_where_its_library_loads)
{
    prepare(&open_mpi);
    forget_launchers();
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    chooses(CO_LINK_AUTO, CO_LINK_MPI, "link: mpi (Open MPI, libmpi.so.40)");
    chooses(CO_LINK_TCP, CO_LINK_TCP, "link: tcp");
    forget_launchers();
    prepare(&mpich);
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", "2", 1);
    chooses(CO_LINK_AUTO, CO_LINK_MPI, "link: mpi (MPICH, libmpich.so.12)");
}

/* A library that does not load: auto falls back with the reason, mpi is refused with it. */
TEST(under_mpirun_without_its_library_the_link_is_tcp_and_says_why)
{
    test_run r =
        test_sh("touch libmpi.so.40; OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 LD_LIBRARY_PATH=$PWD "
                "TEST_LINK_MPI=choose %s",
                program());

    CHECK(r.status == 0, "status %d: %s", r.status, r.out);
    CHECK(strstr(r.out, "auto: link: tcp, because no library of Open MPI loads (") &&
              strstr(r.out, "file too short"),
          "%s", r.out);
    CHECK(strstr(r.out, "mpi: trainer.link=mpi: no library of Open MPI loads ("), "%s", r.out);
    free(r.out);
}
