/* provenance.c -- where a run comes from, for header.json and the log book: the line that was typed, the keys
 * that differ from their defaults, the size of the data, and the git commit of the folder it was started in.
 *
 * The commit is read from the files of .git; git itself is not run. Values that look like secrets are left
 * out. */
#include "cli/train_int.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "book/book.h"

/* --- the line ------------------------------------------------------------------------------------------- */
/* key=VALUE of a secret key becomes key=(hidden). */
static void add_shown(co_str *out, const char *word)
{
    const char *equals = strchr(word, '=');
    char *key = equals ? co_sprintf("%.*s", (int)(equals - word), word) : NULL;

    if (key && co_book_is_secret(key))
        co_str_addf(out, " %s=(hidden)", key);
    else
        add_shell_word(out, word);
    co_free(key);
}

static void put_command(json_t *header, const line *l)
{
    co_str text = {0};

    co_str_add(&text, app_program());
    if (l->typed)
        for (char *const *word = l->typed; *word; word++)
            add_shown(&text, *word);
    else {
        co_str_add(&text, " train");
        for (int i = 0; i < l->n; i++)
            add_shown(&text, l->words[i]);
    }
    json_object_set_new(header, "command", co_json_string(co_str_text(&text)));
    co_str_fini(&text);
}

/* --- keys ----------------------------------------------------------------------------------------------- */
static void add_setting(void *settings, const char *key, const char *value, const char *usual)
{
    json_t *v = json_object();

    json_object_set_new(v, "value", co_json_string(co_book_is_secret(key) ? "(hidden)" : value));
    json_object_set_new(v, "default", co_json_string(usual));
    json_object_set_new(settings, key, v);
}

/* --- git ------------------------------------------------------------------------------------------------ */
/* The first line of a small file; the caller's, NULL if there is none. */
static char *first_line(const char *dir, const char *name)
{
    char *path = co_sprintf("%s/%s", dir, name), *text = NULL;

    if (path && co_fs_exists(path) && !co_fs_is_dir(path) && co_fs_read(&text, NULL, path, 1 << 16) == CO_OK)
        text[strcspn(text, "\r\n")] = '\0';
    co_free(path);
    co_errclear();
    return text;
}

static bool is_commit(const char *text)
{
    size_t n = text ? strspn(text, "0123456789abcdef") : 0;

    return text && (n == 40 || n == 64) && text[n] == '\0';
}

/* "HASH NAME" of packed-refs. */
static char *packed_ref(const char *dir, const char *ref)
{
    char *path = co_sprintf("%s/packed-refs", dir), *text = NULL, *found = NULL;

    if (path && co_fs_exists(path) && co_fs_read(&text, NULL, path, 16 << 20) == CO_OK)
        for (char *at = text; *at && !found;) {
            size_t n = strcspn(at, "\n"), blank = strcspn(at, " \n");
            if (at[blank] == ' ' && n - blank - 1 == strlen(ref) &&
                strncmp(at + blank + 1, ref, strlen(ref)) == 0)
                found = co_sprintf("%.*s", (int)blank, at);
            at += n + (at[n] == '\n');
        }
    co_free(text);
    co_free(path);
    co_errclear();
    return found;
}

/* What HEAD of the git folder points to; the caller's, or NULL. */
static char *head_of(const char *git)
{
    char *head = first_line(git, "HEAD"), *common = first_line(git, "commondir"), *commit = NULL;
    char *shared =
        common ? co_sprintf(*common == '/' ? "%s%s" : "%s/%s", *common == '/' ? "" : git, common) : NULL;

    if (is_commit(head))
        commit = co_strdup(head);
    else if (head && strncmp(head, "ref: refs/", 10) == 0 && !strstr(head, "..")) {
        commit = first_line(shared ? shared : git, head + 5);
        if (!commit)
            commit = packed_ref(shared ? shared : git, head + 5);
    }
    co_free(head);
    co_free(common);
    co_free(shared);
    if (is_commit(commit))
        return commit;
    co_free(commit);
    return NULL;
}

/* The nearest .git at or above the working directory: a folder, or a file that names one (a worktree). */
static char *git_commit(void)
{
    char dir[PATH_MAX], *commit = NULL;

    if (!getcwd(dir, sizeof dir))
        return NULL;
    for (;;) {
        char *git = co_sprintf("%s/.git", strcmp(dir, "/") == 0 ? "" : dir), *named = NULL;
        bool there = git && co_fs_exists(git);
        if (there && co_fs_is_dir(git))
            commit = head_of(git);
        else if (there && (named = first_line(dir, ".git")) && strncmp(named, "gitdir: ", 8) == 0)
            commit = head_of(named + 8);
        co_free(git);
        co_free(named);
        char *slash = strrchr(dir, '/');
        if (there || !slash || slash == dir)
            return commit;
        *slash = '\0';
    }
}

void provenance_put(const training *s, json_t *header)
{
    const co_dataset *data = co_plan_facts_of(s->plan)->data;
    json_t *settings = json_object();
    char *commit = git_commit();

    if (s->line)
        put_command(header, s->line);
    if (co_conf_changes(s->app.conf, add_setting, settings) != CO_OK)
        co_errclear();
    json_object_set_new(header, "settings", settings);
    json_object_set_new(header, "data",
                        json_pack("{s:I, s:I, s:I}", "train", (json_int_t)data->count[CO_SPLIT_TRAIN], "val",
                                  (json_int_t)data->count[CO_SPLIT_VAL], "test",
                                  (json_int_t)data->count[CO_SPLIT_TEST]));
    if (commit)
        json_object_set_new(header, "git", json_string(commit));
    co_free(commit);
}
