#include "harness.h"

#include <signal.h>
#include <string.h>

#include "base/signal.h"

TEST(every_signal_has_its_name)
{
    for (int sig = 1; sig < 32; sig++)
        CHECK(strncmp(co_signal_name(sig), "SIG", 3) == 0 &&
                  (strcmp(co_signal_name(sig) + 3, sigabbrev_np(sig)) == 0 || sig == SIGIO),
              "%d is %s", sig, co_signal_name(sig));
    CHECK(strcmp(co_signal_name(0), "SIG?") == 0 && strcmp(co_signal_name(-1), "SIG?") == 0 &&
              strcmp(co_signal_name(34), "SIG?") == 0 && strcmp(co_signal_name(1 << 30), "SIG?") == 0,
          "numbers without a name");
}
