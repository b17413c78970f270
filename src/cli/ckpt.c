/* ckpt.c -- `cohort ckpt ls|hash|verify|export|import`: lists checkpoints, checks every byte of them, exports
 * their weights for other programs, and imports those of PyTorch (ckpt_import.c). A path is a checkpoint's
 * folder, a folder of checkpoints, or a run folder. */
#include "cli/ckpt_int.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"

/* The folder whose entries are checkpoints; the caller's. */
static char *root_of(const char *path)
{
    return has(path, "checkpoints") ? co_sprintf("%s/checkpoints", path) : co_strdup(path);
}

/* --- ls ----------------------------------------------------------------------------------------------- */
/* What the link root/which points to; "" if there is none. */
static void read_link(const char *root, const char *which, char name[256])
{
    char *path = co_sprintf("%s/%s", root, which);
    ssize_t n = path ? readlink(path, name, 255) : -1;

    name[n < 0 ? 0 : n] = '\0';
    co_free(path);
}

static void print_one(const co_ckpt_info *c, const char *why, bool last, bool best, bool json)
{
    const char *sha = c->why_bad[0] ? "" : c->meta.weights_sha256;

    if (json) {
        json_t *j = json_pack("{s:s, s:I, s:b, s:b, s:b}", "name", c->name, "bytes", (json_int_t)c->bytes,
                              "last", last, "best", best, "good", !*why);
        if (*why)
            json_object_set_new(j, "why_bad", json_string(why));
        if (*sha) {
            json_object_set_new(j, "step", json_integer(c->meta.step));
            json_object_set_new(j, "epoch", json_integer(c->meta.epoch));
            json_object_set_new(j, "weights_sha256", json_string(sha));
        }
        co_json_print(j);
        return;
    }
    char step[24] = "-", epoch[24] = "-";
    if (*sha) {
        snprintf(step, sizeof step, "%lld", (long long)c->meta.step);
        snprintf(epoch, sizeof epoch, "%lld", (long long)c->meta.epoch);
    }
    printf("%-16s %8s %6s %12llu  %-12.12s  %s%s%s%s\n", c->name, step, epoch, (unsigned long long)c->bytes,
           *sha ? sha : "-", *why ? "bad: " : "good", why, last ? "  <- last" : "", best ? "  <- best" : "");
}

static int list(const ckpt_line *c)
{
    const line *l = &c->line;
    char last[256], best[256], *root = NULL;
    co_ckpt_info *found = NULL;
    int n = 0;

    if (l->n != 2)
        return co_fail(CO_EINPUT, "ckpt ls takes one folder: cohort ckpt ls logs/train/runs/DATE"),
               co_say_error(CO_EINPUT);
    if (has(l->words[1], "manifest.json"))
        return co_fail(CO_EINPUT, "%s is a checkpoint itself: give the folder it lies in", l->words[1]),
               co_say_error(CO_EINPUT);
    root = root_of(l->words[1]);
    co_err err = root ? co_ckpt_ls(&found, &n, root) : CO_ENOMEM;
    if (!err) {
        read_link(root, "last", last);
        read_link(root, "best", best);
        if (!l->json && n)
            printf("%-16s %8s %6s %12s  %-12s  state\n", "name", "step", "epoch", "bytes", "sha256");
        else if (n == 0)
            co_say("%s holds no checkpoints; give a run's folder (logs/train/runs/DATE) or the one its "
                   "checkpoints lie in",
                   root);
    }
    for (int i = 0; i < n && !err; i++) {
        char *path = co_sprintf("%s/%s", root, found[i].name);
        bool good = path && co_ckpt_examine(path) == CO_OK;
        print_one(&found[i], good ? "" : co_errmsg(), strcmp(last, found[i].name) == 0,
                  strcmp(best, found[i].name) == 0, l->json);
        co_free(path);
    }
    co_ckpt_ls_free(found, n);
    co_free(root);
    return err ? co_say_error(err) : CO_EXIT_DONE;
}

/* --- hash --------------------------------------------------------------------------------------------- */
static int hash(const ckpt_line *c)
{
    const line *l = &c->line;
    char *path = NULL;
    co_ckpt_meta meta = {0};

    if (l->n != 2)
        return co_fail(CO_EINPUT, "ckpt hash takes one checkpoint: cohort ckpt hash "
                                  "logs/train/runs/DATE/checkpoints/last"),
               co_say_error(CO_EINPUT);
    /* find_checkpoint verified it: the manifest's hash is that of the file */
    co_err err = find_checkpoint(&path, l->words[1]);
    if (!err)
        err = co_ckpt_read_meta(&meta, path);
    if (!err && l->json)
        co_json_print(json_pack("{s:s, s:I, s:s}", "path", path, "step", (json_int_t)meta.step,
                                "weights_sha256", meta.weights_sha256));
    else if (!err)
        printf("%s\n", meta.weights_sha256);
    co_ckpt_meta_fini(&meta);
    co_free(path);
    return err == CO_EFORMAT ? (co_notice("%s", co_errmsg()), CO_EXIT_FAILED)
           : err             ? co_say_error(err)
                             : CO_EXIT_DONE;
}

/* --- verify ------------------------------------------------------------------------------------------- */
static bool verify_one(const char *path, bool json)
{
    bool good = co_ckpt_examine(path) == CO_OK;

    if (json)
        co_json_print(good ? json_pack("{s:s, s:b}", "path", path, "ok", 1)
                           : json_pack("{s:s, s:b, s:s}", "path", path, "ok", 0, "why", co_errmsg()));
    else
        printf("%s: %s\n", path, good ? "ok" : co_errmsg());
    return good;
}

