/* habits.c -- translates flags and bare words of other programs into our words, and prints a note for each.
 *
 *     -a resnet18 -b 32 --epochs 1 DIR      pytorch/examples' main.py and its children
 *     --batch_size 8 --preload latest       the transformer's train.py
 *     --standalone --nproc_per_node=4       torchrun
 *     50 10                                 the DDP tutorial: epochs, and how often to save
 *
 * A row's name is a flag (with dashes for underscores), or the kind of a bare word: a folder, a number, a
 * script. Keys of other programs are translated by the configuration (habit_keys).
 */
#include "cli/habits_int.h"

#include <stdio.h>
#include <string.h>

#include "term/help.h"

#include "base/fs.h"
#include "data/data.h"

/* Prints each text once in the life of the process, however often a line is composed. */
static void say_once(const char *text)
{
    static co_str said;
    char *row = co_sprintf("\n%s\n", text);

    if (!row || !strstr(co_str_text(&said), row))
        co_say("%s", text);
    if (row)
        co_str_add(&said, row);
    co_free(row);
}

void habits_note(const char *text)
{
    say_once(text);
}

static bool only_looks(const line *l)
{
    return strcmp(l->command, "test") == 0 || strcmp(l->command, "predict") == 0;
}

/* "--nproc_per_node=4" to "--nproc-per-node"; what follows '=' is *value. "-b32" is "-b" with 32. */
static char *flag_name(co_pool *pool, const char *word, const char **value)
{
    char *name = co_pool_strn(pool, word, strcspn(word, "="));

    *value = strchr(word, '=') ? strchr(word, '=') + 1 : NULL;
    for (char *s = name ? name + 2 : NULL; s && name[1] && *s; s++)
        *s = *s == '_' ? '-' : *s;
    if (name && name[1] != '-' && strlen(name) > 2 && !*value) {
        *value = word + 2;
        name[2] = '\0';
    }
    return name;
}

static bool line_uses(const habit_line *h, const char *wanted)
{
    const char *value;

    for (int i = 1; i < h->argc; i++) {
        char *name =
            h->argv[i][0] == '-' && h->argv[i][1] ? flag_name(&h->line->pool, h->argv[i], &value) : NULL;
        if (name && strcmp(name, wanted) == 0)
            return true;
    }
    return false;
}

static const co_conf_habit *named(const char *name)
{
    for (const co_conf_habit *row = habit_flags; row->keys; row++)
        if (co_conf_habit_is(&(co_conf_habit){.keys = row->keys}, name, ""))
            return row;
    return NULL;
}

static const co_conf_habit *fitting(const habit_line *h, const char *name, const char *value)
{
    for (const co_conf_habit *row = habit_flags; row->keys; row++)
        if (co_conf_habit_is(row, name, value) && (!row->with || line_uses(h, row->with)))
            return row;
    return NULL;
}

/* The word is quoted only if the grammar needs it. */
static char *make_word(co_pool *pool, const co_conf_habit *row, const char *value)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+./";
    co_str word = {0};
    char *quoted = NULL, *kept = NULL;

    if (!strchr(row->becomes, '=') && strspn(value, plain) != strlen(value))
        quoted = co_conf_word(row->becomes, value);
    if (quoted)
        co_str_add(&word, quoted);
    else
        co_conf_habit_word(&word, row, "", value);
    if (co_str_err(&word) == CO_OK)
        kept = co_pool_str(pool, co_str_text(&word));
    co_free(quoted);
    co_str_fini(&word);
    return kept;
}

/* A flag about hosts. `cohort test` and `cohort predict` run on this one. */
static co_err take_host_flag(habit_line *h, const co_conf_habit *row, const char *typed, const char *value)
{
    line *l = h->line;

    if (only_looks(l)) {
        char *text = co_pool_printf(&l->pool, "%s: no effect: `%s %s` runs on this host", typed,
                                    app_program(), l->command);
        if (text && row->act == CO_HABIT_DROPPED)
            say_once(text);
        return CO_OK;
    }
    h->is_host = true;
    const char *word = row->takes ? co_pool_printf(&l->pool, "%s=%s", row->host, value) : row->host;
    if (!word)
        return CO_ENOMEM;
    l->host_flags[l->n_host_flags++] = word;
    return CO_OK;
}

