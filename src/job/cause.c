/* cause.c -- says how a worker died, the most likely reason, and what to do, from tables that are searched in
 * order.
 *
 * The kernel's facts come first (the signal, the out-of-memory killer, a full /dev/shm, a missing instruction
 * set), then the worker's own: PyTorch's error file, the last line of a Python traceback.
 */
#include "job/job_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/evidence.h"

static void join_tail(char *out, size_t size, const tail *t)
{
    uint64_t have = t->n < TAIL_LINES ? t->n : TAIL_LINES, from = have;
    size_t need = 0;

    while (from > 0) { /* as many of the last lines as fit */
        size_t len = strlen(t->line[(t->n - 1 - (have - from)) % TAIL_LINES]) + 1;
        if (need + len >= size)
            break;
        need += len;
        from--;
    }
    out[0] = '\0';
    for (size_t at = 0; from < have; from++)
        at += (size_t)snprintf(out + at, size - at, "%s\n", t->line[(t->n - have + from) % TAIL_LINES]);
}

static const char consequence[] = "likely a consequence: another rank went first; its own output says why";

/* Advice for exceptions and last lines. */
static const struct {
    const char *has, *advice;
    bool by_others; /* another rank's end causes it */
} sayings[] = {
    {"CUDA out of memory", "the GPU's memory is full: a smaller batch per process, or more GPUs"},
    {"OutOfMemoryError", "memory is full: a smaller batch per process, or fewer processes"},
    {"killed by signal: Bus error", "data loaders ran out of shared memory: give /dev/shm more (docker run "
                                    "--shm-size=8g), or fewer loaders"},
    {"killed by signal: Killed",
     "a data loader was killed, most often for memory: fewer loader processes, or a smaller batch"},
    {"killed by signal: Terminated",
     "SIGTERM ends data loaders before the script has saved: save on SIGUSR1, which they "
     "survive if its handler only sets a flag (sbatch --signal=USR1@60, without B:)"},
    {"Address already in use", "a port is taken: leave --master-port and --rdzv-endpoint out (a free one is "
                               "found), or ss -ltnp says who has it"},
    {"EADDRINUSE", "a port is taken: leave --master-port and --rdzv-endpoint out (a free one is found), or "
                   "ss -ltnp says who has it"},
    {"arguments: --local-rank",
     "the script does not know --local-rank: leave --legacy-local-rank out, or add --use-env"},
    {"arguments: --local_rank",
     "the script does not know --local_rank: leave --legacy-local-rank out, or add --use-env"},
    {"required: --local", "the script expects --local-rank as an argument: --legacy-local-rank passes it"},
    {"ModuleNotFoundError",
     "it is not installed in the Python that ran: PYTHON_EXEC=/path/to/python chooses another"},
    {"KeyError: 'RANK'", "the script was started without the environment of a launcher"},
    {"No space left on device", "a disk is full: df -h says which"},
    {"Connection closed by peer", consequence, true},
    {"Connection reset by peer", consequence, true},
    {"No CUDA GPUs are available",
     "no GPU was found here: check nvidia-smi and CUDA_VISIBLE_DEVICES, or use the gloo backend on CPUs"},
    {"invalid device ordinal", "more processes than GPUs: --nproc-per-node=gpu starts one for each"},
    {"Too many open files", "ulimit -n raises the number of open files"},
};

static void advise(co_failure *f, const char *advice)
{
    if (!f->advice[0])
        snprintf(f->advice, sizeof f->advice, "%s", advice);
}

/* As much of the text as fits. */
static void add_how(co_failure *f, const char *text)
{
    size_t n = strlen(f->how), room = sizeof f->how - 1 - n, len = strnlen(text, room);

    memcpy(f->how + n, text, len);
    f->how[n + len] = '\0';
}

/* A file without execute permission is run by Python, which fails if it is a shell script. */
static void advise_chmod(co_failure *f, const job *j, const char *exception)
{
    const char *const *argv = j->spec->argv;
    const char *script = argv[0] && argv[1] && strcmp(argv[1], "-u") == 0 ? argv[2] : NULL;
    size_t n = script ? strlen(script) : 0;
    bool unread = strstr(exception, "SyntaxError") || strstr(exception, "IndentationError") ||
                  strstr(exception, "NameError");

    if (!unread || n == 0 || (n > 3 && strcmp(script + n - 3, ".py") == 0) || access(script, F_OK) != 0 ||
        access(script, X_OK) == 0 || f->advice[0])
        return;
    snprintf(
        f->advice, sizeof f->advice,
        "chmod +x %.120s, unless it is a Python script: a file without execute permission is run by Python",
        script);
}

static void by_kernel(co_failure *f, job *j, const worker *w)
{
    co_death_cause cause;

    co_death_tell(&cause, w->status, w->pid, &j->round.traces);
    snprintf(f->how, sizeof f->how, "%s", cause.how);
    advise(f, cause.advice);
}

