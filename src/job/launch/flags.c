/* flags.c -- reads the command line of `cohort launch`: our flags, then a program, then its arguments.
 *
 * An unknown flag before the program goes to the program, with a note. If its name is close to one of our
 * flags, it is refused and the message names that flag. We cannot know whether an unknown flag has a value:
 * the next argument is its value, unless it looks like a program (launch_looks_like_program) or is the last
 * one. As in argparse, a flag may be shortened as long as only one flag begins with these letters.
 */
#include "job/launch/launch_int.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_HELP(field, name, what, help) "  " name " " what "\n        " help "\n"
#define SWITCH_HELP(field, name, help)      "  " name "\n        " help "\n"
const char co_launch_usage[] =
    "  cohort launch --nproc-per-node=4 train.py --epochs 10      a Python script\n"
    "  cohort launch --nproc-per-node=2 -m package.train          a Python module\n"
    "  cohort launch --nproc-per-node=8 ./program input.dat       any other program\n"
    "  cohort launch --hosts node1,node2 train.py                 over ssh, from here\n"
    "  cohort launch --max-restarts=3 --log-dir=logs train.py     with log files\n"
    "  cohort launch --nnodes=2 --rdzv-endpoint=host0:29400 train.py\n"
    "        two hosts: type the same line on both\n\n"
    "  Several hosts need a token: the first one shows it, the others ask for it or\n"
    "  take it from COHORT_TOKEN. Workers find RANK, LOCAL_RANK, WORLD_SIZE,\n"
    "  MASTER_ADDR, MASTER_PORT and torchrun's other variables in their environment.\n"
    "  Flags come before the program; their defaults come from PET_NNODES and so on.\n\n"
    "  Exit status: that of the first worker that failed, 128 + N for signal N, 75\n"
    "  after SIGTERM or SIGUSR1, 2 if nothing was started.\n\n" LAUNCH_FLAGS(VALUE_HELP, SWITCH_HELP);

typedef struct row {
    const char *name, *what; /* what NULL: a switch */
    size_t offset;
} row;
#define VALUE_ROW(field, name, what, help) {name, what, offsetof(launch_args, field)},
#define SWITCH_ROW(field, name, help)      {name, NULL, offsetof(launch_args, field)},
static const row rows[] = {LAUNCH_FLAGS(VALUE_ROW, SWITCH_ROW)};

static const struct {
    const char *name, *means;
} shorts[] = {{"-m", "--module"}, {"-r", "--redirects"}, {"-t", "--tee"}};

/* How many letters of `name` the argument has before '='; -1: it is another flag. */
static int matches(const char *word, size_t len, const char *name)
{
    if (len > strlen(name))
        return -1;
    for (size_t i = 0; i < len; i++)
        if (word[i] != name[i] && !(word[i] == '_' && name[i] == '-' && i > 1))
            return -1;
    return (int)len;
}

/* The row of a flag. If no flag has exactly this name, *n_begin is the number of flags that begin with it. */
static const row *find_row(const char *word, int *n_begin)
{
    size_t len = strcspn(word, "=");
    const row *begins = NULL;

    *n_begin = 0;
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        if (matches(word, len, rows[i].name) < 0)
            continue;
        if (rows[i].name[len] == '\0')
            return &rows[i];
        begins = &rows[i];
        ++*n_begin;
    }
    return *n_begin == 1 && len > 4 ? begins : NULL;
}

static const row *find_short(const char *word)
{
    int unused;

    for (size_t i = 0; i < CO_COUNT(shorts); i++)
        if (strncmp(word, shorts[i].name, 2) == 0)
            return find_row(shorts[i].means, &unused);
    return NULL;
}

