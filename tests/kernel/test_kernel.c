/* The table of providers, and `far`, whose memory only its own calls may touch. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "harness.h"
#include "kernel/kernel_int.h"

static const co_kernels *kernels_of(const char *level)
{
    const co_kernels *k = NULL;

    CHECK_OK(co_kernels_get(&k, level));
    return k;
}

TEST(every_operator_has_a_row_in_every_provider)
{
    for (int i = 0; i < provider_count; i++) {
        const provider *p = &providers[i];
        static co_kernels k;
        if (!p->has()) {
            test_note("%s: this CPU lacks %s", p->name, p->needs);
            continue;
        }
        memset(&k, 0, sizeof k);
        p->fill(&k);
        for (int op = 0; op < CO_OP_COUNT; op++)
            CHECK(k.row[op].fn, "%s: no kernel for %s", p->name, co_op_name((co_op)op));
        CHECK(k.version > 0 && k.real_size == 4, "%s: version %d, real_size %d", p->name, k.version,
              k.real_size);
        CHECK(!memcmp(k.row, kernels_of(p->name)->row, sizeof k.row), "%s: two fills differ", p->name);
    }
}

TEST(every_provider_has_a_name_of_its_own_and_is_handed_out_where_the_cpu_has_it)
{
    for (int i = 0; i < provider_count; i++) {
        const provider *p = &providers[i];
        const co_kernels *k = NULL;
        for (int j = 0; j < i; j++)
            CHECK(strcmp(p->name, providers[j].name) != 0, "two are called %s", p->name);
        CHECK(strcmp(p->name, "auto") != 0 && *p->numerics, "%s: a name of its own, and a numerics", p->name);
        if (!p->has()) {
            CHECK(p->needs, "%s: a CPU may lack it, and the message cannot say what", p->name);
            CHECK_FAILS(co_kernels_get(&k, p->name), CO_EINPUT, p->needs);
            continue;
        }
        CHECK_OK(co_kernels_get(&k, p->name));
        CHECK(!strcmp(k->level, p->name) && !strcmp(k->numerics, p->numerics), "%s: got %s, %s", p->name,
              k->level, k->numerics);
        char name[64];
        snprintf(name, sizeof name, "%s.%d", p->numerics, k->version);
        CHECK(!strcmp(co_kernels_name(k), name), "%s: %s, not %s", p->name, co_kernels_name(k), name);
    }
}

/* Returns the line of a repository file that contains `what`, without the newline; the caller frees it. */
static char *line_with(const char *file, const char *what)
{
    char *text;
    size_t len;

    CHECK_OK(co_fs_read(&text, &len, test_repo(file), 1 << 20));
    char *at = strstr(text, what);
    CHECK(at, "%s has no line with %s", file, what);
    while (at > text && at[-1] != '\n')
        at--;
    char *line = strndup(at, strcspn(at, "\n"));
    co_free(text);
    return line;
}

TEST(every_level_that_the_makefile_compiles_is_a_provider)
{
    char *line = line_with("Makefile", "LEVELS :="), *rest = NULL;
    int n = 0;

    for (char *word = strtok_r(strchr(line, '=') + 1, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest), n++) {
        int i = 0;
        while (i < provider_count && strcmp(providers[i].name, word) != 0)
            i++;
        CHECK(i < provider_count, "level %s has no row in src/kernel/providers.c", word);
    }
    CHECK(n > 0, "no levels");
    free(line);
}

TEST(the_documentation_of_trainer_kernels_names_every_provider)
{
    char *line = line_with("docs/keys.md", "`trainer.kernels`");

    for (int i = 0; i < provider_count; i++)
        CHECK(strstr(line, providers[i].name), "docs/keys.md does not name %s: %s", providers[i].name, line);
    free(line);
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
    CHECK(!strcmp(co_kernels_name(kernels_of("ref")), "ref.1"), "got %s", co_kernels_name(kernels_of("ref")));
    CHECK(!strcmp(co_kernels_name(kernels_of("far")), "far.1"), "got %s", co_kernels_name(kernels_of("far")));
    CHECK(kernels_of("ref")->real_size == 4 && !kernels_of("ref")->space, "ref: floats in host memory");
    CHECK(kernels_of("far")->real_size == 4 && kernels_of("far")->space, "far: floats in a space of its own");
    CHECK(kernels_of("ref") == kernels_of("ref"), "tables are static");
}

TEST(an_unknown_level_is_refused_with_the_names_there_are)
{
    const co_kernels *k = NULL;

    CHECK_FAILS(co_kernels_get(&k, "avx1024"), CO_EINPUT, "'avx1024': no such level");
    CHECK_FAILS(co_kernels_get(&k, ""), CO_EINPUT, "auto, avx512, avx2, ");
    for (int i = 0; i < provider_count; i++)
        CHECK_FAILS(co_kernels_get(&k, "avx1024"), CO_EINPUT, providers[i].name);
    CHECK(!k, "written on failure");
}

TEST(auto_takes_the_first_provider_that_the_cpu_has)
{
    int first = 0;

    while (!providers[first].has())
        first++;
    CHECK(kernels_of("auto") == kernels_of(providers[first].name), "got %s", kernels_of("auto")->level);
    CHECK(!kernels_of("auto")->space, "auto computes in host memory");
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        CHECK(!strcmp(kernels_of("auto")->numerics, "avx2"), "got %s", kernels_of("auto")->level);
}

/* The signal that kills a child process when it touches p; 0 if none does. */
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
    const co_space_ops *ops = kernels_of("far")->space;
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
    const co_space_ops *ops = kernels_of("far")->space;
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