/* A checkpoint, or all of a folder's. */
static bool verify_path(const char *path, bool json)
{
    co_ckpt_info *c = NULL;
    int n = 0;
    bool good = true;

    if (has(path, "manifest.json") || !co_fs_is_dir(path))
        return verify_one(path, json);
    char *root = root_of(path);
    if (!root || co_ckpt_ls(&c, &n, root) != CO_OK || n == 0)
        good = verify_one(path, json); /* prints what is wrong */
    for (int i = 0; i < n; i++) {
        char *one = co_sprintf("%s/%s", root, c[i].name);
        good = one && verify_one(one, json) && good;
        co_free(one);
    }
    co_ckpt_ls_free(c, n);
    co_free(root);
    return good;
}

static int verify(const ckpt_line *c)
{
    const line *l = &c->line;
    bool good = true;

    if (l->n < 2)
        return co_fail(CO_EINPUT, "ckpt verify takes checkpoints: cohort ckpt verify "
                                  "logs/train/runs/DATE/checkpoints/last"),
               co_say_error(CO_EINPUT);
    for (int i = 1; i < l->n; i++)
        good = verify_path(l->words[i], l->json) && good;
    return good ? CO_EXIT_DONE : CO_EXIT_FAILED;
}

/* --- export ------------------------------------------------------------------------------------------- */
static int export_weights(const ckpt_line *c)
{
    const line *l = &c->line;
    const char *out = c->out;
    char *path = NULL;

    if (l->n != 2 || !out)
        return co_fail(CO_EINPUT,
                       "ckpt export takes one checkpoint and a file: cohort ckpt export logs/train/runs/DATE "
                       "--out model.safetensors"),
               co_say_error(CO_EINPUT);
    bool hf = c->to && strcmp(c->to, "hf") == 0;
    if (c->to && !hf && strcmp(c->to, "safetensors") != 0)
        return co_fail(CO_EINPUT, "ckpt export --to %s: there are safetensors and hf; --out says where", c->to),
               co_say_error(CO_EINPUT);
    co_err err = co_fs_exists(out) ? co_fail(CO_EINPUT, "--out %s is there already; give another name", out)
                                   : find_checkpoint(&path, l->words[1]);
    if (!err)
        err = hf ? ckpt_export_hf(path, out, c->average) : co_weights_export(path, out, c->average);
    if (!err && l->json)
        co_json_print(json_pack("{s:s, s:s, s:b}", "checkpoint", path, "file", out, "average", c->average));
    else if (!err)
        printf("%s\n", out);
    co_free(path);
    return err ? co_say_error(err) : CO_EXIT_DONE;
}

/* --- the command -------------------------------------------------------------------------------------- */
static const struct subcommand {
    const char *name;
    int (*run)(const ckpt_line *c);
    const char *flags; /* that it knows, each between blanks */
} subcommands[] = {{"ls", list, ""},
                   {"hash", hash, ""},
                   {"verify", verify, ""},
                   {"export", export_weights, " --out --ema --to "},
                   {"import", ckpt_import, " --to --prefix --drop-objects "}};

static int unknown(const char *what)
{
    const char *names[CO_COUNT(subcommands)];

    for (size_t i = 0; i < CO_COUNT(subcommands); i++)
        names[i] = subcommands[i].name;
    const char *near = co_str_nearest(what, names, CO_COUNT(names));
    co_notice("ckpt has no \"%s\"%s%s%s there are ls, hash, verify, export and import", what,
              near ? "; did you mean " : "", near ? near : "", near ? "?" : ";");
    return CO_EXIT_USAGE;
}

/* Refuses a flag that is for another subcommand. */
static co_err check_flags(const struct subcommand *sub, const ckpt_line *c)
{
    const struct {
        const char *flag;
        bool given;
    } all[] = {{" --out ", c->out != NULL},
               {" --to ", c->to != NULL},
               {" --prefix ", c->prefix != NULL},
               {" --ema ", c->average},
               {" --drop-objects ", c->drop_objects}};

    for (size_t i = 0; i < CO_COUNT(all); i++) {
        const struct subcommand *owner = subcommands;
        if (!all[i].given || strstr(sub->flags, all[i].flag))
            continue;
        while (!strstr(owner->flags, all[i].flag))
            owner++;
        return co_fail(CO_EINPUT, "ckpt %s has no%.*s: it is for %s", sub->name, (int)strlen(all[i].flag) - 1,
                       all[i].flag, owner->name);
    }
    return CO_OK;
}

static int run(const ckpt_line *c)
{
    const char *what = c->line.words[0];

    for (size_t i = 0; i < CO_COUNT(subcommands); i++)
        if (strcmp(what, subcommands[i].name) == 0)
            return check_flags(&subcommands[i], c) ? co_say_error(CO_EINPUT) : subcommands[i].run(c);
    return unknown(what);
}

int cmd_ckpt(int argc, char **argv)
{
    ckpt_line c = {0};
    const co_flag flags[] = {
        {"--out", "FILE", .value = &c.out},        {"--ema", .on = &c.average},
        {"--to", "FILE|FORMAT", .value = &c.to},   {"--prefix", "TEXT", .value = &c.prefix},
        {"--drop-objects", .on = &c.drop_objects}, {0}};

    if (line_parse(&c.line, argc, argv, false, flags) != CO_OK)
        return co_say_error(CO_EINPUT);
    int status = c.line.help     ? show_usage("ckpt")
                 : c.line.n == 0 ? (show_usage("ckpt"), CO_EXIT_USAGE)
                                 : run(&c);
    line_free(&c.line);
    return status;
}