static co_err set_row(launch_args *a, const row *r, const char *value, const char *from)
{
    void *field = (char *)a + r->offset;

    if (r->what) {
        *(const char **)field = value;
        return CO_OK;
    }
    if (value && strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        return co_fail(CO_EINPUT, "launch: %s is a switch: %s%s", r->name, from ? from : "it takes no value",
                       from ? " is 0 or 1" : "");
    *(bool *)field = !value || *value == '1';
    return CO_OK;
}

static void pet_name(char *out, size_t size, const char *of)
{
    size_t n = (size_t)snprintf(out, size, "PET_%s", of + 2);

    for (size_t i = 0; i < n && i < size; i++)
        out[i] = out[i] == '-' ? '_' : (char)(out[i] >= 'a' && out[i] <= 'z' ? out[i] - 32 : out[i]);
}

/* Reads defaults from the environment. Flags on the command line are read later and win. */
static co_err read_environment(launch_args *a)
{
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        char name[64];
        pet_name(name, sizeof name, rows[i].name);
        const char *value = getenv(name);
        if (value && *value)
            CO_TRY(set_row(a, &rows[i], value, name));
    }
    return CO_OK;
}

/* "--local-rank" is an argument of scripts, not short for --local-ranks-filter. */
static co_err refuse_local_rank(const char *word)
{
    static const char name[] = "--local-rank";
    size_t len = strcspn(word, "=");

    if (len != strlen(name) || matches(word, len, name) < 0)
        return CO_OK;
    return co_fail(CO_EINPUT,
                   "launch: --local-rank is the script's: it gets it by itself if it defines it, or "
                   "with --legacy-local-rank");
}

/* argv[*i] is a flag of ours. */
static co_err take_flag(launch_args *a, const row *r, int argc, char **argv, int *i)
{
    const char *word = argv[*i], *eq = strchr(word, '=');
    const char *value = eq ? eq + 1 : NULL;

    if (word[1] != '-')
        value = word[2] ? word + 2 + (word[2] == '=') : NULL; /* -r3 */
    if (!r->what)
        return value ? co_fail(CO_EINPUT, "launch: %s takes no value", r->name) : set_row(a, r, NULL, NULL);
    if (!value && *i + 1 < argc && argv[*i + 1][0] != '-')
        value = argv[++*i];
    if (!value)
        return co_fail(CO_EINPUT, "launch: %s needs a value: %s=%s", r->name, r->name, r->what);
    return set_row(a, r, value, NULL);
}

static co_err refuse_near(const char *word, int n_begin)
{
    const char *names[CO_COUNT(rows)];
    char bare[128];

    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(word, "="), word);
    for (char *p = bare + 2; *p; p++)
        *p = *p == '_' ? '-' : *p;
    for (size_t i = 0; i < CO_COUNT(rows); i++)
        names[i] = rows[i].name + 2;
    const char *near = strncmp(bare, "--", 2) == 0 ? co_str_nearest(bare + 2, names, CO_COUNT(rows)) : NULL;
    if (near && n_begin > 1)
        return co_fail(CO_EINPUT, "launch: %s could be several flags, for example --%s: write it in full",
                       bare, near);
    if (near)
        return co_fail(
            CO_EINPUT, "launch: no flag %s; did you mean --%s? (a flag of the program goes after the program)",
            bare, near);
    return CO_OK;
}

/* Does the argument after an unknown flag belong to it? Not if it is a program itself or the last
 * argument. */
static bool is_value(const launch_args *a, int argc, char **argv, int at)
{
    if (at >= argc || argv[at][0] == '-' || launch_looks_like_program(a, argv[at]))
        return false;
    for (int k = at + 1; k < argc; k++)
        if (argv[k][0] != '-')
            return true;
    return false;
}

static void tell_moved(void (*note)(const char *), char **words, int n)
{
    co_str s = {0};

    co_str_add(&s, "not a flag of the launcher, passed to the program:");
    for (int i = 0; i < n; i++)
        co_str_addf(&s, " %s", words[i]);
    note(co_str_text(&s));
    co_str_fini(&s);
}

