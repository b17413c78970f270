/* data_get.c -- `cohort data get NAME [FOLDER]`: downloads a data set, checks it and unpacks it.
 *
 * Without a name it lists the sets. Results go to standard output, progress to standard error. Exit status 1:
 * a download failed, and the same line typed again continues it. 2: there is no such set, or it cannot be
 * downloaded.
 */
#include "cli/data_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fetch/fetch.h"

enum { RETRIES = 5, MOST_RETRIES = 1000 };

/* --- the list ------------------------------------------------------------------------------------------- */
static const char *how_checked(const co_set_file *file)
{
    if (!file->name)
        return "by hand";
    return file->md5 && file->published ? "MD5"
           : file->md5                  ? "MD5 of public loaders"
           : file->sum_end              ? "MD5 beside the file"
                                        : "not published";
}

static uint64_t size_of(const co_set *set)
{
    uint64_t all = 0;

    for (int i = 0; set->files[i].name; i++)
        all += set->files[i].size;
    return all;
}

static json_t *set_json(const co_set *set)
{
    json_t *files = json_array();

    for (int i = 0; set->files[i].name; i++) {
        const co_set_file *f = &set->files[i];
        json_t *urls = json_array();
        for (int k = 0; f->urls[k]; k++)
            json_array_append_new(urls, json_string(f->urls[k]));
        json_array_append_new(files,
                              json_pack("{s:s, s:o, s:I, s:s?, s:b}", "file", f->name, "urls", urls, "bytes",
                                        (json_int_t)f->size, "md5", f->md5, "published", f->published));
    }
    return json_pack("{s:s, s:s?, s:s, s:s, s:o}", "set", set->name, "alias", set->alias, "title", set->title,
                     "terms", set->terms, "files", files);
}

static int list_sets(const line *l)
{
    json_t *all = l->json ? json_array() : NULL;

    if (!l->json)
        printf("%-16s %12s  %-22s %s\n", "set", "bytes", "checksum", "address");
    for (const co_set *set = co_sets; set->name; set++) {
        const co_set_file *f = &set->files[0];
        char size[32] = "-";
        if (size_of(set))
            snprintf(size, sizeof size, "%llu", (unsigned long long)size_of(set));
        if (all)
            json_array_append_new(all, set_json(set));
        else
            printf("%-16s %12s  %-22s %s\n", set->name, size, how_checked(f),
                   f->name ? f->urls[0] : "https://image-net.org/download-images");
    }
    if (all)
        co_json_print(all);
    else
        printf("\ncohort data get NAME [FOLDER] downloads one into FOLDER (default: data)\n");
    return CO_EXIT_DONE;
}

static void tell_files(void *ctx, uint64_t files, uint64_t bytes)
{
    download_bar *bar = ctx;

    if (bar_is_due(bar))
        fprintf(stderr, "%sunpacked: %llu files, %.1f MB%s", bar->one_line ? "\r" : "",
                (unsigned long long)files, (double)bytes / 1e6, bar->one_line ? "        " : "\n");
}

/* --- results -------------------------------------------------------------------------------------------- */
static const char *sum_text(char out[128], const co_fetch_facts *f, const co_set_file *file)
{
    if (f->sum == CO_SUM_NONE)
        return file->sum_end ? "checksum not available" : "checksum not published";
    snprintf(out, 128, "%s %s%s", f->sum == CO_SUM_MD5 ? "MD5" : "SHA-256", f->hex,
             file->md5 && !file->published ? " (of public loaders; the publisher states none)" : "");
    return out;
}