static co_err apply(habit_line *h, const co_conf_habit *row, const char *typed, const char *value)
{
    line *l = h->line;

    if (row->base && !h->base)
        h->base = row;
    if (row->act == CO_HABIT_REFUSED)
        return co_fail(CO_EINPUT, "%s: %s", typed, row->says);
    if (row->host)
        CO_TRY(take_host_flag(h, row, typed, value));
    if (row->act == CO_HABIT_DROPPED) {
        char *text = row->says ? co_pool_printf(&l->pool, "%s: %s", typed, row->says) : NULL;
        if (text)
            say_once(text);
        return CO_OK;
    }
    char *word = make_word(&l->pool, row, value);
    if (!word)
        return CO_ENOMEM;
    char *text = co_pool_printf(&l->pool, "%s -> %s%s%s%s", typed, word, row->says ? " (" : "",
                                row->says ? row->says : "", row->says ? ")" : "");
    if (!text)
        return CO_ENOMEM;
    say_once(text);
    l->words[l->n++] = word;
    if (row->also)
        l->words[l->n++] = row->also;
    return CO_OK;
}

co_err habits_flag(habit_line *h, int *i)
{
    line *l = h->line;
    const char *word = h->argv[*i], *value;
    char *name = flag_name(&l->pool, word, &value);
    const co_conf_habit *row = name ? named(name) : NULL;

    if (!name)
        return CO_ENOMEM;
    if (!row)
        return CO_OK;
    h->known = true;
    if (!row->takes && value)
        return co_fail(CO_EINPUT, "%s: %s takes no value", l->command, name);
    bool apart = row->takes && !value;
    if (apart && *i + 1 >= h->argc)
        return co_fail(CO_EINPUT, "%s: %s needs a value: %s %s", l->command, name, name, row->takes);
    if (apart)
        value = h->argv[++*i];
    value = value ? value : "";
    row = fitting(h, name, value);
    char *typed =
        apart ? co_pool_printf(&l->pool, "%s %s", word, *value ? value : "''") : co_pool_str(&l->pool, word);
    if (!typed)
        return CO_ENOMEM;
    CO_ASSERT(row, "the last row of a flag fits any value");
    return apply(h, row, typed, value);
}

static bool is_script(const char *word)
{
    size_t n = strlen(word);

    return *word != '-' && !strchr(word, '=') && n > 3 && strcmp(word + n - 3, ".py") == 0;
}

/* Has the line a flag that chooses a recipe, and with it data? */
static bool flag_has_base(const habit_line *h)
{
    const char *value;

    for (int i = 1; i < h->argc; i++) {
        bool is_flag = h->argv[i][0] == '-' && h->argv[i][1];
        char *name = is_flag ? flag_name(&h->line->pool, h->argv[i], &value) : NULL;
        const co_conf_habit *row = name ? named(name) : NULL;
        if (row && row->base)
            return true;
    }
    return false;
}

/* Does any word name the data, or a run whose configuration names it? */
static bool names_data(const habit_line *h)
{
    static const char *const heads[] = {"data=",       "data.",      "datamodule",
                                        "experiment=", "ckpt_path=", "run.dir="};

    for (int i = 1; i < h->argc; i++) {
        const char *word = h->argv[i] + strspn(h->argv[i], "+");
        for (size_t k = 0; k < CO_COUNT(heads); k++)
            if (strncmp(word, heads[k], strlen(heads[k])) == 0)
                return true;
        if (*word != '-' && !strchr(word, '=') && co_fs_is_dir(word))
            return true;
    }
    return flag_has_base(h) || line_uses(h, "--preload") || line_uses(h, "--resume");
}

/* Flags that the transformer's train.py has: its task may be meant. */
static bool is_like_the_transformer(const habit_line *h)
{
    return line_uses(h, "--seq-len") || line_uses(h, "--d-model") || line_uses(h, "--batch-size") ||
           line_uses(h, "--num-epochs");
}

co_err habits_script(habit_line *h)
{
    co_str text = {0};
    int at = 1;

    while (at < h->argc && !is_script(h->argv[at]))
        at++;
    if (at == h->argc || only_looks(h->line))
        return CO_OK;
    const co_conf_habit *row = fitting(h, "SCRIPT", h->argv[at]);
    if (row->base || names_data(h))
        return CO_OK;
    co_str_addf(&text, "%s launch", app_program());
    for (int i = 1; i < h->argc; i++)
        add_shell_word(&text, h->argv[i]);
    co_err err = co_str_err(&text);
    if (!err)
        err = co_fail(
            CO_EINPUT, "%s: `cohort %s` runs no script, and nothing on the line names data%s; to run it: %s",
            h->argv[at], h->line->command,
            is_like_the_transformer(h) ? "; to train the transformer that translates, add experiment=en_it"
                                         " (--lang_src and --model_folder choose it, too)"
                                       : "",
            co_str_text(&text));
    co_str_fini(&text);
    return err;
}

