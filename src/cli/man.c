/* man.c -- the manual pages, made at build time from the table of commands and the option tables, so that
 * they agree with the program: `cohort help --man` writes cohort(1), `cohort help --man train`
 * cohort-train(1). */
#include "cli/cli_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/program.h"

/* --- text to roff --------------------------------------------------------------------------------------- */
/* Backslashes and dashes are escaped; a line must not begin with a dot or quote. */
static void put(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool first = i == 0 || text[i - 1] == '\n';
        if (first && (text[i] == '.' || text[i] == '\''))
            printf("\\&");
        if (text[i] == '\\')
            printf("\\e");
        else if (text[i] == '-')
            printf("\\-");
        else
            putchar(text[i]);
    }
}

static void put_all(const char *text)
{
    put(text, strlen(text));
}

static void put_bold(const char *head, const char *text)
{
    printf("\\fB");
    put_all(head);
    put_all(text);
    printf("\\fR");
}

/* Prints text unchanged: examples and columns. */
static void put_block(const char *text)
{
    printf(".EX\n");
    put_all(text);
    printf("%s.EE\n", *text && text[strlen(text) - 1] == '\n' ? "" : "\n");
}

static void title(const char *name, const char *help)
{
    printf(".\\\" Made by `%s help --man`: change the tables in the source, not this.\n", co_program_name());
    printf(".TH \"");
    for (const char *c = name; *c; c++)
        putchar(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    printf("\" 1 \"\" \"cohort %s\" \"User Commands\"\n.nh\n.ad l\n.SH NAME\n", COHORT_VERSION);
    put_all(name);
    printf(" \\- ");
    put_all(help);
    printf("\n");
}

/* --- keys ----------------------------------------------------------------------------------------------- */
static void put_options(const char *prefix, const co_option *table)
{
    for (const co_option *o = table; o->key; o++) {
        co_str more = {0};
        co_conf_limits(&more, o);
        printf(".TP\n");
        put_bold(prefix, o->key);
        printf("=\\fI");
        put_all(*o->fallback ? o->fallback : "''");
        printf("\\fR\n");
        put_all(o->help && *o->help ? o->help : o->key);
        put_all(co_str_text(&more));
        printf("\n");
        co_str_fini(&more);
    }
}

static void put_choice(void *ctx, const char *name, const char *help, size_t len)
{
    const co_conf_group *g = ctx;
    char prefix[64];

    snprintf(prefix, sizeof prefix, "%s.", g->name);
    printf(".TP\n\\fB%s=", g->name);
    put_all(name);
    printf("\\fR\n");
    if (len)
        put(help, len);
    else
        printf("\\&");
    printf("\n");
    for (int i = 0; i < g->n_rows; i++)
        if (strcmp(g->rows[i].name, name) == 0 && g->rows[i].options->key) {
            printf(".RS\n");
            put_options(prefix, g->rows[i].options);
            printf(".RE\n");
        }
}

static void put_keys(const co_conf_spec *spec)
{
    printf(".SH KEYS\nWords are \\fIgroup\\fR=\\fIchoice\\fR and \\fIkey\\fR=\\fIvalue\\fR; a later one "
           "wins. After "
           "each key stands its default.\n");
    for (int i = 0; i < spec->n_tables; i++)
        if (strcspn(spec->tables[i].prefix, ".") == strlen(spec->tables[i].prefix))
            put_options(spec->tables[i].prefix, spec->tables[i].options);
    for (int g = 0; g < spec->n_groups; g++) {
        printf(".SS \"%s=\"\n", spec->groups[g].name);
        put_all(spec->groups[g].help ? spec->groups[g].help : "");
        if (spec->groups[g].fallback && *spec->groups[g].fallback)
            printf(" (default %s)", spec->groups[g].fallback);
        printf("\n");
        (void)co_conf_each_choice(spec, spec->groups[g].name, put_choice, (void *)(uintptr_t)&spec->groups[g]);
    }
    for (int i = 0; i < spec->n_tables; i++)
        if (strchr(spec->tables[i].prefix, '.')) {
            printf(".SS \"%s*\"\n", spec->tables[i].prefix);
            put_options(spec->tables[i].prefix, spec->tables[i].options);
        }
}

/* --- pages ---------------------------------------------------------------------------------------------- */
static void put_exit_status(void)
{
    printf(".SH \"EXIT STATUS\"\n"
           ".TP\n0\ndone\n"
           ".TP\n1\nfailed\n"
           ".TP\n2\nbad usage, configuration or input; nothing was started\n"
           ".TP\n75\nstopped early on request, with a checkpoint to continue from\n");
}

static void man_program(void)
{
    const char *name = co_program_name();

    title(name, "train neural networks on any number of processes to the same weights, bit for bit");
    printf(".SH SYNOPSIS\n.B %s\n.I COMMAND\n.RI [ WORD \"]...\"\n.SH DESCRIPTION\n", name);
    printf("The weights that come out depend on the configuration, the data and the seed, and on nothing "
           "else: not on "
           "how many processes took part, which of them were killed, or how often the run was stopped and "
           "continued.\n.SH COMMANDS\n");
    for (const command *c = commands; c->name; c++) {
        printf(".TP\n");
        put_bold(c->name, "");
        printf("\n");
        put_all(c->help);
        printf("\n");
    }
    printf(".PP\n\\fB%s\\fR \\fICOMMAND\\fR \\fB\\-\\-help\\fR shows a command's examples and flags.\n", name);
    put_exit_status();
    printf(".SH FILES\n"
           ".TP\n.I configs/\ngroups of YAML files of your own, in the working directory\n"
           ".TP\n.I logs/TASK/runs/DATE/\na run: config.yaml, events.jsonl, summary.json, checkpoints/\n"
           ".SH \"SEE ALSO\"\n");
    for (const command *c = commands; c->name; c++)
        printf(".BR %s\\-%s (1)%s\n", name, c->name, c[1].name ? "," : "");
}

static void man_command(const command *c)
{
    char name[128];

    snprintf(name, sizeof name, "%s-%s", co_program_name(), c->name);
    title(name, c->help);
    printf(".SH SYNOPSIS\n.B %s %s\n", co_program_name(), c->name);
    put_all(c->words);
    printf("\n.SH USAGE\n");
    put_block(c->usage);
    if (strcmp(c->name, "train") == 0)
        put_keys(app_conf_spec(NULL));
    put_exit_status();
    printf(".SH \"SEE ALSO\"\n.BR %s (1)\n", co_program_name());
}

int cmd_man(int argc, char **argv)
{
    if (argc < 2) {
        man_program();
        return CO_EXIT_DONE;
    }
    const command *c = command_find(argv[1]);
    if (!c) {
        co_notice("no command \"%s\" to write a page of", argv[1]);
        return CO_EXIT_USAGE;
    }
    man_command(c);
    return CO_EXIT_DONE;
}
