/* logs.c -- `cohort logs`: prints the output of a job's workers, all hosts in one stream, from the files of
 * --log-dir. job/logs.h reads them. */
#include "cli/cli_int.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "job/logs.h"

const char logs_usage[] = "  cohort logs                                   the newest run here\n"
                          "  cohort logs ./logs --follow                   the newest run, live\n"
                          "  cohort logs logs/job_x7tq0a_b --rank 0,4-7    one folder, some ranks\n"
                          "  cohort logs RUN --tail 100 --since 10m        by run id\n"
                          "  cohort logs from-a from-b                     folders of two hosts\n\n"
                          "  Each line begins with [host:rank]. Rank - is the launcher, which says when\n"
                          "  workers began, who failed and how the job ended.\n\n"
                          "  --follow, -f          wait for more until the job ends (or Ctrl-C)\n"
                          "  --rank N,N-M,-        these ranks only; - is the launcher\n"
                          "  --host NAME           this host only\n"
                          "  --tail N              the last N lines\n"
                          "  --since TIME          30s, 10m, 2h, 1d ago, or 2026-11-16T10:00:00\n"
                          "  --time                the time (UTC) before each line\n"
                          "  --json                an object per line\n";

/* "10m" (ago), or a time in the format of merged.log, of which the end may be missing. */
static co_err read_since(char out[CO_STAMP], const char *text)
{
    static const char form[] = "0000-01-01T00:00:00.000000Z";
    static const struct {
        char unit;
        double s;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    size_t n = strlen(text);
    char number[32];
    double x;

    snprintf(number, sizeof number, "%.*s", n > 1 && n < 30 ? (int)n - 1 : 0, text);
    for (size_t i = 0; n > 1 && i < CO_COUNT(units); i++)
        if (text[n - 1] == units[i].unit && co_str_to_f64(number, &x) && x >= 0 && x < 1e6) {
            co_stamp(out, co_wall_s() - x * units[i].s);
            return CO_OK;
        }
    bool good = n >= 10 && n < CO_STAMP;
    snprintf(out, CO_STAMP, "%s", form);
    for (size_t i = 0; good && i < n; i++) {
        bool digit = form[i] >= '0' && form[i] <= '9';
        good = digit ? text[i] >= '0' && text[i] <= '9'
                     : text[i] == form[i] || (form[i] == 'T' && text[i] == ' ');
        out[i] = form[i] == 'T' ? 'T' : text[i];
    }
    return good ? CO_OK
                : co_fail(CO_EINPUT,
                          "logs: --since=%s: 30s, 10m, 2h or 1d, or a time (UTC) like 2026-11-16T10:00:00 is "
                          "needed",
                          text);
}

static void print_object(const co_log_line *l)
{
    json_t *text = json_stringn(l->text, l->len);

    if (!text) { /* not UTF-8: only the valid part */
        char *copy = co_sprintf("%.*s", (int)l->len, l->text);
        for (char *c = copy; c && *c; c++)
            if ((unsigned char)*c >= 0x80)
                *c = '?';
        text = json_string(copy ? copy : "");
        co_free(copy);
    }
    json_t *v = json_pack("{ss ss}", "time", l->stamp, "host", l->host);
    json_object_set_new(v, "rank", l->rank < 0 ? json_null() : json_integer(l->rank));
    json_object_set_new(v, "text", text);
    co_json_print(v);
}

static void print_line(const co_log_line *l, bool time)
{
    if (time)
        printf("%s ", l->stamp);
    if (l->rank < 0)
        printf("[%s:-] ", l->host);
    else
        printf("[%s:%d] ", l->host, l->rank);
    fwrite(l->text, 1, l->len, stdout);
    putchar('\n');
}

/* Says on standard error why no line was printed, or why the job's last line is missing. */
static void explain(const co_logs *logs, const co_logs_spec *spec, bool any)
{
    char there[1000];
    const char *cut = spec->follow ? co_logs_cut(logs) : NULL;

    if (!any && (spec->ranks || spec->host)) {
        co_logs_has(logs, there, sizeof there);
        co_notice("no line of %s%s%s%s%s; what there is: %s", spec->ranks ? "rank " : "",
                  spec->ranks ? spec->ranks : "", spec->ranks && spec->host ? " on " : "",
                  spec->host ? "host " : "", spec->host ? spec->host : "", there);
    }
    if (cut)
        co_notice("the launcher on %s is gone and wrote no \"ends:\" line: it was killed, or its disk was "
                  "full",
                  cut);
}

static int show(co_logs *logs, const co_logs_spec *spec, bool json, bool time)
{
    bool any = false;
    co_log_line l;
    co_err err;

    for (;;) {
        err = co_logs_next(logs, &l);
        if (err)
            break;
        if (l.text && json)
            print_object(&l);
        else if (l.text)
            print_line(&l, time);
        any |= l.text != NULL;
        if (l.text)
            continue;
        fflush(stdout);
        if (!spec->follow || co_logs_over(logs) || ferror(stdout))
            break;
    }
    if (!err && spec->tail != 0)
        explain(logs, spec, any);
    return err ? co_say_error(err) : ferror(stdout) ? CO_EXIT_FAILED : CO_EXIT_DONE;
}

int cmd_logs(int argc, char **argv)
{
    const char *ranks = NULL, *host = NULL, *tail = NULL, *since = NULL;
    bool follow = false, time = false;
    const co_flag flags[] = {{"--follow", .on = &follow},
                             {"-f", .on = &follow},
                             {"--time", .on = &time},
                             {"--rank", "N,N-M", .value = &ranks},
                             {"--host", "NAME", .value = &host},
                             {"--tail", "N", .value = &tail},
                             {"--since", "TIME", .value = &since},
                             {0}};
    line l;
    co_logs *logs = NULL;

    if (line_parse(&l, argc, argv, false, flags))
        return co_say_error(CO_EINPUT);
    if (l.help) {
        line_free(&l);
        return show_usage("logs");
    }
    co_logs_spec spec = {.words = l.words, .n = l.n, .ranks = ranks, .host = host, .tail = -1, .follow = follow};
    co_err err = since ? read_since(spec.since, since) : CO_OK;
    if (!err && tail && (!co_str_to_i64(tail, &spec.tail) || spec.tail < 0))
        err = co_fail(CO_EINPUT, "logs: --tail=%s: a number of lines is needed", tail);
    if (!err)
        err = co_logs_open(&logs, &spec);
    int status = err ? co_say_error(err) : show(logs, &spec, l.json, time);
    co_logs_close(logs);
    line_free(&l);
    return status;
}
