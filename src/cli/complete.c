/* complete.c -- completion: `cohort complete -- WORD... LAST` prints the candidates for LAST, one per line.
 * The shell functions of completion.c call it.
 *
 * All of it comes from the table of commands (its usage lines name flags and subcommands) and from the option
 * tables, so completion always agrees with the program. Keys are offered up to their next dot. "<files>" asks
 * the shell for paths.
 */
#include "cli/cli_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define FILES "<files>"

static bool begins(const char *word, const char *head)
{
    return strncmp(word, head, strlen(head)) == 0;
}

static void offer(const char *word, const char *last)
{
    if (begins(word, last))
        puts(word);
}

/* --- flags and subcommands, from usage lines ---------------------------------------------------------- */
/* The next line of usage that begins with "  "; its length without the newline. */
static const char *next_line(const char **at, size_t *len)
{
    while (**at) {
        const char *start = *at;
        *len = strcspn(start, "\n");
        *at = start + *len + (start[*len] == '\n');
        if (*len > 2 && start[0] == ' ' && start[1] == ' ')
            return start + 2;
    }
    return NULL;
}

/* " --split val|test which samples": calls `each` for every flag of a line, with its value's name if it has a
 * value. */
static void each_flag(const char *usage, void (*each)(void *ctx, const char *name, const char *value), void *ctx)
{
    size_t len;

    for (const char *l; (l = next_line(&usage, &len)) != NULL;)
        while (*l == '-') {
            char name[64], value[128] = "";
            size_t n = strcspn(l, " ,=\n"), v = 0;
            snprintf(name, sizeof name, "%.*s", (int)n, l);
            if ((l[n] == ' ' || l[n] == '=') && l[n + 1] != ' ')
                v = strcspn(l + n + 1, " ,\n");
            snprintf(value, sizeof value, "%.*s", (int)v, l + n + 1);
            each(ctx, name, value);
            l += n + (v ? v + 1 : 0);
            l += *l == ',' ? strspn(l, ", ") : 0; /* "--multirun, -m": a second name */
        }
}

struct flag_search {
    const char *name; /* the flag whose value is completed; NULL: complete names */
    const char *head; /* the part of the word before the value: "--split=", or "" */
    const char *last;
    bool found;
};

static void offer_choices(const char *head, const char *choices, const char *last)
{
    char word[256];

    while (*choices) {
        size_t n = strcspn(choices, "|");
        snprintf(word, sizeof word, "%s%.*s", head, (int)n, choices);
        offer(word, last);
        choices += n + (choices[n] == '|');
    }
}

static void see_flag(void *ctx, const char *name, const char *value)
{
    struct flag_search *s = ctx;

    if (!s->name)
        offer(name, s->last);
    else if (strcmp(s->name, name) == 0 && *value && !s->found) {
        s->found = true;
        if (strchr(value, '|'))
            offer_choices(s->head, value, s->last);
        else if (strcmp(value, "N") != 0)
            puts(FILES);
    }
}

/* "  cohort ckpt ls ...": ls; "  source <(cohort completion bash)": bash. */
static bool offer_subcommands(const command *c, const char *last)
{
    char head[64], seen[512] = " ";
    const char *usage = c->usage;
    size_t len, n = (size_t)snprintf(head, sizeof head, "cohort %s ", c->name);
    bool any = false;

    for (const char *l; (l = next_line(&usage, &len)) != NULL;) {
        const char *at = memmem(l, len, head, n);
        if (!at)
            continue;
        l = at;
        size_t word = strspn(l + n, "abcdefghijklmnopqrstuvwxyz");
        char name[64], mark[66];
        if (word == 0 || word >= sizeof name || (l[n + word] && !strchr(" )\n", l[n + word])))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)word, l + n);
        snprintf(mark, sizeof mark, " %s ", name);
        any = true;
        if (strstr(seen, mark) || strlen(seen) + word + 2 > sizeof seen)
            continue;
        strcat(strcat(seen, name), " ");
        offer(name, last);
    }
    return any;
}

/* --- settings ----------------------------------------------------------------------------------------- */
typedef struct setting {
    const co_conf_spec *spec;
    char **words;
    int n;
    const char *last;
    co_pool pool;
    const char *offered; /* the last "trainer." */
} setting;

/* The group's choice in the words before the cursor; the last one counts. */
static const char *choice_of(const setting *s, const co_conf_group *g)
{
    const char *choice = g->fallback ? g->fallback : "";
    size_t n = strlen(g->name);

    for (int i = 0; i < s->n; i++)
        if (strncmp(s->words[i], g->name, n) == 0 && s->words[i][n] == '=')
            choice = s->words[i] + n + 1;
    return choice;
}

/* Offers a key up to the next dot after the typed part; each such prefix once. */
static void offer_key(setting *s, const char *prefix, const char *key)
{
    char *word = co_pool_printf(&s->pool, "%s%s=", prefix, key);
    size_t have = strlen(s->last);

    if (!word || !begins(word, s->last))
        return;
    char *dot = strchr(word + have, '.');
    if (dot) {
        dot[1] = '\0';
        if (s->offered && strcmp(s->offered, word) == 0)
            return;
        s->offered = word;
    }
    puts(word);
}

