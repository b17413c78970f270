/* data.c -- `cohort bench data`: how fast one core makes samples, stage by stage. */
#include "bench/data_int.h"

#include <string.h>

#include "base/fs.h"
#include "config/config.h"

/* Without data=, pictures that the bench makes; these words come before the user's, which win. */
static const char *const usual[] = {"data=imagefolder", "model=linear",       "data.augment=imagenet",
                                    "data.crop=64",     "data.batch_size=64", "data.test_fraction=0"};
static const char *const always[] = {"trainer.devices=1", "trainer.threads=1", "console=quiet"};
enum { MADE_LEAST = 8, MADE_MOST = 4096 };

void data_help(co_str *out)
{
    co_str_add(out, "\n  cohort bench data                   JPEG files of 64x64 that it makes\n"
                    "  cohort bench data data=tinyimagenet data.dir=DIR\n"
                    "  cohort bench data --made 500x400 --vs data.decode=reduced\n"
                    "  cohort bench data data=text data.path=FILE model=lm --json\n\n"
                    "  The words are those of `cohort train`. The slices of training are\n"
                    "  loaded by one thread; nothing is computed. `--vs WORDS` measures\n"
                    "  another way in turn with the first: the first one's words, then\n"
                    "  these. There may be several. `--made WxH` is the size of the\n"
                    "  pictures that the bench makes; `data.crop=224` sets that of their\n"
                    "  samples. Times are CPU times: waiting for a disk is not in them.\n");
}

/* --- the command line --------------------------------------------------------------------------------- */
static co_err add_word(data_arm *a, const char *word, bool shown)
{
    int n = 0;

    while (a->words[n])
        n++;
    if (n == BENCH_WORDS - 1)
        return co_fail(CO_EINPUT, "bench data: more than %d settings", BENCH_WORDS - 1);
    a->words[n] = word;
    if (shown)
        co_str_addf(&a->title, "%s%s", a->title.len ? " " : "", word);
    return CO_OK;
}

/* A new arm has the words of the first. */
static co_err add_arm(data_bench *b)
{
    data_arm *a = &b->arm[b->arms];

    if (b->arms == DATA_ARMS)
        return co_fail(CO_EINPUT, "bench data: --vs: at most %d ways are measured together", DATA_ARMS);
    if (b->arms > 0) {
        memcpy(a->words, b->arm[0].words, sizeof a->words);
        co_str_add(&a->title, co_str_text(&b->arm[0].title));
    }
    b->arms++;
    return CO_OK;
}

static bool names_data(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--vs") != 0; i++)
        if (strncmp(argv[i], "data=", 5) == 0 || strncmp(argv[i], "experiment=", 11) == 0)
            return true;
    return false;
}

/* Takes the settings out of argv and deals them to the arms; flags stay there. */
static co_err deal_words(data_bench *b, int *argc, char **argv)
{
    int kept = 1, own = 1; /* own: words of the arm in hand; the first may have none */

    for (int i = 1; i < *argc; i++) {
        bool vs = strcmp(argv[i], "--vs") == 0;
        if (vs && own == 0)
            break;
        if (vs) {
            CO_TRY(add_arm(b));
            own = 0;
        } else if (argv[i][0] != '-' && strchr(argv[i], '=')) {
            CO_TRY(add_word(&b->arm[b->arms - 1], argv[i], true));
            own++;
        } else {
            argv[kept++] = argv[i];
        }
    }
    *argc = kept;
    return own ? CO_OK
               : co_fail(CO_EINPUT, "bench data: --vs needs words of another way, as in --vs data.crop=224");
}

static co_err read_size(const char *text, int *width, int *height)
{
    char rest;

    if (!text)
        return CO_OK;
    if (sscanf(text, "%dx%d%c", width, height, &rest) != 2 || *width < MADE_LEAST || *width > MADE_MOST ||
        *height < MADE_LEAST || *height > MADE_MOST)
        return co_fail(CO_EINPUT, "bench data: --made %s is not a size as 500x400, with sides from %d to %d",
                       text, MADE_LEAST, MADE_MOST);
    return CO_OK;
}

