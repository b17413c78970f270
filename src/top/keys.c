/* keys.c -- what a key does to the state. Knows no terminal. */
#include "top/top_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* Typing a filter. */
static void type(top_state *state, int key)
{
    char *filter = state->view == TOP_RUN ? state->ranks.filter : state->runs.filter;
    size_t n = strlen(filter);

    state->scroll = 0;
    if (key == TOP_KEY_ENTER)
        state->types = false;
    else if (key == TOP_KEY_ESCAPE) {
        state->types = false;
        filter[0] = '\0';
    } else if (key == TOP_KEY_BACK && n > 0)
        filter[n - 1] = '\0';
    else if (key >= ' ' && key < 127 && n + 1 < TOP_FILTER) {
        filter[n] = (char)key;
        filter[n + 1] = '\0';
    }
}

/* The chosen run moves by so many places of the list as it is shown. */
static void move(top_state *state, int by)
{
    int n, here = 0, *at = top_runs_sorted(state, &n);

    for (int i = 0; i < n && at; i++)
        here = at[i] == state->chosen ? i : here;
    here += by;
    here = here >= n ? n - 1 : here;
    if (at && n > 0)
        state->chosen = at[here > 0 ? here : 0];
    co_free(at);
}

static void scroll(top_state *state, int by)
{
    int most = top_chosen(state) ? top_ranks_shown(state, top_chosen(state)) - 1 : 0;

    state->scroll += by;
    state->scroll = state->scroll > most ? most : state->scroll;
    state->scroll = state->scroll > 0 ? state->scroll : 0;
}

static void sort(top_state *state)
{
    top_order *order = state->view == TOP_RUN ? &state->ranks : &state->runs;
    const char *(*name)(int) = state->view == TOP_RUN ? top_rank_order : top_run_order;

    order->by = name(order->by + 1) ? order->by + 1 : 0;
    state->scroll = 0;
}

/* --- a function per key --------------------------------------------------------------------------------- */
static top_action quit(top_state *state, int by)
{
    (void)state;
    (void)by;
    return TOP_QUIT;
}

static top_action look_again(top_state *state, int by)
{
    (void)state;
    (void)by;
    return TOP_LOOK_AGAIN;
}

static top_action help(top_state *state, int by)
{
    (void)by;
    state->before_help = state->view;
    state->view = TOP_HELP;
    return TOP_GO_ON;
}

static top_action sort_by_next(top_state *state, int by)
{
    (void)by;
    sort(state);
    return TOP_GO_ON;
}

static top_action turn_round(top_state *state, int by)
{
    top_order *order = state->view == TOP_RUN ? &state->ranks : &state->runs;

    (void)by;
    order->reverse = !order->reverse;
    return TOP_GO_ON;
}

static top_action begin_filter(top_state *state, int by)
{
    (void)by;
    state->types = true;
    return TOP_GO_ON;
}

static top_action ask_to_stop(top_state *state, int by)
{
    const top_run *run = top_chosen(state);

    (void)by;
    if (run && run->is_live)
        state->asks = true;
    else
        snprintf(state->message, sizeof state->message, "%s",
                 run ? "this run does not run on this machine" : "there is no run to stop");
    return TOP_GO_ON;
}

static top_action open_run(top_state *state, int by)
{
    (void)by;
    if (state->view == TOP_RUNS && top_chosen(state)) {
        state->view = TOP_RUN;
        state->scroll = 0;
    }
    return TOP_GO_ON;
}

static top_action go_back(top_state *state, int by)
{
    (void)by;
    state->view = state->only ? state->view : TOP_RUNS;
    return TOP_GO_ON;
}

static top_action next_run(top_state *state, int by)
{
    move(state, by);
    return TOP_GO_ON;
}

static top_action go(top_state *state, int by)
{
    if (state->view == TOP_RUN)
        scroll(state, by);
    else
        move(state, by);
    return TOP_GO_ON;
}

enum { FAR = 1 << 20, PAGE = FAR + 1, CTRL_C = 3 };
static const struct {
    int key;
    top_action (*act)(top_state *state, int by);
    int by; /* PAGE: half a screen */
} keys[] = {{'q', quit, 0},
            {'Q', quit, 0},
            {' ', look_again, 0},
            {'h', help, 0},
            {'?', help, 0},
            {'s', sort_by_next, 0},
            {'r', turn_round, 0},
            {'/', begin_filter, 0},
            {'k', ask_to_stop, 0},
            {'n', next_run, 1},
            {'p', next_run, -1},
            {TOP_KEY_ENTER, open_run, 0},
            {TOP_KEY_ESCAPE, go_back, 0},
            {TOP_KEY_LEFT, go_back, 0},
            {TOP_KEY_UP, go, -1},
            {TOP_KEY_DOWN, go, 1},
            {TOP_KEY_PAGE_UP, go, -PAGE},
            {TOP_KEY_PAGE_DOWN, go, PAGE},
            {TOP_KEY_HOME, go, -FAR},
            {TOP_KEY_END, go, FAR}};

top_action top_key(top_state *state, int key, int rows)
{
    bool asked = state->asks;

    state->message[0] = '\0';
    state->asks = false;
    if (key == CTRL_C)
        return TOP_QUIT;
    if (asked)
        return key == 'y' || key == 'Y' ? TOP_STOP_RUN : TOP_GO_ON;
    if (state->types) {
        type(state, key);
        return TOP_GO_ON;
    }
    if (state->view == TOP_HELP) {
        state->view = state->before_help;
        return key == 'q' ? TOP_QUIT : TOP_GO_ON;
    }
    for (size_t i = 0; i < CO_COUNT(keys); i++)
        if (keys[i].key == key) {
            int by = keys[i].by;
            return keys[i].act(state, by == PAGE ? rows / 2 : by == -PAGE ? -(rows / 2) : by);
        }
    return TOP_GO_ON;
}
