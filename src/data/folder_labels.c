/* folder_labels.c -- the texts that come with Tiny ImageNet: the classes of a flat folder, the list of
 * classes, and names for people. */
#include "data/folder_int.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MOST = 64 << 20 };

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct label_row *)a)->name, ((const struct label_row *)b)->name);
}

int64_t class_of(const char *const *classes, uint32_t n, const char *name, size_t len)
{
    uint32_t low = 0, high = n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        int c = strncmp(classes[mid], name, len);
        if (c == 0)
            c = classes[mid][len] != 0;
        if (c == 0)
            return mid;
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return -1;
}

/* The text with a NUL after it; *out is the caller's. */
static co_err read_text(char **out, const listing *l, const entry *e)
{
    if (e->size > TEXT_MOST)
        return co_fail(CO_EINPUT, "data.dir: %s/%s is longer than 64 MiB: is it the right file?", l->root,
                       listing_path(l, e->path));
    char *text = co_alloc(e->size + 1);
    if (!text)
        return CO_ENOMEM;
    const uint8_t *bytes = listing_read(l, e->at, e->size, e->path, text);
    if (!bytes) {
        co_free(text);
        return co_fail_in(CO_EINPUT, "data.dir");
    }
    if (bytes != (uint8_t *)text)
        memcpy(text, bytes, e->size);
    text[e->size] = 0;
    *out = text;
    return CO_OK;
}

/* Cuts the next line off *rest into its first two words, which tabs (or one blank, if there are none) set
 * apart; false at the end. */
static bool next_pair(char **rest, char **first, char **second)
{
    while (**rest) {
        char *line = *rest, *end = strchrnul(line, '\n');
        *rest = *end ? end + 1 : end;
        *end = 0;
        if (end > line && end[-1] == '\r')
            end[-1] = 0;
        char *gap = line + strcspn(line, "\t");
        gap = *gap ? gap : line + strcspn(line, " ");
        if (!*gap)
            continue;
        *gap = 0;
        *first = line;
        *second = gap + 1;
        return true;
    }
    return false;
}

static co_err unknown_class(const listing *l, const entry *e, const char *name, const char *class)
{
    return co_fail(CO_EINPUT, "data.dir: %s/%s: %s is of class %s, which has no folder to train on", l->root,
                   listing_path(l, e->path), name, class);
}

static co_err parse_labels(labels *t, const listing *l, const entry *e, const char *const *classes,
                           uint32_t n_classes)
{
    char *rest = t->text, *name, *class;
    size_t room = 1;

    for (const char *c = t->text; *c; c++)
        room += *c == '\n';
    t->rows = co_array(room, sizeof *t->rows);
    if (!t->rows)
        return CO_ENOMEM;
    while (next_pair(&rest, &name, &class)) {
        size_t len = strcspn(class, "\t ");
        int64_t label = class_of(classes, n_classes, class, len);
        class[len] = 0;
        if (label < 0)
            return unknown_class(l, e, name, class);
        t->rows[t->n++] = (struct label_row){name, (uint32_t)label};
    }
    qsort(t->rows, t->n, sizeof *t->rows, by_name);
    for (size_t i = 1; i < t->n; i++)
        if (strcmp(t->rows[i - 1].name, t->rows[i].name) == 0)
            return co_fail(CO_EINPUT, "data.dir: %s/%s has %s twice", l->root, listing_path(l, e->path),
                           t->rows[i].name);
    return CO_OK;
}

co_err labels_open(labels *out, const listing *l, const entry *e, const char *const *classes, uint32_t n_classes)
{
    labels t = {0};

    CO_TRY(read_text(&t.text, l, e));
    co_err err = parse_labels(&t, l, e, classes, n_classes);
    if (err)
        labels_close(&t);
    else
        *out = t;
    return err;
}

const struct label_row *labels_find(const labels *t, const char *name)
{
    return bsearch(&(struct label_row){.name = name}, t->rows, t->n, sizeof *t->rows, by_name);
}

void labels_close(labels *t)
{
    co_free(t->rows);
    co_free(t->text);
    *t = (labels){0};
}

/* Marks the classes that the text lists. */
static co_err mark_wnids(bool *listed, char *text, const listing *l, const entry *e,
                         const char *const *classes, uint32_t n_classes)
{
    char *save = NULL;

    for (char *id = strtok_r(text, " \t\r\n", &save); id; id = strtok_r(NULL, " \t\r\n", &save)) {
        int64_t label = class_of(classes, n_classes, id, strlen(id));
        if (label < 0)
            return co_fail(
                CO_EINPUT,
                "data.dir: %s/%s lists the class %.64s, which has no folder to train on: is the download "
                "complete?",
                l->root, listing_path(l, e->path), id);
        listed[label] = true;
    }
    return CO_OK;
}

co_err wnids_check(const listing *l, const entry *e, const char *const *classes, uint32_t n_classes)
{
    char *text = NULL;
    bool *listed = co_array(n_classes, sizeof *listed);
    co_err err = listed ? read_text(&text, l, e) : CO_ENOMEM;

    if (!err)
        err = mark_wnids(listed, text, l, e, classes, n_classes);
    for (uint32_t c = 0; c < n_classes && !err; c++)
        if (!listed[c])
            err = co_fail(CO_EINPUT,
                          "data.dir: %s/%s does not list the class %s, which has a folder to train on",
                          l->root, listing_path(l, e->path), classes[c]);
    co_free(text);
    co_free(listed);
    return err;
}

co_err titles_read(const char **titles, const listing *l, const entry *e, const char *const *classes,
                   uint32_t n_classes, co_pool *pool)
{
    char *text, *rest, *class, *words;
    co_err err = read_text(&text, l, e);

    if (err)
        return err;
    for (uint32_t i = 0; i < n_classes; i++)
        titles[i] = classes[i];
    for (rest = text; !err && next_pair(&rest, &class, &words);) {
        int64_t label = class_of(classes, n_classes, class, strlen(class));
        size_t len = strcspn(words, ",");
        if (label < 0 || !len)
            continue;
        const char *title = co_pool_strn(pool, words, len);
        err = title ? CO_OK : CO_ENOMEM;
        titles[label] = title;
    }
    co_free(text);
    return err;
}