/* --- one measurement ---------------------------------------------------------------------------------- */
static co_err open_arms(data_bench *b, const co_bench_planner *planner)
{
    for (int i = 0; i < b->arms; i++) {
        data_arm *a = &b->arm[i];
        CO_TRY(planner->open(&a->plan, &a->held, a->words));
        CO_TRY(co_loading_open(&a->loading, a->plan));
    }
    return CO_OK;
}

static void close_arms(data_bench *b, const co_bench_planner *planner)
{
    for (int i = 0; i < b->arms; i++) {
        co_loading_close(b->arm[i].loading);
        if (b->arm[i].held)
            planner->close(b->arm[i].held);
        co_str_fini(&b->arm[i].title);
    }
}

/* What the command line says. */
struct asked {
    bool json;
    int width, height; /* of the pictures to make; width 0: none */
    char *dir;         /* the word data.dir=... of made pictures */
};

static co_err read_line(data_bench *b, struct asked *asked, int argc, char **argv, const char *root)
{
    const char *rounds = NULL, *samples = NULL, *made = NULL;
    bool own = names_data(argc, argv);
    char pictures[96];

    CO_TRY(add_arm(b));
    for (size_t i = 0; i < CO_COUNT(always); i++)
        CO_TRY(add_word(&b->arm[0], always[i], false));
    for (size_t i = 0; i < CO_COUNT(usual) && !own; i++)
        CO_TRY(add_word(&b->arm[0], usual[i], true));
    snprintf(pictures, sizeof pictures, "%s/pictures", root);
    asked->dir = co_conf_word("data.dir", pictures);
    if (!asked->dir)
        return CO_ENOMEM;
    if (!own)
        CO_TRY(add_word(&b->arm[0], asked->dir, false));
    CO_TRY(deal_words(b, &argc, argv));
    CO_TRY(co_flags_parse("bench data", argc, argv,
                          (const co_flag[]){{"--rounds", "N", .value = &rounds},
                                            {"--samples", "N", .value = &samples},
                                            {"--made", "WxH", .value = &made},
                                            {"--json", .on = &asked->json},
                                            {0}}));
    CO_TRY(bench_number("data", "--rounds", rounds, DATA_MOST_ROUNDS, &b->rounds));
    CO_TRY(bench_number("data", "--samples", samples, 1000000, &b->samples));
    if (own && made)
        return co_fail(CO_EINPUT, "bench data: --made is for pictures that the bench makes, without data=");
    CO_TRY(read_size(made, &asked->width, &asked->height));
    asked->width = own ? 0 : asked->width;
    return CO_OK;
}

static co_err measure(data_bench *b, const struct asked *asked, const co_bench_planner *planner,
                      const char *root)
{
    if (asked->width)
        CO_TRY(data_pictures_make(root, asked->width, asked->height));
    CO_TRY(open_arms(b, planner));
    CO_TRY(data_measure(b));
    (asked->json ? data_print_json : data_print_text)(b);
    return CO_OK;
}

int bench_data(int argc, char **argv, const co_bench_planner *planner)
{
    data_bench b = {.rounds = 9, .samples = 256};
    struct asked asked = {.width = 64, .height = 64};
    char root[64];

    b.arm = co_zalloc(DATA_ARMS * sizeof *b.arm);
    co_err err = b.arm ? trial_folder(root) : CO_ENOMEM;
    if (!err) {
        err = read_line(&b, &asked, argc, argv, root);
        if (!err)
            err = measure(&b, &asked, planner, root);
        close_arms(&b, planner);
        co_fs_remove_tree(root);
    }
    co_free(asked.dir);
    co_free(b.arm);
    return err ? co_say_error(err) : CO_EXIT_DONE;
}
