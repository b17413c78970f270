/* folder_part.c -- one part of an image folder, train or val or the whole: its classes, and its samples in
 * order. */
#include "data/folder_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *part_shown(char out[512], const folder_work *w, const char *prefix)
{
    int len = (int)strlen(prefix);

    snprintf(out, 512, "%s%s%.*s", w->l->root, len ? "/" : "", len ? len - 1 : 0, prefix);
    return out;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static co_err add_class(folder_part *p, size_t *room, co_pool *pool, const char *name, size_t len)
{
    if (p->n_classes && strncmp(p->classes[p->n_classes - 1], name, len) == 0 &&
        p->classes[p->n_classes - 1][len] == 0)
        return CO_OK; /* most often it is that of the file before */
    if (p->n_classes == *room) {
        const char **more = co_realloc(p->classes, (*room ? *room * 2 : 64) * sizeof *more);
        if (!more)
            return CO_ENOMEM;
        *room = *room ? *room * 2 : 64;
        p->classes = more;
    }
    const char *kept = co_pool_strn(pool, name, len);
    p->classes[p->n_classes] = kept;
    p->n_classes += kept != NULL;
    return kept ? CO_OK : CO_ENOMEM;
}

co_err part_look(folder_part *p, const folder_work *w, const char *prefix)
{
    size_t room = 0, len = strlen(prefix);
    uint32_t kept = 0;

    *p = (folder_part){.prefix = prefix};
    for (size_t i = 0; i < w->l->n; i++) {
        const entry *e = &w->l->entries[i];
        const char *path = listing_path(w->l, e->path);
        if (strncmp(path, prefix, len) != 0)
            continue;
        path += len;
        size_t first = strcspn(path, "/");
        if (e->kind == ENTRY_TEXT) {
            p->text = strcmp(path, "val_annotations.txt") == 0 ? e : p->text;
            continue;
        }
        if (path[first] || e->kind == ENTRY_FOLDER)
            CO_TRY(add_class(p, &room, &w->x->pool, path, first));
        else
            p->flat++;
    }
    if (p->n_classes)
        qsort(p->classes, p->n_classes, sizeof *p->classes, by_text);
    for (uint32_t i = 0; i < p->n_classes; i++)
        if (!kept || strcmp(p->classes[kept - 1], p->classes[i]) != 0)
            p->classes[kept++] = p->classes[i];
    p->n_classes = kept;
    p->is_one_pile = p->flat || (kept == 1 && strcmp(p->classes[0], "images") == 0);
    return CO_OK;
}

bool part_has(const folder_part *p, const char *name)
{
    return class_of(p->classes, p->n_classes, name, strlen(name)) >= 0;
}

/* --- labels --------------------------------------------------------------------------------------------- */

static co_err add_sample(folder_work *w, const entry *e, uint32_t label)
{
    if (w->n == w->room) {
        size_t room = w->room ? w->room * 2 : 1024;
        sample *more = co_realloc(w->x->samples, room * sizeof *more);
        if (!more)
            return CO_ENOMEM;
        w->x->samples = more;
        w->room = room;
    }
    if (w->n >= UINT32_MAX / 2)
        return co_fail(CO_EINPUT, "data.dir: %s has more than two thousand million pictures", w->l->root);
    uint32_t size =
        e->size > UINT32_MAX ? UINT32_MAX : (uint32_t)e->size; /* too large to be read, in any case */
    w->x->samples[w->n++] = (sample){e->at, size, e->path, label};
    return CO_OK;
}

/* Folder first, then file name. */
static int by_place(const void *a, const void *b, void *names)
{
    const sample *p = a, *q = b;
    const char *x = (const char *)names + p->path, *y = (const char *)names + q->path;

    if (p->label != q->label)
        return p->label < q->label ? -1 : 1;
    size_t m = (size_t)(strrchr(x, '/') ? strrchr(x, '/') - x : 0),
           n = (size_t)(strrchr(y, '/') ? strrchr(y, '/') - y : 0);
    int c = memcmp(x, y, m < n ? m : n);
    if (c == 0 && m != n)
        c = m < n ? -1 : 1;
    if (c == 0)
        c = strcmp(x + m, y + n);
    return c ? c : (p->at > q->at) - (p->at < q->at); /* an archive may hold a name twice */
}

static co_err empty_class(const folder_work *w, const folder_part *p, const char *name)
{
    char where[512], kinds[256];
    bool others = *listing_unsupported(w->l, kinds);

    return co_fail(CO_EINPUT,
                   "data.dir: %s/%s has no pictures (" PICTURE_ENDINGS "): fill it or remove it%s%s%s",
                   part_shown(where, w, p->prefix), name, others ? " (unsupported format: " : "", kinds,
                   others ? ")" : "");
}

co_err part_take_classes(folder_work *w, const folder_part *p)
{
    size_t len = strlen(p->prefix), from = w->n;
    uint32_t n_classes = w->x->n_classes;
    uint32_t *seen = co_array(n_classes, sizeof *seen);
    co_err err = seen ? CO_OK : CO_ENOMEM;

    for (size_t i = 0; i < w->l->n && !err; i++) {
        const entry *e = &w->l->entries[i];
        const char *path = listing_path(w->l, e->path);
        if (e->kind != ENTRY_PICTURE || strncmp(path, p->prefix, len) != 0)
            continue;
        int64_t label = class_of(w->x->classes, n_classes, path + len, strcspn(path + len, "/"));
        CO_ASSERT(label >= 0, "every folder of the part is a class");
        seen[label] = 1;
        err = add_sample(w, e, (uint32_t)label);
    }
    for (uint32_t c = 0; c < n_classes && !err; c++)
        if (!seen[c])
            err = empty_class(w, p, w->x->classes[c]);
    if (!err && w->n > from)
        qsort_r(w->x->samples + from, w->n - from, sizeof *w->x->samples, by_place, w->l->names);
    co_free(seen);
    return err;
}

/* Accuracy on a val of one class says nothing. */
static co_err more_than_one_class(const folder_work *w, const folder_part *p, size_t from)
{
    char name[512];

    for (size_t i = from + 1; i < w->n; i++)
        if (w->x->samples[i].label != w->x->samples[from].label)
            return CO_OK;
    if (w->n - from < 2)
        return CO_OK;
    return co_fail(
        CO_EINPUT,
        "data.dir: all %zu pictures of %s are of class %s by its val_annotations.txt: accuracy would mean "
        "nothing. Is it the right file?",
        w->n - from, part_shown(name, w, p->prefix), w->x->classes[w->x->samples[from].label]);
}

co_err part_take_labelled(folder_work *w, const folder_part *p)
{
    size_t len = strlen(p->prefix), from = w->n;
    labels t;
    char name[512];

    CO_TRY(labels_open(&t, w->l, p->text, w->x->classes, w->x->n_classes));
    co_err err = CO_OK;
    for (size_t i = 0; i < w->l->n && !err; i++) {
        const entry *e = &w->l->entries[i];
        const char *path = listing_path(w->l, e->path);
        if (e->kind != ENTRY_PICTURE || strncmp(path, p->prefix, len) != 0)
            continue;
        const char *slash = strrchr(path, '/');
        const struct label_row *row = labels_find(&t, slash ? slash + 1 : path);
        err = row ? add_sample(w, e, row->label)
                  : co_fail(CO_EINPUT, "data.dir: %s: val_annotations.txt does not say the class of %s",
                            part_shown(name, w, p->prefix), path + len);
    }
    if (!err && w->n - from != t.n)
        err = co_fail(CO_EINPUT,
                      "data.dir: %s has %zu pictures, and its val_annotations.txt %zu: is it complete?",
                      part_shown(name, w, p->prefix), w->n - from, t.n);
    if (!err)
        err = more_than_one_class(w, p, from);
    if (!err && w->n > from)
        qsort_r(w->x->samples + from, w->n - from, sizeof *w->x->samples, by_place, w->l->names);
    labels_close(&t);
    return err;
}
