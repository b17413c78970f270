/* What /proc says about a process. */
#include <fcntl.h>
#include <unistd.h>

#include "harness.h"
#include "proc/look.h"

TEST(the_bytes_that_a_process_has_read_are_counted)
{
    static char piece[10000];
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

    if (access("/proc/self/io", R_OK) != 0)
        test_skip("the kernel does not count what a process reads");
    uint64_t before = co_proc_bytes_read(getpid());
    CHECK(zero >= 0 && read(zero, piece, sizeof piece) == sizeof piece, "read: %m");
    uint64_t after = co_proc_bytes_read(getpid());
    CHECK(after >= before + sizeof piece, "%llu bytes before, %llu after", (unsigned long long)before,
          (unsigned long long)after);
    CHECK(co_proc_bytes_read(0x7ffffffe) == 0, "a process that does not exist has read something");
    close(zero);
}