static void offer_keys(setting *s)
{
    for (int g = 0; g < s->spec->n_groups; g++)
        offer_key(s, s->spec->groups[g].name, "");
    for (int i = 0; i < s->spec->n_tables; i++)
        for (const co_option *o = s->spec->tables[i].options; o->key; o++)
            offer_key(s, s->spec->tables[i].prefix, o->key);
    for (int g = 0; g < s->spec->n_groups; g++) {
        const co_conf_group *group = &s->spec->groups[g];
        char *prefix = co_pool_printf(&s->pool, "%s.", group->name);
        for (int r = 0; prefix && r < group->n_rows; r++)
            if (strcmp(group->rows[r].name, choice_of(s, group)) == 0)
                for (const co_option *o = group->rows[r].options; o->key; o++)
                    offer_key(s, prefix, o->key);
    }
}

static void see_choice(void *ctx, const char *name, const char *help, size_t len)
{
    setting *s = ctx;
    char *word = co_pool_printf(&s->pool, "%.*s=%s", (int)strcspn(s->last, "="), s->last, name);

    if (word)
        offer(word, s->last);
}

/* The option whose full key this is, among the tables and the chosen rows. */
static const co_option *find_key(const setting *s, const char *key)
{
    for (int i = 0; i < s->spec->n_tables; i++) {
        const char *prefix = s->spec->tables[i].prefix;
        const co_option *o =
            begins(key, prefix) ? co_option_find(s->spec->tables[i].options, key + strlen(prefix)) : NULL;
        if (o)
            return o;
    }
    for (int g = 0; g < s->spec->n_groups; g++) {
        const co_conf_group *group = &s->spec->groups[g];
        size_t n = strlen(group->name);
        for (int r = 0; r < group->n_rows && begins(key, group->name) && key[n] == '.'; r++) {
            const co_option *o = strcmp(group->rows[r].name, choice_of(s, group)) == 0
                                     ? co_option_find(group->rows[r].options, key + n + 1)
                                     : NULL;
            if (o)
                return o;
        }
    }
    return NULL;
}

static bool ends(const char *text, const char *tail)
{
    size_t a = strlen(text), b = strlen(tail);

    return a >= b && strcmp(text + a - b, tail) == 0;
}

static void offer_values(setting *s)
{
    char *key = co_pool_strn(&s->pool, s->last, strcspn(s->last, "="));
    char *head = key ? co_pool_printf(&s->pool, "%s=", key) : NULL;

    if (!head)
        return;
    for (int g = 0; g < s->spec->n_groups; g++)
        if (strcmp(s->spec->groups[g].name, key) == 0) {
            (void)co_conf_each_choice(s->spec, key, see_choice, s);
            return;
        }
    const co_option *o = find_key(s, key);
    if (!o)
        return;
    if (o->type == CO_OPT_ENUM)
        offer_choices(head, o->choices, s->last);
    else if (o->type == CO_OPT_BOOL)
        offer_choices(head, "true|false", s->last);
    else if (o->type == CO_OPT_STR && (ends(key, "path") || ends(key, "dir") || ends(key, "file")))
        puts(FILES);
}

static void offer_settings(char **words, int n, const char *last)
{
    setting s = {app_conf_spec(NULL), words, n, last, {0}, NULL};

    if (strchr(last, '='))
        offer_values(&s);
    else
        offer_keys(&s);
    co_pool_fini(&s.pool);
}

/* --- the commands ------------------------------------------------------------------------------------- */
/* Commands that parse their own line and have no --json; only some of them take words other than flags. */
static const struct own_line {
    const char *name;
    bool words;
} own_lines[] = {{"launch", true}, {"host", true}, {"join", false}, {"token", false}};

static const struct own_line *find_own_line(const char *name)
{
    for (size_t i = 0; i < CO_COUNT(own_lines); i++)
        if (strcmp(own_lines[i].name, name) == 0)
            return &own_lines[i];
    return NULL;
}

/* If the cursor is in the value of a flag, offers values: in the word after the flag, or after its "=".
 * False: it is not. */
static bool offer_value(const command *c, const char *before, const char *last)
{
    char name[64], head[66];
    size_t n = strcspn(last, "=");
    struct flag_search next = {before, "", last, false}, same = {name, head, last, false};

    if (before && before[0] == '-')
        each_flag(c->usage, see_flag, &next);
    if (!next.found && last[0] == '-' && last[n] == '=' && n < sizeof name) {
        snprintf(name, sizeof name, "%.*s", (int)n, last);
        snprintf(head, sizeof head, "%s=", name);
        each_flag(c->usage, see_flag, &same);
    }
    return next.found || same.found;
}

/* words[0] is the command, words[n - 1] the word before the cursor. */
static void offer_words(char **words, int n, const char *last)
{
    const command *c = command_find(words[0]);
    const struct own_line *own = find_own_line(words[0]);
    struct flag_search names = {NULL, "", last, false};

    if (!c || offer_value(c, n > 1 ? words[n - 1] : NULL, last))
        return;
    if (last[0] == '-') {
        each_flag(c->usage, see_flag, &names);
        if (!own && !strstr(c->usage, "  --json"))
            offer("--json", last);
        offer("--help", last);
    } else if (strstr(c->usage, "--config-dir"))
        offer_settings(words + 1, n - 1, last);
    else if (!(own && !own->words) && !(n == 1 && offer_subcommands(c, last)))
        puts(FILES);
}

int cmd_complete(int argc, char **argv)
{
    int first = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;

    if (first >= argc)
        return CO_EXIT_USAGE;
    if (first < argc - 1) {
        offer_words(argv + first, argc - 1 - first, argv[argc - 1]);
        return CO_EXIT_DONE;
    }
    for (const command *c = commands; c->name; c++)
        offer(c->name, argv[first]);
    if (argv[first][0] == '-') {
        offer("--help", argv[first]);
        offer("--version", argv[first]);
    }
    return CO_EXIT_DONE;
}
