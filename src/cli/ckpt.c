/* ckpt.c -- `cohort ckpt ls|hash|verify|export`: lists checkpoints, checks every byte of them, and exports
 * their weights for other programs. A path is a checkpoint's folder, a folder of checkpoints, or a run
 * folder. */
#include "cli/cli_int.h"

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

static int list(const line *l)
{
    char last[256], best[256], *root = NULL;
    co_ckpt_info *c = NULL;
    int n = 0;

    if (l->n != 2)
        return co_fail(CO_EINPUT, "ckpt ls takes one folder: cohort ckpt ls logs/train/runs/DATE"),
               co_say_error(CO_EINPUT);
    if (has(l->words[1], "manifest.json"))
        return co_fail(CO_EINPUT, "%s is a checkpoint itself: give the folder it lies in", l->words[1]),
               co_say_error(CO_EINPUT);
    root = root_of(l->words[1]);
    co_err err = root ? co_ckpt_ls(&c, &n, root) : CO_ENOMEM;
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
        char *path = co_sprintf("%s/%s", root, c[i].name);
        bool good = path && co_ckpt_examine(path) == CO_OK;
        print_one(&c[i], good ? "" : co_errmsg(), strcmp(last, c[i].name) == 0, strcmp(best, c[i].name) == 0,
                  l->json);
        co_free(path);
    }
    co_ckpt_ls_free(c, n);
    co_free(root);
    return err ? co_say_error(err) : CO_EXIT_DONE;
}

/* --- hash --------------------------------------------------------------------------------------------- */
static int hash(const line *l)
{
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

static int verify(const line *l)
{
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
static int export_weights(const line *l, const char *out, bool average)
{
    char *path = NULL;

    if (l->n != 2 || !out)
        return co_fail(CO_EINPUT,
                       "ckpt export takes one checkpoint and a file: cohort ckpt export logs/train/runs/DATE "
                       "--out model.safetensors"),
               co_say_error(CO_EINPUT);
    co_err err = co_fs_exists(out) ? co_fail(CO_EINPUT, "--out %s is there already; give another name", out)
                                   : find_checkpoint(&path, l->words[1]);
    if (!err)
        err = co_weights_export(path, out, average);
    if (!err && l->json)
        co_json_print(json_pack("{s:s, s:s, s:b}", "checkpoint", path, "file", out, "average", average));
    else if (!err)
        printf("%s\n", out);
    co_free(path);
    return err ? co_say_error(err) : CO_EXIT_DONE;
}

/* --- the command -------------------------------------------------------------------------------------- */
static int unknown(const char *what)
{
    static const char *const names[] = {"ls", "hash", "verify", "export"};
    const char *near = co_str_nearest(what, names, CO_COUNT(names));

    co_notice("ckpt has no \"%s\"%s%s%s there are ls, hash, verify and export", what,
              near ? "; did you mean " : "", near ? near : "", near ? "?" : ";");
    return CO_EXIT_USAGE;
}

int cmd_ckpt(int argc, char **argv)
{
    const char *out = NULL;
    bool average = false;
    line l;

    if (line_parse(&l, argc, argv, false,
                   (const co_flag[]){{"--out", "FILE", .value = &out}, {"--ema", .on = &average}, {0}}) != CO_OK)
        return co_say_error(CO_EINPUT);
    const char *what = l.n ? l.words[0] : "";
    bool exports = strcmp(what, "export") == 0;
    int status;
    if (l.help)
        status = show_usage("ckpt");
    else if (l.n == 0)
        status = (show_usage("ckpt"), CO_EXIT_USAGE);
    else if (!exports && (out || average))
        status = (co_fail(CO_EINPUT, "ckpt %s has no %s: it is for export", what, out ? "--out" : "--ema"),
                  co_say_error(CO_EINPUT));
    else
        status = strcmp(what, "ls") == 0       ? list(&l)
                 : strcmp(what, "hash") == 0   ? hash(&l)
                 : strcmp(what, "verify") == 0 ? verify(&l)
                 : exports                     ? export_weights(&l, out, average)
                                               : unknown(what);
    line_free(&l);
    return status;
}
