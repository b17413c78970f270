/* line.c -- a command line's flags and words, and talk to standard error.
 *
 * What begins with a dash is a flag and must be known to the command: a mistyped one is refused, never taken for a
 * setting. A flag is written with dashes or underscores inside, its value after '=' or as the next word. */
#include "cli/cli_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { MAX_FLAGS = 16 };

/* Is `word` this flag? *value is what follows '=', or NULL. */
static bool is_flag(const char *word, const char *name, const char **value)
{
    size_t i = 0;

    for (; name[i]; i++)
        if (word[i] != name[i] && !(word[i] == '_' && name[i] == '-' && i > 1))
            return false;
    *value = word[i] == '=' ? word + i + 1 : NULL;
    return word[i] == '\0' || word[i] == '=';
}

static const flag *find_flag(const flag *flags, const char *word, const char **value)
{
    for (const flag *f = flags; f && f->name; f++)
        if (is_flag(word, f->name, value))
            return f;
    return NULL;
}

static co_err unknown_flag(const line *l, const char *word, const flag *const *sets, int n_sets)
{
    const char *names[MAX_FLAGS];
    size_t n = 0;
    co_str list = {0};
    char *bare = co_sprintf("%.*s", (int)strcspn(word, "="), word);

    for (int s = 0; s < n_sets; s++)
        for (const flag *f = sets[s]; f && f->name && n < MAX_FLAGS; f++) {
            names[n++] = f->name;
            co_str_addf(&list, " %s", f->name);
        }
    const char *near = bare ? co_str_nearest(bare, names, n) : NULL;
    if (near)
        co_fail(CO_EINPUT, "%s has no flag %s; did you mean %s?", l->command, bare, near);
    else if (l->settings && strchr(word, '='))
        co_fail(CO_EINPUT, "%s has no flag %s; settings are written without dashes: %s", l->command,
                bare ? bare : word, word + strspn(word, "-"));
    else
        co_fail(CO_EINPUT, "%s has no flag %s; its flags:%s (cohort %s --help)", l->command,
                bare ? bare : word, co_str_text(&list), l->command);
    co_free(bare);
    co_str_fini(&list);
    return CO_EINPUT;
}

static co_err set_flag(const line *l, const flag *f, const char *value, char **argv, int argc, int *i)
{
    if (f->on && value)
        return co_fail(CO_EINPUT, "%s: %s takes no value", l->command, f->name);
    if (f->on) {
        *f->on = true;
        return CO_OK;
    }
    if (!value && *i + 1 < argc)
        value = argv[++*i];
    if (!value || !*value)
        return co_fail(CO_EINPUT, "%s: %s needs a value: %s %s", l->command, f->name, f->name, f->what);
    *f->value = value;
    return CO_OK;
}

static co_err parse(line *l, int argc, char **argv, const flag *const *sets, int n_sets)
{
    for (int i = 1; i < argc; i++) {
        const char *w = argv[i], *value = NULL;
        const flag *f = NULL;
        if (w[0] != '-' || w[1] == '\0') {
            l->words[l->n++] = w;
            continue;
        }
        for (int s = 0; s < n_sets && !f; s++)
            f = find_flag(sets[s], w, &value);
        if (!f)
            return unknown_flag(l, w, sets, n_sets);
        CO_TRY(set_flag(l, f, value, argv, argc, &i));
    }
    return CO_OK;
}

co_err line_parse(line *l, int argc, char **argv, bool settings, const flag *more)
{
    *l = (line){
        .command = argv[0], .settings = settings, .held = co_array((size_t)argc + 1, sizeof *l->words)};
    if (!l->held)
        return CO_ENOMEM;
    l->words = l->held + 1; /* room for one in front */
    const flag common[] = {
        {"--json", .on = &l->json}, {"--help", .on = &l->help}, {"-h", .on = &l->help}, {0}};
    const flag configured[] = {{"--config-dir", "FOLDER", .value = &l->config_dir}, {0}};
    co_err err = parse(l, argc, argv, (const flag *const[]){common, more, settings ? configured : NULL}, 3);
    if (err && l->help) { /* whoever asks for help gets it */
        co_errclear();
        err = CO_OK;
    }
    if (err)
        line_free(l);
    return err;
}

void line_free(line *l)
{
    co_free(l->held);
    co_free(l->base);
    l->held = NULL;
    l->base = NULL;
}

void say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

int exit_of(co_err err)
{
    return err == CO_OK                                                ? EXIT_DONE
           : err == CO_EINPUT || err == CO_ENOMEM || err == CO_EFORMAT ? EXIT_USAGE
                                                                       : EXIT_FAILED;
}

int fail_usage(void)
{
    say("cohort: %s", co_errmsg());
    return EXIT_USAGE;
}

int fail_with(co_err err)
{
    say("cohort: %s", co_errmsg());
    return exit_of(err);
}

void print_json(json_t *take)
{
    char *text = take ? co_json_text(take) : NULL;

    if (text)
        puts(text);
    co_free(text);
    json_decref(take);
}
