/* One table: hosts x ranks x what happens to them x models. Hosts are processes with the real roster and the
 * link tcp with TLS. Every host that ends by itself has the weights of one host alone, and no view changes
 * without a cause.
 *
 * The first host keeps the roster, and it is the one that writes. If it is killed (no etcd here), the others
 * end with 75, each with the state of a step. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "net/ns.h"
#include "train/over.h"

typedef enum { UNDISTURBED, RANK_KILLED, HOST_KILLED, CUT_OFF, JOINED, UNEQUAL, WRITER_KILLED, KINDS } kind;

static const char *const kind_name[] = {
    "undisturbed",   "a rank killed",  "a host killed",    "a host cut off, and back as a new one",
    "a host joined", "unequal speeds", "the writer killed"};

static char verse[1024]; /* data.path= */
static const char *const lm[] = {"model=lm",
                                 "data=text",
                                 "optim=adamw",
                                 verse,
                                 "model.d_model=16",
                                 "model.heads=2",
                                 "model.layers=1",
                                 "model.dropout=0.1",
                                 "data.max_len=16",
                                 "data.batch_size=16",
                                 "data.eval_slice=5",
                                 "data.workers=0",
                                 "trainer.slices=16",
                                 "trainer.limit_val_batches=2",
                                 "trainer.limit_test_batches=1",
                                 "trainer.max_epochs=-1",
                                 "trainer.max_steps=300",
                                 "callbacks.model_checkpoint.enabled=false",
                                 NULL};

static const char *const factors[] = {"model=factors",
                                      "data=fake_ratings",
                                      "optim=sparse_adam",
                                      "data.users=300",
                                      "data.items=200",
                                      "data.count=3200",
                                      "data.batch_size=32",
                                      "data.workers=0",
                                      "model.width=8",
                                      "trainer.slices=16",
                                      "trainer.max_epochs=15",
                                      "callbacks.model_checkpoint.enabled=false",
                                      NULL};

/* 20 steps of two pictures a slice: some ten seconds on two cores. */
static char cifar[1024]; /* data.dir= */
static const char *const resnet18[] = {"model=resnet18",
                                       "data=cifar10",
                                       "optim=sgd",
                                       cifar,
                                       "data.augment=cifar",
                                       "data.batch_size=32",
                                       "data.workers=0",
                                       "optim.momentum=0.9",
                                       "trainer.slices=16",
                                       "trainer.limit_val_batches=1",
                                       "trainer.limit_test_batches=1",
                                       "trainer.max_epochs=-1",
                                       "trainer.max_steps=20",
                                       "callbacks.model_checkpoint.enabled=false",
                                       NULL};

static const struct part {
    const char *name;
    const char *const *words;
    int deadline_s; /* of a run; 0: the usual one */
} part[] = {
    {"digits/cnn", over_digits, 0}, {"lm", lm, 0}, {"factors", factors, 0}, {"cifar10/resnet18", resnet18, 180}};

enum { AFTER = 4 }; /* the accident happens after this step */

/* Views that the first host enters; -1: it does not live to tell.
 * A newcomer costs two: it is fed, then it works. */
static int views_of(kind what, int hosts)
{
    switch (what) {
    case HOST_KILLED:
        return hosts > 1 ? 2 : 1;
    case CUT_OFF:
        return hosts > 1 ? 4 : 1;
    case JOINED:
        return 3;
    case WRITER_KILLED:
        return -1;
    case UNDISTURBED:
    case RANK_KILLED:
    case UNEQUAL:
    case KINDS:
        break;
    }
    return 1;
}

/* Hosts are namespaces on a bridge, so that a cable can be cut; without root they are on loopback, and a host
 * that would be cut off is stopped. */
static const ns_lan *lan(void)
{
    static ns_lan it;
    static bool is_open;

    if (!is_open && ns_allowed()) {
        it = ns_open(OVER_HOSTS);
        is_open = true;
    }
    return is_open ? &it : NULL;
}

static over_scene scene_of(const struct part *of, int hosts, int ranks, kind what)
{
    over_scene s = {.words = of->words,
                    .hosts = hosts,
                    .ranks = ranks,
                    .most = hosts + 1,
                    .deadline_s = of->deadline_s,
                    .lan = lan()};
    int last = hosts - 1;

    switch (what) {
    case RANK_KILLED:
        s.event[0].what = OVER_KILL_RANK;
        break;
    case HOST_KILLED:
        s.event[0].what = hosts > 1 ? OVER_KILL : OVER_NOTHING;
        break;
    case CUT_OFF:
        s.event[0].what = hosts > 1 ? OVER_CUT : OVER_NOTHING;
        s.event[0].ms = 2000;
        s.event[1].what = hosts > 1 ? OVER_JOIN : OVER_NOTHING;
        break;
    case JOINED:
        s.event[0].what = OVER_JOIN;
        break;
    case UNEQUAL:
        s.slow = last;
        break;
    case WRITER_KILLED:
        s.event[0].what = OVER_KILL;
        break;
    case UNDISTURBED:
    case KINDS:
        break;
    }
    s.event[0].host = what == WRITER_KILLED ? 0 : what == JOINED ? hosts : last;
    s.event[0].after = AFTER;
    s.event[1].host = hosts;
    s.event[1].in_view = 2; /* the host that was cut off is lost */
    return s;
}

