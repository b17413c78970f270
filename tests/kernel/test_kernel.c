/* The table of providers, and `far`, whose memory nobody may touch from outside. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "kernel/kernel.h"

static const co_kernels *provider(const char *level)
{
    const co_kernels *k = NULL;

    CHECK_OK(co_kernels_get(&k, level));
    return k;
}

TEST(every_operator_has_a_row_in_every_provider)
{
    const char *levels[] = {"ref", "far", "auto"};

    for (size_t i = 0; i < CO_COUNT(levels); i++)
        for (int op = 0; op < CO_OP_COUNT; op++)
            CHECK(provider(levels[i])->row[op].fn, "%s: no kernel for %s", levels[i], co_op_name((co_op)op));
}

TEST(operators_have_names_of_their_own)
{
    for (int a = 0; a < CO_OP_COUNT; a++)
        for (int b = 0; b < a; b++)
            CHECK(strcmp(co_op_name((co_op)a), co_op_name((co_op)b)) != 0, "two are called %s",
                  co_op_name((co_op)a));
    CHECK(!strcmp(co_op_name(CO_OP_CONV2D_DW), "conv2d_dw"), "got %s", co_op_name(CO_OP_CONV2D_DW));
    CHECK(!strcmp(co_op_name(CO_OP_COUNT), "unknown operator"), "got %s", co_op_name(CO_OP_COUNT));
}

TEST(providers_are_found_by_level_and_say_their_version)
{
    CHECK(!strcmp(co_kernels_name(provider("ref")), "ref.1"), "got %s", co_kernels_name(provider("ref")));
    CHECK(!strcmp(co_kernels_name(provider("far")), "far.1"), "got %s", co_kernels_name(provider("far")));
    CHECK(provider("ref")->real_size == 4 && !provider("ref")->space, "ref: floats in host memory");
    CHECK(provider("far")->real_size == 4 && provider("far")->space, "far: floats in a space of its own");
    CHECK(provider("ref") == provider("ref"), "tables are static");
}

TEST(an_unknown_level_is_refused_with_the_names_there_are)
{
    const co_kernels *k = NULL;

    CHECK_FAILS(co_kernels_get(&k, "avx1024"), CO_EINPUT, "'avx1024': no such level");
    CHECK_FAILS(co_kernels_get(&k, ""), CO_EINPUT, "auto, ref, avx2, far");
    CHECK(!k, "written on failure");
}

TEST(auto_takes_avx2_where_the_cpu_has_it)
{
    const co_kernels *k = NULL;
    bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");

    CHECK(!strcmp(provider("auto")->level, has ? "avx2" : "ref"), "got %s", provider("auto")->level);
    if (has)
        CHECK(provider("avx2") == provider("auto"), "two tables for one level");
    else
        CHECK_FAILS(co_kernels_get(&k, "avx2"), CO_EINPUT, "this CPU lacks");
}

/* The signal that ends a child which touches p, 0 if none does. */
static int touch(volatile char *p, bool write)
{
    pid_t pid = fork();

    CHECK(pid >= 0, "fork: %m");
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would turn the signal into an exit status */
        if (write)
            *p = 1;
        _exit(*p == 1 ? 0 : 1);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %m");
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(far_memory_faults_outside_a_call_and_not_inside)
{
    const co_space_ops *ops = provider("far")->space;
    enum { SIZE = 10000 }; /* not a multiple of a page */
    void *mem;

    CHECK_OK(ops->open(&mem, SIZE));
    CHECK(touch((char *)mem + SIZE - 1, false) == SIGSEGV, "fresh memory can be read");
    ops->enter(mem, SIZE);
    CHECK(touch((char *)mem + SIZE - 1, true) == 0, "a kernel cannot write");
    ops->leave(mem, SIZE);
    CHECK(touch(mem, false) == SIGSEGV, "readable after a call");
    CHECK(touch(mem, true) == SIGSEGV, "writable after a call");
    ops->close(mem, SIZE);
}

TEST(far_memory_keeps_what_is_put_there)
{
    const co_space_ops *ops = provider("far")->space;
    enum { SIZE = 5000 };
    char text[] = "over there", back[sizeof text] = "";
    void *mem;

    CHECK_OK(ops->open(&mem, SIZE));
    char *dst = (char *)mem + SIZE - sizeof text;
    ops->put(mem, SIZE, dst, text, sizeof text);
    CHECK(touch(dst, false) == SIGSEGV, "readable after put");
    ops->get(mem, SIZE, back, dst, sizeof text);
    CHECK(touch(dst, false) == SIGSEGV, "readable after get");
    CHECK(!strcmp(text, back), "got %s", back);
    ops->close(mem, SIZE);
}
