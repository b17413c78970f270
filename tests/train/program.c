/* program.c -- see program.h. */
#include "train/program.h"

#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "harness.h"

static void read_summary(outcome *o, const char *dir)
{
    char path[512];
    json_t *j = NULL;

    o->median_ms = o->p99_ms = NAN;
    snprintf(path, sizeof path, "%s/summary.json", dir);
    if (co_json_read(&j, path, 1 << 20) != CO_OK)
        return;
    snprintf(o->sha, sizeof o->sha, "%s", co_json_str(j, "weights_sha256"));
    snprintf(o->state, sizeof o->state, "%s", co_json_str(j, "status"));
    co_json_i64(j, "steps", &o->steps);
    co_json_i64(j, "recoveries", &o->recoveries);
    co_json_i64(j, "steady_allocations", &o->allocs);
    co_json_i64(j, "steady_page_faults", &o->faults);
    co_json_f64(j, "recovery_median_ms", &o->median_ms);
    co_json_f64(j, "recovery_p99_ms", &o->p99_ms);
    json_decref(j);
}

outcome program_run(const char *dir, const char *words, ...)
{
    char line[2048];
    outcome o = {0};
    va_list ap;

    va_start(ap, words);
    vsnprintf(line, sizeof line, words, ap);
    va_end(ap);
    test_run r = test_sh("$COHORT train %s run.dir=%s console=plain", line, dir);
    o.status = r.status;
    snprintf(o.out, sizeof o.out, "%s", r.out);
    free(r.out);
    read_summary(&o, dir);
    return o;
}

pid_t program_start(const char *dir, const char *words, ...)
{
    char line[2048], out[256];
    va_list ap;

    va_start(ap, words);
    vsnprintf(line, sizeof line, words, ap);
    va_end(ap);
    snprintf(out, sizeof out, "%s.out", dir);
    return test_spawn(out, "exec setsid $COHORT train %s run.dir=%s console=plain", line, dir);
}

static char *output_of(const char *dir)
{
    char path[256];
    static char text[1 << 20];

    snprintf(path, sizeof path, "%s.out", dir);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    return text;
}

outcome program_end(pid_t pid, const char *dir)
{
    outcome o = {.status = test_wait(pid, 60)};
    const char *text = output_of(dir);
    size_t n = strlen(text);

    CHECK(o.status >= 0, "%s does not end", dir);
    snprintf(o.out, sizeof o.out, "%s", text + (n > sizeof o.out - 1 ? n - sizeof o.out + 1 : 0));
    read_summary(&o, dir);
    return o;
}

static bool is_tracker(pid_t pid)
{
    char path[64], name[32] = "";

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *f = fopen(path, "re");
    if (f && !fgets(name, sizeof name, f))
        name[0] = '\0';
    if (f)
        fclose(f);
    return strcmp(name, "cohort-tracker\n") == 0;
}

int program_ranks(pid_t supervisor, pid_t *pids, int most)
{
    char path[64];
    int n = 0;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)supervisor, (int)supervisor);
    FILE *f = fopen(path, "re");
    while (f && n < most && fscanf(f, "%d", &pids[n]) == 1)
        n += !is_tracker(pids[n]);
    if (f)
        fclose(f);
    return n;
}

bool program_said(const char *dir, const char *words)
{
    return strstr(output_of(dir), words) != NULL;
}

bool program_saved(const char *dir)
{
    char path[512], manifest[1024];
    bool found = false;

    snprintf(path, sizeof path, "%s/checkpoints", dir);
    DIR *d = opendir(path);
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        snprintf(manifest, sizeof manifest, "%s/%s/manifest.json", path, e->d_name);
        FILE *f = e->d_name[0] != '.' ? fopen(manifest, "re") : NULL;
        found = f != NULL;
        if (f)
            fclose(f);
    }
    if (d)
        closedir(d);
    return found;
}

bool process_gone(pid_t pid)
{
    char path[64], line[512] = "";

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return true;
    char *got = fgets(line, sizeof line, f);
    fclose(f);
    char *after = got ? strrchr(line, ')') : NULL;
    return !after || after[2] == 'Z' || after[2] == 'X';
}

void program_same(const outcome *a, const outcome *b, const char *what)
{
    CHECK(b->status == 0 && strcmp(b->state, "done") == 0, "%s: exit %d, %s\n%s", what, b->status, b->state,
          b->out);
    CHECK(a->sha[0] && strcmp(a->sha, b->sha) == 0, "%s: weights %s, undisturbed %s\n%s", what, b->sha,
          a->sha, b->out);
    CHECK(a->steps == b->steps, "%s: %lld steps, undisturbed %lld", what, b->steps, a->steps);
}
