/* plan.c -- `cohort plan`: what `cohort train` would decide for the same words, without starting it. It shows
 * the first screen, memory to the byte by purpose, and the time of a step, predicted from a short
 * measurement. */
#include "cli/train_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "job/meet.h"
#include "train/measure.h"

/* Classes of shared-memory regions, by the part of their names before the first dot. */
static const struct {
    const char *name, *what;
} classes[] = {{"weights", "parameters and running statistics, one copy for all ranks"},
               {"moments", "the optimiser's, and the average of the weights"},
               {"sum", "the step's gradient"},
               {"aside", "a pool for old bytes that a checkpoint has not read yet"},
               {"best", "the best weights, read for the final test"},
               {"leaves", "gradients of slices, by rank"},
               {"work", "activations and workspace, by rank and thread"},
               {"input", "slices of data, by rank and loader thread"},
               {"output", "predictions of an evaluation"},
               {"rows", "gradients of the rows of tables that a step uses"},
               {"wire", "what this host sends to other hosts and receives from them"},
               {"journal", "bytes before an update, to put back after a death"},
               {"scratch", "partial sums, by rank"},
               {"marks", "who does what, and what is done"},
               {"stats", "losses, metrics and norms"},
               {"control", "the unit in progress, and results on their way"},
               {"deal", "which rank has which leaves"},
               {"slots", "each rank's progress and flight record"},
               {"choices", "predicted and right classes of the test"}};

static bool is_of(const co_region *r, const char *name)
{
    size_t n = strlen(name);

    return strncmp(r->name, name, n) == 0 && (r->name[n] == '\0' || r->name[n] == '.');
}

static size_t bytes_of(const co_arena *a, const char *name)
{
    size_t sum = 0;

    for (int i = 0; i < a->n; i++)
        sum += is_of(&a->region[i], name) ? a->region[i].bytes : 0;
    return sum;
}

static bool is_known(const co_region *r)
{
    for (size_t c = 0; c < CO_COUNT(classes); c++)
        if (is_of(r, classes[c].name))
            return true;
    return false;
}

/* Calls `row` for every class that has bytes, for the regions of no class, and for the bytes lost to page
 * rounding. The sum is the whole arena. */
static void each_class(const co_plan_facts *f,
                       void (*row)(void *ctx, const char *name, size_t bytes, const char *what), void *ctx)
{
    const co_arena *a = f->arena;
    size_t known = 0, other = 0;

    for (size_t c = 0; c < CO_COUNT(classes); c++) {
        size_t bytes = bytes_of(a, classes[c].name);
        known += bytes;
        if (bytes)
            row(ctx, classes[c].name, bytes, classes[c].what);
    }
    for (int i = 0; i < a->n; i++)
        other += is_known(&a->region[i]) ? 0 : a->region[i].bytes;
    if (other)
        row(ctx, "other", other, "the rest");
    row(ctx, "rounding", f->arena_bytes - known - other, "each region begins at a page of its own");
}

static void print_row(void *ctx, const char *name, size_t bytes, const char *what)
{
    printf("  %-10s %15zu  %s\n", name, bytes, what);
}

static void put_row(void *ctx, const char *name, size_t bytes, const char *what)
{
    json_object_set_new(ctx, name, json_integer((json_int_t)bytes));
}

/* --- for people --------------------------------------------------------------------------------------- */
static void show_memory(const co_plan_facts *f)
{
    printf("\nmemory in bytes\n");
    each_class(f, print_row, NULL);
    printf("  %-10s %15zu  all of the above\n", "shared", f->arena_bytes);
    printf("  %-10s %15zu  of the supervisor and %d rank%s together\n", "private", f->private_bytes, f->ranks,
           f->ranks == 1 ? "" : "s");
    printf("  %-10s %15zu\n", "in all", f->arena_bytes + f->private_bytes);
}

/* The first line, if there are several hosts. */
static void show_hosts(const training *s)
{
    const co_hosts_line *hosts = s->app.hosts;
    char count[64];

    if (!hosts || hosts->terms.max_hosts == 1)
        return;
    co_hosts_line_count(count, sizeof count, hosts);
    int ranks = co_plan_facts_of(s->plan)->ranks;
    printf("hosts     %s with %d rank%s each", count, ranks, ranks == 1 ? "" : "s");
    if (hosts->place[0])
        printf(" (%s)", hosts->place);
    if (hosts->terms.host_rank >= 0)
        printf("; this is %d", hosts->terms.host_rank);
    if (hosts->meet.endpoint[0])
        printf("; they meet at %s", hosts->meet.endpoint);
    printf("\n");
}