static void show_text(const co_set *set, const co_set_facts *facts)
{
    char sum[128];

    for (int i = 0; i < facts->n_files; i++) {
        const co_fetch_facts *f = &facts->file[i];
        printf("%s: %llu bytes, %s", set->files[i].name, (unsigned long long)f->bytes,
               sum_text(sum, f, &set->files[i]));
        if (f->was_there)
            printf(", was there");
        else if (f->kept)
            printf(", %llu of them from an earlier download", (unsigned long long)f->kept);
        printf("\n");
    }
    if (facts->was_there)
        printf("%s: %s is there and complete; --force downloads it again\n", facts->folder, set->title);
    else if (facts->unpacked_files)
        printf("%s: %llu files, %llu bytes unpacked\n", facts->folder,
               (unsigned long long)facts->unpacked_files, (unsigned long long)facts->unpacked_bytes);
    printf("terms: %s\n", set->terms);
    if (set->use)
        printf("train with: cohort train %s data.dir=%s\n", set->use, facts->folder);
}

static void show_json(const co_set *set, const co_set_facts *facts)
{
    json_t *files = json_array();

    for (int i = 0; i < facts->n_files; i++) {
        const co_fetch_facts *f = &facts->file[i];
        json_array_append_new(files, json_pack("{s:s, s:I, s:I, s:b, s:s, s:s}", "file", set->files[i].name,
                                               "bytes", (json_int_t)f->bytes, "resumed_from",
                                               (json_int_t)f->kept, "was_there", f->was_there, "checksum",
                                               f->sum == CO_SUM_MD5      ? "md5"
                                               : f->sum == CO_SUM_SHA256 ? "sha256"
                                                                         : "none",
                                               "hex", f->hex));
    }
    co_json_print(json_pack("{s:s, s:o, s:b, s:o, s:I, s:I}", "set", set->name, "folder",
                            co_json_string(facts->folder), "was_there", facts->was_there, "files", files,
                            "unpacked_files", (json_int_t)facts->unpacked_files, "unpacked_bytes",
                            (json_int_t)facts->unpacked_bytes));
}

/* --- the command ---------------------------------------------------------------------------------------- */
static int no_such_set(const char *name)
{
    const char *names[64];
    size_t n = 0;
    co_str all = {0};

    for (const co_set *set = co_sets; set->name && n + 2 < CO_COUNT(names); set++) {
        names[n++] = set->name;
        if (set->alias)
            names[n++] = set->alias;
        co_str_addf(&all, "%s%s", n > 1 ? ", " : "", set->name);
    }
    const char *near = co_str_nearest(name, names, n);
    co_notice("data get knows no set \"%s\"%s%s%s there are %s", name, near ? "; did you mean " : "",
              near ? near : "", near ? "?" : ";", co_str_text(&all));
    co_str_fini(&all);
    return CO_EXIT_USAGE;
}

static int fetch_set(const line *l, const co_set *set, const co_set_how *how)
{
    co_set_facts *facts = co_zalloc(sizeof *facts);
    co_err err = facts ? co_set_get(facts, set, how) : CO_ENOMEM;

    bar_end(how->ctx);
    if (!err && l->json)
        show_json(set, facts);
    else if (!err)
        show_text(set, facts);
    co_free(facts);
    if (!err)
        return CO_EXIT_DONE;
    co_say_error(err);
    return err == CO_EINPUT ? CO_EXIT_USAGE : CO_EXIT_FAILED;
}

int data_get(const line *l, const data_flags *flags)
{
    download_bar bar = bar_begin();
    const char *mirror = flags->mirror ? flags->mirror : getenv("COHORT_MIRROR");
    long long retries = RETRIES;

    if (flags->retries && (!co_str_to_i64(flags->retries, &retries) || retries < 0 || retries > MOST_RETRIES)) {
        co_fail(CO_EINPUT, "--retries=%s: a whole number from 0 to %d", flags->retries, MOST_RETRIES);
        return co_say_error(CO_EINPUT);
    }
    if (l->n == 1)
        return list_sets(l);
    const co_set *set = co_set_find(l->words[1]);
    if (!set)
        return no_such_set(l->words[1]);
    co_set_how how = {.dir = l->n > 2 ? l->words[2] : "data",
                      .mirror = mirror && *mirror ? mirror : NULL,
                      .force = flags->force,
                      .keep = flags->keep,
                      .retries = (int)retries,
                      .tell = bar_tell,
                      .tell_unpack = tell_files,
                      .ctx = &bar};
    return fetch_set(l, set, &how);
}