static bool is_number(const char *word)
{
    return *word && strspn(word, "0123456789") == strlen(word);
}

co_err habits_word(habit_line *h, const char *word)
{
    const char *name = NULL;

    h->known = false;
    if (strchr(word, '=') || *word == '~')
        return CO_OK;
    if (is_number(word))
        name = h->numbers == 0 ? "NUMBER1" : h->numbers == 1 ? "NUMBER2" : "NUMBER3";
    else if (has(word, "manifest.json") || has(word, "checkpoints"))
        name = "RUN";
    else if (co_fs_is_dir(word))
        name = h->folders == 0 ? "FOLDER" : "FOLDER2";
    else if (is_script(word))
        name = "SCRIPT";
    else if (strchr(word, '/') && !co_fs_exists(word))
        name = "MISSING";
    const co_conf_habit *row = name ? fitting(h, name, word) : NULL;
    if (!row)
        return CO_OK;
    h->numbers += is_number(word);
    h->folders += name[0] == 'F';
    h->folder = h->folders == 1 && name[0] == 'F' ? word : h->folder;
    h->known = true;
    return apply(h, row, word, word);
}

/* --preload on a folder that holds a run: its own configuration is used, not a recipe. */
static bool preloads_a_run(const habit_line *h)
{
    char *path = line_uses(h, "--preload") ? line_ckpt_path(h->line) : NULL, *dir = line_run_dir(h->line);
    bool found = path && *path && dir && has(dir, "config.yaml") && !line_names_group(h->line);

    co_free(path);
    co_free(dir);
    return found;
}

co_err habits_end(habit_line *h)
{
    line *l = h->line;

    if (!h->base || only_looks(l) || line_has(l, "experiment") || line_has(l, "data") ||
        line_has(l, "datamodule") || preloads_a_run(h))
        return CO_OK;
    char *word = co_pool_printf(&l->pool, "experiment=%s", h->base->base);
    if (!word)
        return CO_ENOMEM;
    if (h->folder && co_dataset_is_tiny_imagenet(h->folder)) {
        *--l->words = "data=tinyimagenet";
        l->n++;
        co_say("data=tinyimagenet: %s has Tiny ImageNet's layout", h->folder);
    }
    *--l->words = word;
    l->n++;
    co_say("%s: the recipe of that program (experiment=NAME chooses another)", word);
    return CO_OK;
}

size_t habits_names(const char **names, size_t room)
{
    static char kept[96][28];
    size_t n = 0;

    for (const co_conf_habit *row = habit_flags; row->keys; row++)
        for (const char *s = row->keys; *s == '-' && n < room && n < CO_COUNT(kept);) {
            size_t len = strcspn(s, " ");
            if (len > 2 && len < sizeof kept[0]) {
                memcpy(kept[n], s, len);
                names[n] = kept[n];
                n++;
            }
            s += len + (s[len] == ' ');
        }
    return n;
}

static void add_rows(co_str *out, const co_conf_habit *row)
{
    static const char *const how[] = {" -> ", ": accepted", ": refused", ""};

    for (; row->keys; row++) {
        bool dashed = row->takes || row->keys[0] == '-';
        co_str_addf(out, "  %s", row->keys);
        if (row->values || row->takes)
            co_str_addf(out, "%s%s", dashed ? " " : "=",
                        row->values ? (*row->values ? row->values : "''") : row->takes);
        bool hosts = row->host && row->act == CO_HABIT_DROPPED;
        co_str_addf(out, "%s%s", hosts ? ": as in cohort launch" : how[row->act],
                    row->act == CO_HABIT_BECOMES ? row->becomes : "");
        if (hosts && strcmp(row->host, row->keys) != 0)
            co_str_addf(out, "'s %s", row->host);
        co_str_addf(out, "%s%s\n", row->says ? "; " : "", row->says ? row->says : "");
    }
}

int show_habits(void)
{
    co_str text = {0};

    co_str_add(&text, "Flags and words of other programs, and what they become:\n\n");
    add_rows(&text, habit_flags);
    co_str_add(&text, "\nKeys of other programs, beside the aliases that `cohort train --help` shows:\n\n");
    add_rows(&text, habit_keys);
    co_help_print_list(stdout, co_str_text(&text));
    co_str_fini(&text);
    return CO_EXIT_DONE;
}
