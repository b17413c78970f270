/* flag.c -- finds and sets the flags of a table; refuses an unknown flag and names the nearest one. */
#include "base/flag.h"

#include <string.h>

#include "base/str.h"

enum { FLAGS_MOST = 64 };

static bool is_flag(const char *word, const char *name, const char **value)
{
    size_t i = 0;

    for (; name[i]; i++)
        if (word[i] != name[i] && !(word[i] == '_' && name[i] == '-' && i > 1))
            return false;
    *value = word[i] == '=' ? word + i + 1 : NULL;
    return word[i] == '\0' || word[i] == '=';
}

const co_flag *co_flag_find(const co_flag *flags, const char *word, const char **value)
{
    for (const co_flag *f = flags; f && f->name; f++)
        if (is_flag(word, f->name, value))
            return f;
    return NULL;
}

co_err co_flag_set(const char *command, const co_flag *f, const char *value, char **argv, int argc, int *i)
{
    if (f->on && value)
        return co_fail(CO_EINPUT, "%s: %s takes no value", command, f->name);
    if (f->on) {
        *f->on = true;
        return CO_OK;
    }
    if (!value && *i + 1 < argc)
        value = argv[++*i];
    if (!value || !*value)
        return co_fail(CO_EINPUT, "%s: %s needs a value: %s %s", command, f->name, f->name, f->what);
    *f->value = value;
    return CO_OK;
}

static co_err refuse(const char *command, const char *word, const co_flag *flags)
{
    const char *names[FLAGS_MOST];
    size_t n = 0;
    co_str list = {0};

    for (const co_flag *f = flags; f->name && n < FLAGS_MOST; f++) {
        names[n++] = f->name;
        co_str_addf(&list, " %s", f->name);
    }
    const char *near = word[0] == '-' ? co_str_nearest(word, names, n) : NULL;
    if (near)
        co_fail(CO_EINPUT, "%s has no flag %s; did you mean %s?", command, word, near);
    else
        co_fail(CO_EINPUT, "%s does not take \"%s\"; its flags:%s", command, word, co_str_text(&list));
    co_str_fini(&list);
    return CO_EINPUT;
}

co_err co_flags_parse(const char *command, int argc, char **argv, const co_flag *flags)
{
    for (int i = 1; i < argc; i++) {
        const char *value = NULL;
        const co_flag *f = argv[i][0] == '-' ? co_flag_find(flags, argv[i], &value) : NULL;
        if (!f)
            return refuse(command, argv[i], flags);
        CO_TRY(co_flag_set(command, f, value, argv, argc, &i));
    }
    return CO_OK;
}