enum { FASTER_GBITS = 10 }; /* a second rate of the wire, for comparison */

/* Several hosts: the wire, and what they achieve together. */
static void show_wire(const co_plan_facts *f, const co_calibration *c)
{
    printf("  the wire   %10.3f ms at %d Gbit/s, %.3f ms at %d Gbit/s: two assumed rates, for %.2f MB that a "
           "host sends\n",
           c->wire_ms, CO_WIRE_GBITS, c->wire_ms * CO_WIRE_GBITS / FASTER_GBITS, FASTER_GBITS,
           f->wire_bytes * 1e-6);
}

static void show_efficiency(const co_calibration *c, int hosts)
{
    double faster_ms = c->work_ms + c->wire_ms * CO_WIRE_GBITS / FASTER_GBITS;

    printf("             %10.3f ms at %d Gbit/s; %.3f ms if this host trained alone\n", faster_ms,
           FASTER_GBITS, c->alone_ms);
    printf("  efficiency %10.2f of %d such hosts at %d Gbit/s, %.2f at %d Gbit/s; more where sending and "
           "computing"
           " overlap\n",
           co_calibration_efficiency(c, hosts, CO_WIRE_GBITS), hosts, CO_WIRE_GBITS,
           co_calibration_efficiency(c, hosts, FASTER_GBITS), FASTER_GBITS);
}

static void show_time(const co_plan_facts *f, const co_calibration *c, int hosts)
{
    char all[32];
    printf("\ntime, predicted from a few slices on this machine as it is now\n");
    printf("  a slice    %10.3f ms%s, and %.3f ms to fill it\n", c->slice_ms,
           f->at_once > 1 ? " on one thread of its own" : "", c->load_ms);
    printf("  sum, apply %10.3f ms\n", c->sum_apply_ms);
    if (hosts > 1)
        show_wire(f, c);
    printf("  a step     %10.3f ms with %d rank%s", c->step_ms, f->ranks, f->ranks == 1 ? "" : "s");
    if (f->threads > 1)
        printf(" x %d threads", f->threads);
    if (hosts > 1)
        printf(" on each of %d hosts at %d Gbit/s", hosts, CO_WIRE_GBITS);
    printf(": %.0f samples/s\n", c->step_ms > 0 ? 1e3 * (double)f->batch / c->step_ms : 0.0);
    if (hosts > 1)
        show_efficiency(c, hosts);
    printf("  an epoch   %10.1f s with its evaluation%s\n", c->epoch_s,
           f->endless ? "; nothing limits how many there are" : "");
    if (c->test_s > 0)
        printf("  final test %10.1f s\n", c->test_s);
    if (!f->endless)
        printf("  all of it  about %s%s\n", co_time_text(all, c->total_s),
               c->test_s > 0 ? ", with the final test" : "");
}

/* --- for scripts -------------------------------------------------------------------------------------- */
static json_t *json_of_wire(const co_plan_facts *f, const co_calibration *c, int hosts)
{
    json_t *rates = json_array();

    for (int gbits = CO_WIRE_GBITS; gbits <= FASTER_GBITS; gbits += FASTER_GBITS - CO_WIRE_GBITS)
        json_array_append_new(rates, json_pack("{s:i, s:f, s:f}", "gbits", gbits, "step_ms",
                                               c->work_ms + c->wire_ms * CO_WIRE_GBITS / gbits, "efficiency",
                                               co_calibration_efficiency(c, hosts, gbits)));
    return json_pack("{s:f, s:i, s:f, s:f, s:o}", "bytes_per_step", f->wire_bytes, "slices_per_host",
                     f->share_most, "work_ms", c->work_ms, "alone_ms", c->alone_ms, "assumed", rates);
}

