/* wandb.c -- `cohort wandb login` and `cohort wandb sync`. The key is never an argument: those of a process
 * can be read by everybody on the host. */
#include "cli/cli_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "term/say.h"
#include "track/tracker.h"
#include "wandb/wandb.h"

const char wandb_usage[] =
    "  cohort wandb login                       asks for the key, without showing it\n"
    "  cohort wandb login < key.txt             takes it from standard input\n"
    "  cohort wandb sync logs/train/runs/DATE   uploads a run that was offline or cut off\n\n"
    "  The key goes into ~/.netrc (or $NETRC), readable by you alone, where wandb, too,\n"
    "  looks for it. https://wandb.ai/authorize shows your key.\n\n"
    "  --host URL            another service than $WANDB_BASE_URL or https://api.wandb.ai\n"
    "  --verify              login: asks the service whose key it is\n";

/* One line, without its newline; nothing of it is shown if it is typed. */
static bool read_key(char *out, size_t size)
{
    struct termios before, silent;
    bool typed = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0;

    if (typed) {
        silent = before;
        silent.c_lflag &= ~(tcflag_t)ECHO;
        fputs("W&B key (it is not shown): ", stderr);
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
    }
    char *got = fgets(out, (int)size, stdin);
    if (typed) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
        fputc('\n', stderr);
    }
    if (got)
        got[strcspn(got, "\r\n")] = '\0';
    return got != NULL;
}

static co_err login(const char *host, bool verify)
{
    char key[8192] = "", machine[256], who[128] = "";
    co_err err = read_key(key, sizeof key) ? co_wandb_login(key, host, machine, sizeof machine)
                                           : co_fail(CO_EINPUT, "wandb login: standard input has no key");

    explicit_bzero(key, sizeof key);
    CO_TRY(err);
    if (verify)
        CO_TRY(co_wandb_whoami(who, sizeof who));
    co_say("the key for %s is stored in netrc%s%s", machine, *who ? "; it is that of " : "", who);
    return CO_OK;
}

static void tell(void *ctx, const char *text)
{
    (void)ctx;
    co_say("%s", text);
}

static co_err sync_runs(int n, char **folders)
{
    if (n == 0)
        return co_fail(CO_EINPUT,
                       "wandb sync: which run? Give its folder: cohort wandb sync logs/train/runs/DATE");
    for (int i = 0; i < n; i++) {
        co_err err = co_tracker_replay(folders[i], "wandb", "online", tell, NULL);
        if (err)
            return co_fail_in(err, "%s", folders[i]);
    }
    return CO_OK;
}

int cmd_wandb(int argc, char **argv)
{
    const char *host = NULL, *words[64];
    bool verify = false;
    int n = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return show_usage("wandb");
        if (strcmp(argv[i], "--verify") == 0)
            verify = true;
        else if (strncmp(argv[i], "--host=", 7) == 0)
            host = argv[i] + 7;
        else if (strcmp(argv[i], "--host") == 0 && i + 1 < argc)
            host = argv[++i];
        else if (argv[i][0] == '-' || n == 64) {
            co_fail(CO_EINPUT, "wandb: %s is not known here; cohort wandb --help lists the flags", argv[i]);
            return co_say_error(CO_EINPUT);
        } else
            words[n++] = argv[i];
    }
    co_err err;
    if (n == 1 && strcmp(words[0], "login") == 0)
        err = login(host, verify);
    else if (n > 1 && strcmp(words[0], "login") == 0)
        err = co_fail(CO_EINPUT,
                      "wandb login: no key on the command line, where others on this host can read it; "
                      "type it when asked, or: cohort wandb login < FILE");
    else if (n > 0 && strcmp(words[0], "sync") == 0)
        err = sync_runs(n - 1, (char **)words + 1);
    else
        err = co_fail(CO_EINPUT, "wandb: login or sync? cohort wandb --help shows both");
    return err ? co_say_error(err) : CO_EXIT_DONE;
}
