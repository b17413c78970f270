/* data_report.c -- what `cohort bench data` prints: a row per stage that takes time, their sum, and the loader. */
#include "bench/data_int.h"

static double rate(double us)
{
    return us > 0 ? 1e6 / us : 0;
}

/* --- for people --------------------------------------------------------------------------------------- */
static void put_row(co_str *out, double us, double all, const char *name, const char *help)
{
    co_str_addf(out, "%11.0f %10.2f %6.1f  %-10s  %s\n", rate(us), us, all > 0 ? 100 * us / all : 0, name,
                help);
}

static void put_arm(co_str *out, const data_bench *b, const data_arm *a)
{
    double all = data_all_us(b, a), loader = data_loader_us(b, a);

    co_str_addf(out, "\n%s\n  samples/s    us each      %%  stage\n", co_str_text(&a->title));
    for (int s = 0; s < CO_STAGES; s++) {
        double us = data_stage_us(b, a, (co_stage)s);
        if (us > 0)
            put_row(out, us, all, co_stage_name((co_stage)s), co_stage_help((co_stage)s));
    }
    put_row(out, all, all, "all", "the stages together");
    co_str_addf(out, "%11.0f %10.2f         loader      with one thread", rate(loader), loader);
    if (a != b->arm)
        co_str_addf(out, ": %.2fx the first", data_speedup(b, a));
    co_str_add(out, "\n");
}

void data_print_text(const data_bench *b)
{
    co_str text = {0};

    co_str_addf(&text, "CPU time of one core; %d samples a round, medians of %d rounds\n", b->samples,
                b->rounds);
    for (int i = 0; i < b->arms; i++)
        put_arm(&text, b, &b->arm[i]);
    fputs(co_str_text(&text), stdout);
    co_str_fini(&text);
}

/* --- for scripts -------------------------------------------------------------------------------------- */
static void print_stage(const data_arm *a, const char *stage, double us, double all)
{
    json_t *j =
        json_pack("{s:s, s:s, s:s}", "task", "data stage", "words", co_str_text(&a->title), "stage", stage);

    json_object_set_new(j, "us", co_json_num(us));
    json_object_set_new(j, "samples_per_s", co_json_num(rate(us)));
    json_object_set_new(j, "share", co_json_num(all > 0 ? us / all : 0));
    co_json_print(j);
}

static void print_arm(const data_bench *b, const data_arm *a)
{
    double all = data_all_us(b, a), loader = data_loader_us(b, a);

    for (int s = 0; s < CO_STAGES; s++) {
        double us = data_stage_us(b, a, (co_stage)s);
        if (us > 0)
            print_stage(a, co_stage_name((co_stage)s), us, all);
    }
    json_t *j = json_pack("{s:s, s:s, s:i, s:i}", "task", "data", "words", co_str_text(&a->title), "samples",
                          b->samples, "rounds", b->rounds);
    json_object_set_new(j, "us", co_json_num(all));
    json_object_set_new(j, "samples_per_s", co_json_num(rate(all)));
    json_object_set_new(j, "loader_us", co_json_num(loader));
    json_object_set_new(j, "loader_samples_per_s", co_json_num(rate(loader)));
    json_object_set_new(j, "speedup", co_json_num(data_speedup(b, a)));
    co_json_print(j);
}

void data_print_json(const data_bench *b)
{
    for (int i = 0; i < b->arms; i++)
        print_arm(b, &b->arm[i]);
}