static json_t *json_of_plan(const training *s, const co_calibration *c)
{
    const co_plan_facts *f = co_plan_facts_of(s->plan);
    const co_train_spec *spec = &s->app.spec;
    const uint32_t *count = f->data->count;
    json_t *memory = json_object(), *classes_of = json_object();

    each_class(f, put_row, classes_of);
    json_object_set_new(memory, "shared", classes_of);
    json_object_set_new(memory, "shared_bytes", json_integer((json_int_t)f->arena_bytes));
    json_object_set_new(memory, "private_bytes", json_integer((json_int_t)f->private_bytes));
    json_object_set_new(memory, "bytes", json_integer((json_int_t)(f->arena_bytes + f->private_bytes)));
    json_t *data = json_pack("{s:s, s:I, s:I, s:I, s:I, s:s}", "name", spec->data->name, "train",
                             (json_int_t)count[CO_SPLIT_TRAIN], "val", (json_int_t)count[CO_SPLIT_VAL],
                             "test", (json_int_t)count[CO_SPLIT_TEST], "classes",
                             (json_int_t)f->data->io.classes, "fingerprint", f->data->fingerprint);
    json_t *j =
        json_pack("{s:s, s:I, s:o, s:I, s:i, s:i, s:i, s:I, s:I, s:I, s:I}", "model", spec->model->name,
                  "parameters", (json_int_t)f->params, "data", data, "global_batch", (json_int_t)f->batch,
                  "slices", f->slices, "ranks", f->ranks, "ranks_asked", f->ranks_asked, "steps_per_epoch",
                  (json_int_t)f->steps_per_epoch, "steps", (json_int_t)f->steps, "epochs",
                  (json_int_t)f->epochs, "start_step", (json_int_t)f->start_step);
    json_object_set_new(j, "hosts", json_integer(spec->hosts));
    json_object_set_new(j, "threads", json_integer(f->threads));
    json_object_set_new(j, "slices_at_once", json_boolean(f->at_once > 1));
    json_object_set_new(j, "optim", json_string(spec->optim->name));
    json_object_set_new(j, "schedule", json_string(spec->schedule->name));
    json_object_set_new(j, "kernels", json_string(f->kernels));
    json_object_set_new(j, "flops_per_step", json_real(f->flops_per_step));
    json_object_set_new(j, "config_sha256", json_string(spec->config_sha256));
    json_object_set_new(j, "memory", memory);
    json_object_set_new(j, "time",
                        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "slice_ms", c->slice_ms,
                                  "load_ms", c->load_ms, "sum_apply_ms", c->sum_apply_ms, "eval_item_ms",
                                  c->eval_item_ms, "step_ms", c->step_ms, "epoch_s", c->epoch_s, "test_s",
                                  c->test_s, "total_s", f->endless ? 0 : c->total_s));
    if (spec->hosts > 1)
        json_object_set_new(j, "wire", json_of_wire(f, c, spec->hosts));
    return j;
}

/* --parameters: the model's summary, a line for each tensor in the order in which the model makes them. */
static void show_parameters(const co_plan_facts *f)
{
    static const char *const kinds[] = {"parameter", "statistic", "counter"};
    char shape[96];

    printf("\n%-40s %-20s %12s\n", "tensors of the model", "shape", "numbers");
    for (int i = 0; i < f->layout->n; i++) {
        const co_entry *e = &f->layout->entry[i];
        printf("  %-38s %-20s %12zu  %s\n", e->name, co_shape_text(shape, sizeof shape, &e->shape),
               (size_t)co_shape_count(&e->shape), kinds[e->kind]);
    }
    printf("  %-38s %-20s %12zu\n", "all parameters", "", f->params);
}

static int plan(training *s, line *l, bool parameters)
{
    co_calibration c = {0};
    co_err err = training_plan(s, l);

    if (!err)
        err = co_plan_calibrate(s->plan, &c);
    if (err)
        return co_say_error(err);
    if (l->json) {
        co_json_print(json_of_plan(s, &c));
        return CO_EXIT_DONE;
    }
    show_hosts(s);
    fputs(co_plan_facts_of(s->plan)->lines, stdout);
    show_memory(co_plan_facts_of(s->plan));
    show_time(co_plan_facts_of(s->plan), &c, s->app.spec.hosts);
    if (parameters)
        show_parameters(co_plan_facts_of(s->plan));
    return CO_EXIT_DONE;
}

/* Does the line ask for a sweep? Planning is for one run. */
static bool is_sweep(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-m") == 0 || strcmp(argv[i], "--multirun") == 0)
            return true;
    return false;
}

int cmd_plan(int argc, char **argv)
{
    training s = {.began_ns = co_now_ns()};
    line l;
    bool parameters = false;
    const co_flag flags[] = {{"--parameters", .on = &parameters}, {0}};

    if (is_sweep(argc, argv)) {
        co_notice("plan takes one run, not a sweep (-m): leave -m out and give each key one value");
        return CO_EXIT_USAGE;
    }
    if (line_parse(&l, argc, argv, true, flags) != CO_OK)
        return co_say_error(CO_EINPUT);
    l.typed = argv;
    int status = l.help ? show_usage("plan") : plan(&s, &l, parameters);
    if (s.plan || s.app.conf)
        training_close(&s);
    line_free(&l);
    return status;
}
