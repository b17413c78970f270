/* line.c -- splits a command line into flags and words (everything that is not a flag).
 *
 * A word that begins with a dash is a flag, and the command must know it: a mistyped flag is refused, never
 * taken for a setting. Dashes and underscores inside a flag are the same; its value follows '=' or is the
 * next word. A command that takes settings also understands flags of other programs (habits.c), unless it has
 * a flag with the same name. */
#include "cli/habits_int.h"

#include <stdio.h>
#include <string.h>

#include "job/meet.h"

enum { MAX_FLAGS = 128 };

static co_err unknown_flag(const line *l, const char *word, const co_flag *const *sets, int n_sets)
{
    const char *names[MAX_FLAGS];
    size_t n = 0;
    co_str list = {0};
    char *bare = co_sprintf("%.*s", (int)strcspn(word, "="), word);

    for (int s = 0; s < n_sets; s++)
        for (const co_flag *f = sets[s]; f && f->name && n < MAX_FLAGS; f++) {
            names[n++] = f->name;
            co_str_addf(&list, " %s", f->name);
        }
    if (l->settings)
        n += habits_names(names + n, MAX_FLAGS - n);
    const char *near = bare ? co_str_nearest(bare, names, n) : NULL;
    bool dotted = l->settings && strchr(word, '=') && (!near || strchr(bare, '.'));
    if (dotted)
        co_fail(CO_EINPUT, "%s has no flag %s; settings are written without dashes: %s", l->command,
                bare ? bare : word, word + strspn(word, "-"));
    else if (near)
        co_fail(CO_EINPUT, "%s has no flag %s; did you mean %s?", l->command, bare, near);
    else
        co_fail(CO_EINPUT, "%s has no flag %s; its flags:%s (cohort %s --help)", l->command,
                bare ? bare : word, co_str_text(&list), l->command);
    co_free(bare);
    co_str_fini(&list);
    return CO_EINPUT;
}

/* A word that is not one of the command's flags: a setting, or a flag or word of another program. */
static co_err other_word(habit_line *h, int *i, const co_flag *const *sets, int n_sets)
{
    line *l = h->line;
    const char *w = h->argv[*i];
    bool dashed = w[0] == '-' && w[1];

    h->known = false;
    if (l->settings && (dashed || !l->help)) /* with --help, words are names to look up */
        CO_TRY(dashed ? habits_flag(h, i) : habits_word(h, w));
    if (!h->known && dashed)
        return unknown_flag(l, w, sets, n_sets);
    if (!h->known)
        l->words[l->n++] = w;
    return CO_OK;
}

/* Reads on after a wrong flag, so that the user sees all mistakes at once. */
static co_err parse(line *l, int argc, char **argv, const co_flag *const *sets, int n_sets)
{
    habit_line h = {.line = l, .argc = argc, .argv = argv};

    for (int i = 1; i < argc; i++)
        l->help |= strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
    if (l->settings && !l->help)
        CO_TRY(habits_script(&h));
    for (int i = 1, at = 1; i < argc; i++, at = i) {
        const char *w = argv[i], *value = NULL;
        const co_flag *f = NULL;
        for (int s = 0; s < n_sets && !f && w[0] == '-' && w[1]; s++)
            f = co_flag_find(sets[s], w, &value);
        h.is_host = false;
        co_err err = f ? co_flag_set(l->command, f, value, argv, argc, &i) : other_word(&h, &i, sets, n_sets);
        if (err && !l->settings)
            return err;
        CO_TRY(co_mistake(&l->mistakes, err));
        for (; at <= i && at < argc && !h.is_host; at++)
            l->rest[l->n_rest++] = argv[at];
    }
    return l->help || !l->settings ? CO_OK : habits_end(&h);
}

co_err line_parse(line *l, int argc, char **argv, bool settings, const co_flag *more)
{
    size_t most = 2 * (size_t)argc + 5; /* a flag may become two words */

    *l = (line){.command = argv[0], .settings = settings, .held = co_array(most, sizeof *l->words)};
    l->host_flags = co_pool_alloc(&l->pool, most * sizeof *l->host_flags);
    l->rest = co_pool_alloc(&l->pool, most * sizeof *l->rest);
    if (!l->held || !l->host_flags || !l->rest) {
        line_free(l);
        return CO_ENOMEM;
    }
    memset(l->host_flags, 0, most * sizeof *l->host_flags);
    memset(l->rest, 0, most * sizeof *l->rest);
    l->words = l->held + 3; /* room for three in front */
    const co_flag common[] = {
        {"--json", .on = &l->json}, {"--help", .on = &l->help}, {"-h", .on = &l->help}, {0}};
    const co_flag configured[] = {{"--config-dir", "FOLDER", .value = &l->config_dir}, {0}};
    co_err err = parse(l, argc, argv, (const co_flag *const[]){common, more, settings ? configured : NULL}, 3);
    if (err && l->help) { /* --help works even if the rest of the line is wrong */
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
    co_free(l->found);
    if (!l->hosts_given)
        co_hosts_line_free(l->hosts);
    l->hosts = NULL;
    co_pool_fini(&l->pool);
    co_mistakes_fini(&l->mistakes);
    l->held = NULL;
    l->base = l->found = NULL;
}
