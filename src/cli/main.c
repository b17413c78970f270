/* main.c -- finds the command in argv and runs it. Without a command, `cohort` says what it is and what to
 * type first. */
#include "cli/cli.h"
#include "cli/cli_int.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/program.h"
#include "proc/init.h"
#include "term/help.h"

static void introduce(void)
{
    printf("cohort %s trains neural networks on any number of processes to the same\n"
           "weights, bit for bit.\n\n",
           COHORT_VERSION);
    co_help_print(stdout, "  cohort train experiment=demo          train the built-in digits in seconds\n"
                          "  cohort train --help                   examples, groups, keys\n"
                          "  cohort plan ...                       memory, steps and time of a training\n"
                          "  cohort ps                             training runs on this machine\n"
                          "  cohort launch --help                  programs of any kind, on many hosts\n"
                          "  cohort help                           all commands\n\n");
    show_here();
}

static void log_sink(void *ctx, co_log_level level, const char *text)
{
    (void)ctx;
    co_say("%s%s", level == CO_LOG_ERROR ? "error: " : level == CO_LOG_WARN ? "warning: " : "", text);
}

/* If descriptor 0, 1 or 2 is closed, the next file we open would become standard output or error, and
 * messages would be written into it. */
static void hold_standard_descriptors(void)
{
    int fd;

    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO)
        ;
    if (fd >= 0)
        close(fd);
}

/* SIGCHLD may be ignored by inheritance: the kernel would reap our children and never tell us. Writing to a
 * closed pipe or beyond a file-size limit must be an error, not a death: ranks must be stopped and records
 * closed. Programs that we exec get the default handlers back (children of proc and ssh). */
static void settle_signals(void)
{
    struct sigaction was;

    if (sigaction(SIGCHLD, NULL, &was) == 0 && was.sa_handler == SIG_IGN)
        signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

static bool is_word(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

static int run_command(int argc, char **argv)
{
    const command *c = command_find(argv[0]);

    co_init_stay_behind();
    if (c && c->prints)
        signal(SIGPIPE, SIG_DFL);
    if (c)
        return c->run(argc, argv);
    if (!command_is_planned(argv[0]))
        command_unknown(argv[0]);
    return CO_EXIT_USAGE;
}

/* `cohort help`, and `cohort help COMMAND`, which is COMMAND --help. */
static int help(int argc, char **argv)
{
    static char flag_help[] = "--help";

    if (argc > 1 && is_word(argv[1], "--help", "-h"))
        argc = 1;
    if (argc > 1 && strcmp(argv[1], "--man") == 0)
        return cmd_man(argc - 1, argv + 1);
    if (argc > 1) {
        argv[0] = argv[1];
        argv[1] = flag_help;
        return run_command(argc, argv);
    }
    introduce();
    printf("\n");
    list_commands(stdout);
    return CO_EXIT_DONE;
}

int co_cli_main(int argc, char **argv)
{
    hold_standard_descriptors();
    settle_signals();
    co_log_to(log_sink, NULL, CO_LOG_INFO);
    if (strcmp(co_program(), "cohort") == 0) /* otherwise co_cli_use has set the name */
        co_program_set(argc > 0 ? argv[0] : NULL);
    if (argc < 2) {
        introduce();
        return CO_EXIT_DONE;
    }
    if (is_word(argv[1], "--version", "-V")) {
        printf("cohort %s\n", COHORT_VERSION);
        return CO_EXIT_DONE;
    }
    if (is_word(argv[1], "--help", "-h"))
        return help(1, argv + 1);
    if (strcmp(argv[1], "help") == 0)
        return help(argc - 1, argv + 1);
    if (strcmp(argv[1], "complete") == 0)
        return cmd_complete(argc - 1, argv + 1);
    return run_command(argc - 1, argv + 1);
}
