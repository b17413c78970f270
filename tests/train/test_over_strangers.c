/* A run among strangers: they come to the port of a host's link, and they read the wire. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "net/ns.h"
#include "train/over.h"

/* --- who comes to the port ------------------------------------------------------------------------------ */
static const char *const digits[] = {"model=cnn",
                                     "data=digits",
                                     "optim=adamw",
                                     "data.batch_size=64",
                                     "data.workers=0",
                                     "trainer.slices=16",
                                     "trainer.max_epochs=4",
                                     "callbacks.model_checkpoint.enabled=false",
                                     NULL};

TEST_WITHIN(three_hundred_strangers_at_the_port_of_a_host_change_no_weight_and_no_view, 120)
{
    over_end end[OVER_HOSTS];
    over_story story;
    char sha[65];
    over_scene s = {.words = digits, .hosts = 2, .ranks = 1, .story = &story, .event = {{OVER_STRANGERS, 1, 2}}};

    over_alone(digits, sha);
    over_run(&s, end);
    for (int h = 0; h < 2; h++)
        CHECK(end[h].there && !end[h].err && strcmp(end[h].sha, sha) == 0, "host %d: %.16s, not %.16s: %s", h,
              end[h].sha, sha, end[h].why);
    CHECK(end[0].views - end[0].redeals == 1, "%d views", end[0].views);
    CHECK(story.strangers == 300, "the run was over before all strangers had come");
}

/* --- who reads the wire --------------------------------------------------------------------------------- */
/* A learning rate of nothing: the weights that a newcomer is fed are those of the beginning, which are
 * known. */
static const char *const still[] = {"model=cnn",
                                    "data=digits",
                                    "optim=sgd",
                                    "optim.lr=0",
                                    "optim.weight_decay=0",
                                    "data.batch_size=64",
                                    "data.workers=0",
                                    "trainer.slices=16",
                                    "trainer.max_epochs=3",
                                    "callbacks.model_checkpoint.enabled=false",
                                    NULL};

typedef struct tap {
    pid_t pid;
    int file; /* all packets, one after the other */
} tap;

/* Packets at the bridge's end of the first host's cable, in both directions. */
static int open_tap(const ns_lan *lan)
{
    int room = 64 << 20;

    ns_go(lan->hub);
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
    struct sockaddr_ll at = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex("p0")};
    ns_leave(lan);
    if (fd < 0)
        test_skip("no packet sockets here: %s (needs root)", strerror(errno));
    CHECK(at.sll_ifindex && bind(fd, (struct sockaddr *)&at, sizeof at) == 0, "bind: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    return fd;
}

static tap tap_open(const ns_lan *lan)
{
    static uint8_t packet[1 << 17];
    int from = open_tap(lan);
    tap wire = {.file = memfd_create("tap", MFD_CLOEXEC)};

    wire.pid = fork();
    if (wire.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            ssize_t n = recv(from, packet, sizeof packet, 0);
            if (n > 0 && write(wire.file, packet, (size_t)n) != n)
                _exit(1);
        }
    }
    close(from);
    return wire;
}

/* How many of the patterns were on the wire. */
static int tap_close(tap *wire, const float *state, size_t count, int *of)
{
    enum { FLOATS = 8 };
    struct stat st;
    int found = 0;

    kill(wire->pid, SIGKILL);
    waitpid(wire->pid, NULL, 0);
    CHECK(fstat(wire->file, &st) == 0 && st.st_size > 0, "nothing was recorded");
    const char *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, wire->file, 0);
    *of = 0;
    for (size_t at = 0; at + FLOATS <= count; at += count / 40) {
        bool planted = state[at] != 0 && state[at] != state[at + 1]; /* no biases: they begin as zeros */
        *of += planted;
        found += planted && memmem(bytes, (size_t)st.st_size, state + at, FLOATS * sizeof *state) != NULL;
    }
    test_note("%lld bytes recorded: %d of %d patterns of eight weights found", (long long)st.st_size, found,
              *of);
    munmap((void *)(uintptr_t)bytes, (size_t)st.st_size);
    close(wire->file);
    return found;
}

/* A run whose second host joins in the middle and gets the state over the wire. */
static int found_on_the_wire(const ns_lan *lan, bool plain, const float *state, size_t count, int *of)
{
    over_end end[OVER_HOSTS];
    over_scene s = {.words = still,
                    .hosts = 1,
                    .ranks = 1,
                    .most = 2,
                    .lan = lan,
                    .plain = plain,
                    .event = {{OVER_JOIN, 1, 3}}};
    tap wire = tap_open(lan);

    over_run(&s, end);
    for (int h = 0; h < 2; h++)
        CHECK(end[h].there && !end[h].err && end[h].status == CO_STATUS_DONE, "host %d: %s", h, end[h].why);
    CHECK(strcmp(end[0].sha, end[1].sha) == 0 && end[0].views >= 3, "the newcomer was not fed");
    return tap_close(&wire, state, count, of);
}

TEST_WITHIN(weights_are_found_on_the_wire_of_a_run_without_tls_and_not_of_one_with_tls, 120)
{
    ns_lan lan = ns_open(2);
    stage g;
    int of;

    stage_open(&g, still);
    stage_set(&g, "trainer.devices=1");
    co_plan *plan = stage_plan(&g);
    size_t count = plan->layout->count;
    const float *state = plan->regions->state;
    int found = found_on_the_wire(&lan, true, state, count, &of);
    CHECK(of > 10 && found > of / 2, "%d of %d patterns found without TLS: this test would not see them",
          found, of);
    found = found_on_the_wire(&lan, false, state, count, &of);
    CHECK(found == 0, "%d of %d patterns found with TLS", found, of);
    co_plan_free(plan);
    stage_close(&g);
}