/* Reads the flags up to the program; *at is the program's index. Unknown flags go to moved[]. */
static co_err take_flags(launch_args *a, int argc, char **argv, int *at, char **moved, int *n_moved)
{
    int i = 1;

    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        int n_begin = 0;
        const char *word = argv[i];
        if (strcmp(word, "--") == 0) {
            i++;
            break;
        }
        if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
            a->help = true;
            continue;
        }
        CO_TRY(refuse_local_rank(word));
        const row *r = word[1] == '-' ? find_row(word, &n_begin) : find_short(word);
        if (r) {
            CO_TRY(take_flag(a, r, argc, argv, &i));
            continue;
        }
        CO_TRY(refuse_near(word, n_begin));
        moved[(*n_moved)++] = argv[i];
        if (!strchr(word, '=') && is_value(a, argc, argv, i + 1))
            moved[(*n_moved)++] = argv[++i];
    }
    *at = i;
    return CO_OK;
}

/* Did a flag take the program as its value, as in `--nproc-per-node ./x.sh`? */
static co_err no_program(const launch_args *a, int argc, char **argv, const char *moved)
{
    const char *last = argv[argc - 1],
               *name = argc > 2 && last[0] != '-' ? launch_flag_name(argv[argc - 2]) : NULL;

    if (name && !strchr(argv[argc - 2], '=') && launch_looks_like_program(a, last))
        return co_fail(CO_EINPUT, "%s: no program to run: %s took \"%s\" as its value; write %s=VALUE %s",
                       argv[0], name, last, name, last);
    if (moved)
        return co_fail(
            CO_EINPUT,
            "%s: no program after %s; flags come first, then the program: cohort %s --nproc-per-node=2 "
            "train.py",
            argv[0], moved, argv[0]);
    return co_fail(CO_EINPUT, "%s: no program to run: cohort %s --nproc-per-node=2 train.py", argv[0], argv[0]);
}

co_err launch_parse(launch_args *a, int argc, char **argv, void (*note)(const char *text))
{
    char **moved = co_array((size_t)argc + 1, sizeof *moved);
    int at = argc, n_moved = 0;
    co_err err;

    *a = (launch_args){0};
    a->program = co_array((size_t)argc + 1, sizeof *a->program);
    err = moved && a->program ? read_environment(a) : CO_ENOMEM;
    if (err == CO_OK)
        err = take_flags(a, argc, argv, &at, moved, &n_moved);
    if (err == CO_OK && at < argc) {
        a->program[a->n++] = argv[at];
        for (int i = 0; i < n_moved; i++)
            a->program[a->n++] = moved[i];
        for (int i = at + 1; i < argc; i++)
            a->program[a->n++] = argv[i];
        if (n_moved)
            tell_moved(note, moved, n_moved);
    } else if (err == CO_OK && !a->help) {
        err = no_program(a, argc, argv, n_moved ? moved[n_moved - 1] : NULL);
    }
    co_free(moved);
    if (err)
        launch_args_free(a);
    return err;
}

const char *launch_flag_name(const char *word)
{
    int n_begin;
    const row *r = word[0] != '-' ? NULL : word[1] == '-' ? find_row(word, &n_begin) : find_short(word);

    return r ? r->name : NULL;
}

int launch_words(const char **out, co_pool *pool, const launch_args *a, const char *const *names)
{
    int n = 0;

    for (; *names; names++)
        for (size_t i = 0; i < CO_COUNT(rows); i++) {
            const void *field = (const char *)a + rows[i].offset;
            const char *value = rows[i].what ? *(const char *const *)field : NULL;
            bool on = rows[i].what ? value != NULL : *(const bool *)field;
            if (on && strcmp(rows[i].name, *names) == 0)
                out[n++] = value ? co_pool_printf(pool, "%s=%s", *names, value) : *names;
        }
    return n;
}

void launch_args_free(launch_args *a)
{
    co_free(a->program);
    a->program = NULL;
}
