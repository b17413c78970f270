/* help_train.c -- `cohort train --help`: a first page that fits two screens, and the keys behind it.
 *
 *     cohort train --help            examples, flags, the groups' choices, the keys that are used most
 *     cohort train --help WORD       a group, a key, or all keys below a name
 *     cohort train --help all        every key (with --markdown: docs/keys.md)
 *     cohort train --help hosts      how several hosts are given
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
             {"weights=FILE", "start from a safetensors file, a .pth, or a checkpoint"}};

enum { FAMILY = 3 }; /* names with one beginning, from which on they are one word: "resnet*" */

/* Choices come sorted, so a family comes in a row. */
struct choices {
    co_str *out;
    char name[FAMILY][64]; /* the first ones of the family */
    int n;
};

/* The beginning of a name: to its first digit or "_". */
static size_t stem_of(const char *name)
{
    return strcspn(name, "0123456789_");
}

static void add_family(struct choices *c)
{
    if (c->n >= FAMILY)
        co_str_addf(c->out, " %.*s* (%d)", (int)stem_of(c->name[0]), c->name[0], c->n);
    for (int i = 0; i < c->n && c->n < FAMILY; i++)
        co_str_addf(c->out, " %s", c->name[i]);
    c->n = 0;
}

static void add_choice(void *ctx, const char *name, const char *help, size_t len)
{
    struct choices *c = ctx;
    size_t stem = stem_of(name);

    (void)help;
    (void)len;
    if (c->n > 0 && (stem_of(c->name[0]) != stem || strncmp(c->name[0], name, stem) != 0))
        add_family(c);
    if (c->n < FAMILY)
        snprintf(c->name[c->n], sizeof c->name[c->n], "%s", name);
    c->n++;
}

/* "  model=mlp         cnn linear lm resnet* (5) ...": the default, then the choices. */
static void add_groups(co_str *out, const co_conf_spec *spec)
{
    co_str_add(out, "\nGroups, each with its default and its choices:\n");
    for (int g = 0; g < spec->n_groups; g++) {
        const co_conf_group *group = &spec->groups[g];
        char head[64];
        snprintf(head, sizeof head, "%s=%s", group->name, group->fallback ? group->fallback : "");
        co_str_addf(out, "  %-18s ", head);
        struct choices choices = {.out = out};
        if (co_conf_each_choice(spec, group->name, add_choice, &choices) != CO_OK)
            out->failed = true;
        add_family(&choices);
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
                      "  cohort train --help optim                    a group; optim.lr: a key\n"
                      "  cohort train --help all                      every key\n"
                      "  cohort train --help hosts                    several hosts\n"
                      "  cohort train --help habits                   flags of torchrun and main.py\n");
    co_help_print(stdout, co_str_text(&text));
    co_str_fini(&text);
}

static const char hosts_page[] =
    "Several hosts train one model together, to the weights of one host, bit for bit.\n\n"
    "  cohort train --hosts node1,node2 data=digits             from here, over ssh\n"
    "  cohort train --nnodes=2 --rdzv-endpoint=node1:29400 data=digits\n"
    "        the same line on both hosts; node1 shows a token, the other asks for it\n"
    "  cohort host -- train data=digits                         shows a code\n"
    "  cohort join                                              asks for it\n"
    "  srun cohort train data=digits                            in a job of Slurm\n"
    "  mpirun -n 2 --map-by ppr:1:node cohort train data=digits\n\n"
    "  --nnodes N|MIN:MAX    hosts, as trainer.num_nodes (default 1). N are needed to\n"
    "                        begin; a run that has begun goes on with those that are\n"
    "                        left. With MIN:MAX it waits when fewer than MIN are left\n"
    "  --nproc-per-node N    ranks on this host, as trainer.devices\n"
    "  --rdzv-endpoint HOST:PORT\n"
    "                        where the hosts meet; HOST is the first one, PORT is\n"
    "                        29400 if left out. tcp://HOST:PORT is the same\n"
    "  --node-rank N         which of the hosts this is; without it they are numbered\n"
    "                        as they come\n"
    "  --master-addr HOST    with --node-rank: the address of host 0\n"
    "  --master-port PORT    its port (default 29500)\n"
    "  --port PORT           where this host takes gradients from the others; without\n"
    "                        it any free port. For firewalls\n"
    "  --hosts HOST,HOST     start the training on these hosts, over ssh\n"
    "  --standalone          this host alone, whatever the environment says\n\n"
    "  These flags may stand anywhere on the line. More of them are in\n"
    "  `cohort launch --help`. No flag is needed in Slurm, mpirun and Kubernetes, or\n"
    "  with MASTER_ADDR, MASTER_PORT and NODE_RANK in the environment; WORLD_SIZE\n"
    "  beside NODE_RANK counts hosts. COHORT_TOKEN carries the token.\n";

int train_help(const line *l, bool markdown)
{
    const co_conf_spec *spec = app_conf_spec(l->config_dir);
    const char *word = l->n ? l->words[0] : "";
    co_str text = {0};
    bool known = true;

    if (strcmp(word, "habits") == 0)
        return show_habits();
    if (strcmp(word, "hosts") == 0) {
        co_help_print(stdout, hosts_page);
        return CO_EXIT_DONE;
    }
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
