/* suggest.c -- `cohort predict user=15 k=10`: the items that a trained run recommends to a user.
 *
 * A line for each: its place, the predicted rating, the item's id and its title. Items that the user has
 * rated are left out. Without a run on the line, the newest one below logs/ that was trained on ratings is
 * used.
 */
#include "cli/eval_int.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"

enum { MOST = 100000, USUAL = 10 };

/* --- words ---------------------------------------------------------------------------------------------- */
static co_err read_number(const char *word, const char *value, long long least, long long most, long long *out)
{
    if (!co_str_to_i64(value, out) || *out < least || *out > most)
        return co_fail(CO_EINPUT, "predict: %s: a whole number from %lld to %lld is needed", word, least, most);
    return CO_OK;
}

/* Takes user=N and k=N off the line. */
co_err take_wish(wish *w, int *argc, char **argv)
{
    int n = 0;
    long long k = USUAL;
    const char *k_word = NULL;

    *w = (wish){0};
    for (int i = 0; i < *argc; i++) {
        if (strncmp(argv[i], "user=", 5) == 0) {
            long long user;
            CO_TRY(read_number(argv[i], argv[i] + 5, 0, UINT32_MAX, &user));
            w->user = user;
            w->wanted = true;
        } else if (strncmp(argv[i], "k=", 2) == 0) {
            k_word = argv[i];
            CO_TRY(read_number(argv[i], argv[i] + 2, 1, MOST, &k));
        } else
            argv[n++] = argv[i];
    }
    argv[n] = NULL;
    *argc = n;
    w->k = (int)k;
    if (k_word && !w->wanted)
        return co_fail(CO_EINPUT, "predict: %s: for whom? user=NUMBER says it", k_word);
    return CO_OK;
}

/* --- the run -------------------------------------------------------------------------------------------- */
/* Run folders are named by date, so the greatest name is the newest. */
static void look_in(char **best, char name[256], const char *task)
{
    char **runs = NULL, *root = co_sprintf("logs/%s/runs", task);
    size_t n = 0;

    if (root && co_fs_is_dir(root) && co_fs_list(&runs, &n, root) == CO_OK)
        for (size_t i = 0; i < n; i++) {
            char *dir = co_sprintf("%s/%s", root, runs[i]);
            if (dir && strcmp(runs[i], name) > 0 && has(dir, "ids.csv") && has(dir, "checkpoints/last")) {
                snprintf(name, 256, "%s", runs[i]);
                co_free(*best);
                *best = dir;
            } else
                co_free(dir);
        }
    co_fs_list_free(runs, n);
    co_free(root);
}

char *newest_run_of_ratings(void)
{
    char **tasks = NULL, *best = NULL, name[256] = "";
    size_t n = 0;

    if (co_fs_is_dir("logs") && co_fs_list(&tasks, &n, "logs") == CO_OK)
        for (size_t i = 0; i < n; i++)
            look_in(&best, name, tasks[i]);
    co_fs_list_free(tasks, n);
    co_errclear();
    return best;
}

int64_t lowest_user(const co_dataset *data)
{
    return data->names ? data->names->user_id(data, 0) : 0;
}

/* --- printing ------------------------------------------------------------------------------------------- */
static int64_t id_of(const co_dataset *data, uint32_t item)
{
    return data->names ? data->names->item_id(data, item) : item;
}

static void print_one(const co_dataset *data, int place, const co_recommended *r, bool json)
{
    const char *title = data->names ? data->names->title(data, r->item) : NULL;
    char clean[512] = "";

    if (title)
        co_utf8_clean(clean, sizeof clean, title);
    if (!json) {
        printf("%3d  %.2f  %7lld  %s\n", place, (double)r->score, (long long)id_of(data, r->item), clean);
        return;
    }
    json_t *j = json_pack("{s:i, s:I, s:o}", "place", place, "item", (json_int_t)id_of(data, r->item),
                          "score", co_json_num((double)r->score));
    if (title)
        json_object_set_new(j, "title", json_string(title));
    co_json_print(j);
}

static co_err find_user(const co_dataset *data, int64_t id, uint32_t *row)
{
    *row = (uint32_t)id;
    if (data->names ? data->names->user_row(data, id, row) : id < data->io.users)
        return CO_OK;
    return co_fail(
        CO_EINPUT,
        "predict: user=%lld: the ratings have no such user, and nothing is known of a stranger's taste; the"
        " run's ids.csv lists its %lld user%s",
        (long long)id, (long long)data->io.users, data->io.users == 1 ? "" : "s");
}

co_err predict_wish(eval_line *t, const wish *w)
{
    const co_dataset *data = co_plan_facts_of(t->plan)->data;
    uint32_t row;
    int n = 0;

    if (!data->io.users)
        return co_fail(CO_EINPUT, "predict: user=%lld is for runs on ratings; data=%s has none",
                       (long long)w->user, data->def->name);
    CO_TRY(find_user(data, w->user, &row));
    co_recommended *list = co_array((size_t)w->k + 1, sizeof *list);
    co_err err = list ? co_recommend(t->plan, row, w->k, list, &n) : CO_ENOMEM;
    for (int i = 0; i < n && !err; i++)
        print_one(data, i + 1, &list[i], t->line.json);
    co_free(list);
    return err;
}