static void by_own_words(co_failure *f, job *j, const worker *w)
{
    char says[256] = "", *path = files_path(&j->files, w->local_rank, "error.json");
    bool found = path && co_evidence_error_file(path, says, sizeof says);

    co_free(path);
    if (!found)
        snprintf(says, sizeof says, "%s", w->exception[0] ? w->exception : w->earlier);
    if (says[0]) {
        add_how(f, ": ");
        add_how(f, says);
    }
    advise_chmod(f, j, says);
    for (size_t i = 0; i < CO_COUNT(sayings); i++)
        if (strstr(says, sayings[i].has) || strstr(f->last, sayings[i].has))
            advise(f, sayings[i].advice);
}

static void fill(co_failure *f, const job *j, const worker *w)
{
    *f = (co_failure){.host_rank = j->round.is.my_host,
                      .rank = w->rank,
                      .local_rank = j->spec->local_first + w->local_rank,
                      .pid = w->pid,
                      .status = w->status,
                      .when_ns = w->when_ns - co_roster_clock_offset(j->roster)};
    snprintf(f->host, sizeof f->host, "%s", j->host);
    join_tail(f->last, sizeof f->last, &w->tail);
}

/* The interpreter in a script's first line, and what is wrong with it; false: the script names none. */
static bool interpreter_of(char *out, size_t size, const char *file)
{
    char head[200] = "";
    FILE *in = fopen(file, "re");

    if (in && !fgets(head, sizeof head, in))
        head[0] = '\0';
    if (in)
        fclose(in);
    if (strncmp(head, "#!", 2) != 0)
        return false;
    head[strcspn(head, "\n")] = '\0';
    bool returned = head[strlen(head) - 1] == '\r';
    char *name = head + 2 + strspn(head + 2, " \t");
    name[strcspn(name, " \t\r")] = '\0';
    if (returned)
        snprintf(out, size,
                 "its first line ends with a carriage return, as Windows writes it: sed -i 's/\\r$//' %.120s",
                 file);
    else
        snprintf(out, size, "its first line names %s, which is not there", name);
    return true;
}

static void not_started(co_failure *f, const char *file, int why)
{
    char says[256];

    snprintf(f->how, sizeof f->how, "could not be started: %.200s: %s", file, strerror(why));
    if (why == ENOENT && access(file, F_OK) == 0 && interpreter_of(says, sizeof says, file))
        advise(f, says);
    else if (why == ENOEXEC)
        advise(f, "a script needs #! and its interpreter in the first line; a program may be for another "
                  "kind of machine "
                  "(file says which)");
}

/* Exceptions that are a normal way to end, or that another rank's end causes. */
bool cause_excused(const char *exception)
{
    static const char *const own[] = {"KeyboardInterrupt", "SystemExit"};
    bool is = false;

    for (size_t i = 0; i < CO_COUNT(own); i++)
        is |= strncmp(exception, own[i], strlen(own[i])) == 0;
    for (size_t i = 0; i < CO_COUNT(sayings); i++)
        is |= sayings[i].by_others && strstr(exception, sayings[i].has);
    return is;
}

void cause_of(co_failure *f, job *j, worker *w)
{
    fill(f, j, w);
    if (w->not_started) {
        not_started(f, j->spec->file, w->not_started);
        return;
    }
    by_kernel(f, j, w);
    by_own_words(f, j, w);
    if (!f->advice[0] && !f->last[0])
        advise(f, "it said nothing; run it alone (--nproc-per-node=1), or with PYTHONFAULTHANDLER=1");
}

static const char *stall_advice(const bystander *who, bool several_hosts)
{
    char state = who->suspect ? who->suspect->state : ' ';

    if (state == 'D')
        return "a disk or network mount does not answer: look at the file it waits for";
    if (state == 'T')
        return "it is stopped (SIGSTOP or a debugger): kill -CONT lets it go on";
    if (who->in.for_others && several_hosts)
        return "it waits for others, perhaps on another host; py-spy dump on a run without --stall-after "
               "shows the place";
    return "py-spy dump or gdb on a run without --stall-after shows the place";
}

void cause_of_stall(co_failure *f, job *j, const bystander *who, double since_s, const char *all)
{
    char place[200] = "";
    const co_proc_wait *in = &who->in;

    fill(f, j, who->w);
    f->status = 1 << 8;
    if (who->suspect)
        snprintf(place, sizeof place, "; pid %d is %s%s%s%s", (int)who->suspect->pid, in->state,
                 in->where[0] ? " in " : "", in->where, in->means);
    if (who->spins)
        snprintf(f->how, sizeof f->how, "computed for %.0f s without output while all others waited for it",
                 since_s);
    else
        snprintf(f->how, sizeof f->how, "made no progress for %.0f s: no output, no CPU time", since_s);
    add_how(f, place);
    snprintf(f->advice, sizeof f->advice, "%s%s", stall_advice(who, j->round.is.hosts > 1), all);
}