/* The weights that one host alone has after `steps` steps. */
static void check_state(const struct part *of, const over_end *end, int h, const char *row)
{
    const char *words[32];
    char most[64], sha[65];
    int n = 0;

    for (; of->words[n]; n++)
        words[n] = of->words[n];
    snprintf(most, sizeof most, "trainer.max_steps=%lld", (long long)end[h].steps);
    words[n++] = most;
    words[n] = NULL;
    over_alone(words, sha);
    CHECK(strcmp(end[h].sha, sha) == 0, "%s: host %d has not the state of step %lld: %.16s, not %.16s", row,
          h, (long long)end[h].steps, end[h].sha, sha);
}

static void run_row(const struct part *of, const char *sha, int hosts, int ranks, kind what)
{
    over_scene s = scene_of(of, hosts, ranks, what);
    over_end end[OVER_HOSTS];
    over_story story;
    char row[128];
    bool was_left = hosts > 1 && what == WRITER_KILLED;
    int views = views_of(what, hosts);

    snprintf(row, sizeof row, "%s, %d x %d, %s", of->name, hosts, ranks, kind_name[what]);
    s.story = &story;
    s.name = row;
    over_run(&s, end);
    CHECK(story.orphans == 0, "%s: %d processes were left", row, story.orphans);
    for (int h = 0; h <= hosts; h++) {
        bool comes = h < hosts || what == JOINED || (what == CUT_OFF && hosts > 1);
        bool killed = (what == WRITER_KILLED && h == 0) || (what == HOST_KILLED && hosts > 1 && h == hosts - 1);
        bool left = (was_left && h > 0) || (what == CUT_OFF && hosts > 1 && h == hosts - 1);
        CHECK(end[h].there == (comes && !killed), "%s: host %d", row, h);
        if (!end[h].there)
            continue;
        CHECK(!end[h].err && end[h].status == (left ? CO_STATUS_STOPPED : CO_STATUS_DONE),
              "%s: host %d, after step %lld: status %d, %s", row, h, (long long)end[h].steps, end[h].status,
              end[h].why);
        if (left)
            check_state(of, end, h, row);
        else
            CHECK(strcmp(end[h].sha, sha) == 0, "%s: host %d: %.16s, not %.16s", row, h, end[h].sha, sha);
    }
    CHECK(views < 0 || end[0].views - end[0].redeals == views, "%s: %d views, not %d", row, end[0].views,
          views);
    CHECK(views < 0 || story.reported == end[0].steps, "%s: the steps were not reported in order", row);
}

static void open_parts(void)
{
    snprintf(verse, sizeof verse, "data.path=%s", test_repo("tests/data/verse.txt"));
}

/* Every value of every column, and each disturbance with several hosts. */
static void ten_rows(const struct part *of)
{
    static const struct {
        int hosts, ranks;
        kind what;
    } row[] = {{1, 1, JOINED},      {1, 4, UNDISTURBED}, {1, 2, RANK_KILLED},   {2, 1, UNEQUAL},
               {2, 2, CUT_OFF},     {2, 4, HOST_KILLED}, {3, 1, WRITER_KILLED}, {3, 2, JOINED},
               {3, 4, RANK_KILLED}, {3, 1, UNDISTURBED}};
    char sha[65];

    over_alone(of->words, sha);
    for (size_t i = 0; i < CO_COUNT(row); i++)
        run_row(of, sha, row[i].hosts, row[i].ranks, row[i].what);
    test_note("%s: %d rows, one hash: %.16s", of->name, (int)CO_COUNT(row), sha);
}

TEST_WITHIN(ten_rows_of_hosts_ranks_and_accidents_give_the_weights_of_one_host, 150)
{
    ten_rows(&part[0]);
}

static void whole_table(const struct part *of)
{
    static const int ranks[] = {1, 2, 4};
    char sha[65];
    int rows = 0;

    open_parts();
    over_alone(of->words, sha);
    for (int what = 0; what < KINDS; what++)
        for (int hosts = 1; hosts <= 3; hosts++)
            for (size_t r = 0; r < CO_COUNT(ranks); r++, rows++)
                run_row(of, sha, hosts, ranks[r], (kind)what);
    test_note("%s: %d rows, one hash: %.16s", of->name, rows, sha);
}

TEST_LONG(all_rows_of_hosts_ranks_and_accidents_give_the_weights_of_one_host_for_digits)
{
    whole_table(&part[0]);
}

TEST_LONG(all_rows_of_hosts_ranks_and_accidents_give_the_weights_of_one_host_for_lm)
{
    whole_table(&part[1]);
}

TEST_LONG(all_rows_of_hosts_ranks_and_accidents_give_the_weights_of_one_host_for_factors)
{
    whole_table(&part[2]);
}

TEST_LONG_WITHIN(all_rows_of_hosts_ranks_and_accidents_give_the_weights_of_one_host_for_resnet18, 3600)
{
    const char *data = getenv("COHORT_DATA");
    char folder[1000];

    snprintf(folder, sizeof folder, "%s/cifar10", data ? data : test_repo("../shared/data"));
    if (access(folder, R_OK) != 0)
        test_skip("no %s: set COHORT_DATA to a folder with cifar10/ in it", folder);
    snprintf(cifar, sizeof cifar, "data.dir=%s", folder);
    whole_table(&part[3]);
}
