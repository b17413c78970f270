/* A run of views whose keeper is lost: the others meet again through a real etcd and go on. */
#include "roster/cast.h"
#include "roster/etcds.h"

#include <sys/wait.h>

static cast cast_with_etcd(const etcds *e, int min, int max, int least)
{
    cast all = cast_of(min, max, least);

    all.scene.where.endpoint[0] = '\0';
    all.scene.where.insecure = true;
    all.scene.where.lost_after_s = 1;
    all.scene.where.last_call_s = 5;
    all.scene.where.etcd = (co_meet_etcd){.members = e->members, .lease_s = 2};
    return all;
}

/* Starts a process with host a, which keeps the roster and plays until it is killed, or until the run is
 * over. */
static pid_t keeper_process(cast *all)
{
    pid_t pid = fork();

    if (pid != 0) {
        wait_for("keeps");
        return pid;
    }
    enter_as(all, 0, whole_at_start);
    talk(all->host[0].r, "find this one (port ");
    CHECK_OK(co_fs_write_atomic("keeps", "", 0));
    while (!all->host[0].over && !all->host[0].broken)
        play(all);
    _exit(all->host[0].status);
}

static void end_all(cast *all, int from)
{
    for (int i = from; i < CAST_MOST; i++)
        if (all->host[i].r)
            co_roster_ended(all->host[i].r, all->host[i].number);
    for (int i = from; i < CAST_MOST; i++)
        if (all->host[i].r) {
            PLAY_UNTIL(all, all->host[i].over);
            CHECK(all->host[i].status == 0, "status %d: %s", all->host[i].status, all->host[i].text);
        }
}

TEST(a_run_goes_on_in_the_next_view_when_its_keeper_is_killed)
{
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    cast all = cast_with_etcd(&e, 3, 3, 1);
    pid_t pid = keeper_process(&all);
    enter_as(&all, 1, whole_at_start);
    enter_as(&all, 2, whole_at_start);
    PLAY_UNTIL(&all, all.host[1].view && all.host[2].view);
    int place[] = {0, all.host[1].id, all.host[2].id};
    all.host[1].at = (co_position){.unit = 7, .whole = true, .since = 1};
    all.host[2].at = (co_position){.unit = 7, .whole = true, .ready = true, .since = 1};
    double began = co_now_s();
    kill(pid, SIGKILL);
    PLAY_UNTIL(&all, all.host[1].number > 1 && all.host[2].number > 1);
    CHECK(test_contains(all.host[1].text, "and it kept the roster"), "%s", all.host[1].text);
    PLAY_UNTIL(&all, in_view(&all, 2, 2));
    test_note("the next view began after %.1f s, with a lease of 2 s", co_now_s() - began);
    const co_view *view = &all.host[1].view->view;
    CHECK(view->held == 7 && view->giver[view->deal.me] == 1 - view->deal.me && leaves(&all.host[1]) == 8 &&
              leaves(&all.host[2]) == 8,
          "unit %u, given by %d", view->held, view->giver[view->deal.me]);
    CHECK(all.host[1].id == place[1] && all.host[2].id == place[2], "places %d and %d", all.host[1].id,
          all.host[2].id);
    actor *late = enter_as(&all, 3, nothing_yet);
    PLAY_UNTIL(&all, in_view(&all, 3, 3));
    CHECK(leaves(late) == 0 && late->id != place[1] && late->id != place[2], "place %d", late->id);
    end_all(&all, 1);
    test_wait(pid, 5);
    cast_close(&all);
    etcds_close(&e);
}

TEST(a_keeper_that_was_only_silent_comes_back_to_the_run_as_a_newcomer)
{
    etcds e;
    int stopped;

    etcds_open(&e, 1, "127.0.0.1");
    cast all = cast_with_etcd(&e, 3, 3, 1);
    pid_t pid = keeper_process(&all);
    enter_as(&all, 1, whole_at_start);
    enter_as(&all, 2, whole_at_start);
    PLAY_UNTIL(&all, all.host[1].view && all.host[2].view);
    kill(pid, SIGSTOP);
    CHECK(waitpid(pid, &stopped, WUNTRACED) == pid && WIFSTOPPED(stopped), "it does not stop");
    PLAY_UNTIL(&all, in_view(&all, 2, 2));
    all.host[1].at.unit = all.host[2].at.unit = 30;
    kill(pid, SIGCONT);
    PLAY_UNTIL(&all, all.host[1].view->view.deal.hosts == 3 && all.host[2].view->view.deal.hosts == 3);
    const co_view *view = &all.host[1].view->view;
    int fed = 0;
    for (int h = 0; h < 3; h++)
        fed += view->feeder[h] >= 0 && view->anew[h] && view->deal.id[h] == 0;
    CHECK(fed == 1 && view->held == 29, "the old keeper's state counts");
    kill(pid, SIGKILL);
    test_wait(pid, 5);
    PLAY_UNTIL(&all, all.host[1].view->view.deal.hosts == 2 && all.host[2].view->view.deal.hosts == 2);
    end_all(&all, 1);
    cast_close(&all);
    etcds_close(&e);
}

TEST(a_keeper_that_lost_a_host_and_then_etcd_freezes_its_run_and_ends)
{
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    cast all = cast_with_etcd(&e, 2, 2, 1);
    all.scene.where.join_timeout_s = 4;
    enter_as(&all, 0, whole_at_start);
    PLAY_UNTIL(&all, test_contains(all.host[0].talk, "find this one"));
    enter_as(&all, 1, whole_at_start);
    PLAY_UNTIL(&all, in_view(&all, 2, 1));
    leave_stage(&all.host[1]);
    PLAY_UNTIL(&all, in_view(&all, 1, 2)); /* etcd has confirmed that b cannot go on */
    uint32_t alone = all.host[0].number;
    etcds_kill(&e, 0);
    PLAY_UNTIL(&all, all.host[0].number > alone);
    CHECK(test_contains(all.host[0].text, "not reached etcd"), "%s", all.host[0].text);
    PLAY_UNTIL(&all, all.host[0].over);
    CHECK(all.host[0].status == CO_EXIT_PREEMPTED && all.host[0].view->view.deal.view == alone,
          "status %d: %s", all.host[0].status, all.host[0].text);
    cast_close(&all);
    etcds_close(&e);
}
