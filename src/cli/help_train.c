/* help_train.c -- `cohort train --help`: a first page that fits two screens, and the keys behind it.
 *
 *     cohort train --help            examples, flags, the groups' choices, the keys that are used most
 *     cohort train --help WORD       a group, a key, or all keys below a name
 *     cohort train --help all        every key (with --markdown: docs/keys.md)
 *     cohort train --help habits     what the flags of other programs become
 */
#include "cli/cli_int.h"

#include <stdio.h>
#include <string.h>

#include "term/help.h"

/* Keys of the first page, with short descriptions; the option tables have the full ones. */
static const struct {
    const char *key, *means;
} often[] = {{"data.batch_size=N", "samples per step, over all ranks and hosts"},
             {"data.dir=FOLDER", "where the data set lies"},
             {"optim.lr=X", "learning rate"},
             {"trainer.max_epochs=N", "passes over the data; trainer.max_steps counts steps"},
             {"trainer.devices=N", "ranks on this host (default: a rank for each CPU)"},
             {"run.dir=FOLDER", "run folder (default: logs/train/runs/DATE)"},
             {"ckpt_path=auto", "continue the newest unfinished run in logs/"},
             {"weights=FILE", "start from a safetensors file or a checkpoint"}};

static void add_choice(void *ctx, const char *name, const char *help, size_t len)
{
    (void)help;
    (void)len;
    co_str_addf(ctx, " %s", name);
}

/* "  model=mlp         cnn linear lm ...": the default, then all choices. */
static void add_groups(co_str *out, const co_conf_spec *spec)
{
    co_str_add(out, "\nGroups, each with its default and its choices:\n");
    for (int g = 0; g < spec->n_groups; g++) {
        const co_conf_group *group = &spec->groups[g];
        char head[64];
        snprintf(head, sizeof head, "%s=%s", group->name, group->fallback ? group->fallback : "");
        co_str_addf(out, "  %-18s ", head);
        if (co_conf_each_choice(spec, group->name, add_choice, out) != CO_OK)
            out->failed = true;
        co_str_add(out, "\n");
    }
}

static void first_page(const co_conf_spec *spec)
{
    co_str text = {0};

    show_usage("train");
    add_groups(&text, spec);
    co_str_add(&text, "\nThe keys that are used most (key=value; the last one wins):\n");
    for (size_t i = 0; i < CO_COUNT(often); i++)
        co_str_addf(&text, "  %-22s %s\n", often[i].key, often[i].means);
    co_str_add(&text, "\nMore:\n"
                      "  cohort train --help optim                    a group: its choices, keys\n"
                      "  cohort train --help trainer.max_steps        a key: default, meaning, limits\n"
                      "  cohort train --help all                      every key\n"
                      "  cohort train --help habits                   flags of torchrun and main.py\n");
    co_help_print(stdout, co_str_text(&text));
    co_str_fini(&text);
}

int train_help(const line *l, bool markdown)
{
    const co_conf_spec *spec = app_conf_spec(l->config_dir);
    const char *word = l->n ? l->words[0] : "";
    co_str text = {0};
    bool known = true;

    if (strcmp(word, "habits") == 0)
        return show_habits();
    if (!*word && !markdown) {
        first_page(spec);
        return CO_EXIT_DONE;
    }
    if (!*word || strcmp(word, "all") == 0)
        co_conf_help(spec, NULL, markdown, &text);
    else if (markdown)
        co_conf_help(spec, word, true, &text);
    else
        known = co_conf_help_on(spec, word, &text);
    if (markdown)
        fputs(co_str_text(&text), stdout);
    else
        co_help_print(known ? stdout : stderr, co_str_text(&text));
    co_str_fini(&text);
    return known ? CO_EXIT_DONE : CO_EXIT_USAGE;
}
