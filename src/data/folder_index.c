/* folder_index.c -- from a list of files to samples with labels: what the folders mean.
 *
 *     train/CLASS/... val/CLASS/... test/CLASS/...      each is a part of its own; without val, it comes out
 *                                                       of train
 *     CLASS/...                                         all three come out of the whole
 *     val/ with val_annotations.txt                     a flat folder, labelled by that text, if the rules
 *                                                       say so
 *
 * Classes and samples have torchvision's order (ImageFolder): classes by name, samples by class, then by
 * folder, then by file name, all bytewise. A label is a class's place. Where parts have no folders of their
 * own, the fixed permutation of data_int.h divides the samples. Folders that could mean two things are
 * refused, with what was found and what to do. Tiny ImageNet's flat val is refused where the rules do not
 * expect it: ImageFolder takes it for one class, and the accuracy is noise.
 */
#include "data/folder_int.h"

#include <stdio.h>
#include <string.h>

#include "base/doc.h"

#include "data/images_int.h"

/* --- parts ---------------------------------------------------------------------------------------------- */

static co_err no_pictures(const folder_work *w, const char *where)
{
    char n[32], kinds[256], doc[PATH_MAX];

    if (*listing_unsupported(w->l, kinds))
        return co_fail(CO_EINPUT,
                       "data.dir: %s has no pictures that can be read; unsupported format: %s. "
                       "Convert them to one of %s",
                       where, kinds, PICTURE_ENDINGS);
    if (w->l->passed_over)
        return co_fail(CO_EINPUT,
                       "data.dir: %s has no pictures (" PICTURE_ENDINGS "), only %s other files such as %s: "
                       "%s/train/CLASS/*.jpg or %s/CLASS/*.jpg is expected (%s)",
                       where, with_commas(n, w->l->passed_over), listing_path(w->l, w->l->passed_path),
                       w->l->root, w->l->root, co_doc(doc, "data.md"));
    return co_fail(CO_EINPUT,
                   "data.dir: %s has no pictures (" PICTURE_ENDINGS
                   "): %s/train/CLASS/*.jpg or %s/CLASS/*.jpg is "
                   "expected (%s)",
                   where, w->l->root, w->l->root, co_doc(doc, "data.md"));
}

/* A set with classes of its own must have those and no others. */
static co_err expected_classes(const folder_work *w, const folder_part *p)
{
    const char *const *want = w->rules->classes;
    char where[512];
    uint32_t n = 0;

    if (!want)
        return CO_OK;
    part_shown(where, w, p->prefix);
    for (; want[n]; n++)
        if (!part_has(p, want[n]))
            return co_fail(CO_EINPUT, "data.dir: %s has no class folder %s: is the download complete?", where,
                           want[n]);
    for (uint32_t c = 0; c < p->n_classes; c++)
        if (class_of(want, n, p->classes[c], strlen(p->classes[c])) < 0)
            return co_fail(
                CO_EINPUT,
                "data.dir: %s has a class folder %s, which is no class of this set: take it out, or use "
                "data=imagefolder for classes of your own",
                where, p->classes[c]);
    return CO_OK;
}

/* The classes are those of the part to train on. */
static co_err set_classes(folder_work *w, folder_part *p)
{
    char where[512], n[32];

    part_shown(where, w, p->prefix);
    if (p->flat)
        return co_fail(
            CO_EINPUT,
            "data.dir: %s has %s pictures that are in no class folder: put those of each class into a "
            "folder of its own, %s/CLASS/",
            where, with_commas(n, p->flat), where);
    if (p->n_classes == 0)
        return no_pictures(w, where);
    if (p->n_classes == 1)
        return co_fail(
            CO_EINPUT,
            "data.dir: %s has one class, the folder %s: two are the least (is data.dir a level too high?)",
            where, p->classes[0]);
    CO_TRY(expected_classes(w, p));
    w->x->classes = p->classes;
    w->x->n_classes = p->n_classes;
    p->classes = NULL; /* now the index's */
    return CO_OK;
}

/* Val or test in class folders must have the very classes of train. */
static co_err same_classes(const folder_work *w, const folder_part *p, const char *train)
{
    char here[512], there[512];
    folder_part trained = {.classes = w->x->classes, .n_classes = w->x->n_classes};

    part_shown(here, w, p->prefix);
    part_shown(there, w, train);
    for (uint32_t c = 0; c < p->n_classes; c++)
        if (!part_has(&trained, p->classes[c]))
            return co_fail(CO_EINPUT,
                           "data.dir: %s has a class folder %s, %s has none: both need the same classes",
                           here, p->classes[c], there);
    for (uint32_t c = 0; c < trained.n_classes; c++)
        if (!part_has(p, trained.classes[c]))
            return co_fail(CO_EINPUT,
                           "data.dir: %s has a class folder %s, %s has none: both need the same classes",
                           there, trained.classes[c], here);
    return CO_OK;
}

static co_err is_tiny_imagenet(const folder_work *w, const folder_part *p)
{
    char name[512];

    return co_fail(
        CO_EINPUT,
        "data.dir: %s has Tiny ImageNet's layout: its pictures are not in class folders, "
        "val_annotations.txt gives their classes. As an image folder it would be one class, and val "
        "accuracy noise: use data=tinyimagenet",
        part_shown(name, w, p->prefix));
}

static co_err no_labels(const folder_work *w, const folder_part *p)
{
    char name[512], n[32];
    const char *how = w->rules->make_classes;

    part_shown(name, w, p->prefix);
    return co_fail(CO_EINPUT,
                   "data.dir: %s has pictures that are in no class folder (%s), and no val_annotations.txt "
                   "that says their classes: %s%s%s",
                   name, p->flat ? with_commas(n, p->flat) : "all in images/", how ? how : "move each into ",
                   how ? "" : name, how ? "" : "/CLASS/");
}

static co_err take_held_out(folder_work *w, const char *prefix, const char *train, bool may_lack_labels)
{
    folder_part p;
    char name[512];
    co_err err = part_look(&p, w, prefix);

    if (err)
        goto out;
    if (p.text && w->rules->annotated) {
        err = part_take_labelled(w, &p);
    } else if (p.is_one_pile) {
        if (!may_lack_labels)
            err = p.text ? is_tiny_imagenet(w, &p) : no_labels(w, &p);
    } else if (p.n_classes == 0) {
        err = no_pictures(w, part_shown(name, w, prefix));
    } else {
        err = same_classes(w, &p, train);
        if (!err)
            err = part_take_classes(w, &p);
    }
out:
    co_free(p.classes);
    return err;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

/* Takes n_val and n_test out of the samples, which all are there to train on so far. */
static co_err split(folder_work *w, uint32_t n_val, uint32_t n_test)
{
    uint32_t n = (uint32_t)w->n;

    if (n_val + n_test >= n)
        return co_fail(CO_EINPUT,
                       "data.dir: %s has %u pictures to train on, too few to take %u out for val and test",
                       w->l->root, n, n_val + n_test);
    uint32_t *place = co_array(n, sizeof *place);
    sample *moved = place ? co_array(n, sizeof *moved) : NULL;
    if (!moved) {
        co_free(place);
        return CO_ENOMEM;
    }
    split_permute(place, n);
    for (uint32_t i = 0; i < n; i++)
        moved[i] = w->x->samples[place[i]];
    memcpy(w->x->samples, moved, n * sizeof *moved);
    w->x->count[CO_SPLIT_TRAIN] = n - n_val - n_test;
    w->x->count[CO_SPLIT_VAL] = n_val;
    w->x->count[CO_SPLIT_TEST] = n_test;
    co_free(moved);
    co_free(place);
    return CO_OK;
}

static uint32_t part_of(size_t n, double fraction)
{
    uint32_t k = (uint32_t)((double)n * fraction);

    return k ? k : 1;
}

/* Where val lies, if it has a folder: the first of the names people give it. */
static const char *val_folder(const folder_part *top)
{
    static const char *const names[] = {"val", "valid", "validation"};

    for (size_t i = 0; i < CO_COUNT(names); i++)
        if (part_has(top, names[i]))
            return names[i];
    return NULL;
}

static co_err take_parts(folder_work *w, const folder_part *top, double val_fraction)
{
    co_pool *pool = &w->x->pool;
    const char *val_name = val_folder(top);
    const char *train = co_pool_printf(pool, "%strain/", w->base);
    const char *val = co_pool_printf(pool, "%s%s/", w->base, val_name ? val_name : "");
    const char *test = co_pool_printf(pool, "%stest/", w->base);
    folder_part p = {0};
    char name[512];

    if (!train || !val || !test)
        return CO_ENOMEM;
    co_err err = part_look(&p, w, train);
    if (!err)
        err = set_classes(w, &p);
    if (!err)
        err = part_take_classes(w, &p);
    co_free(p.classes);
    if (err)
        return err;
    w->x->count[CO_SPLIT_TRAIN] = (uint32_t)w->n;
    if (!val_name && w->rules->has_parts)
        return co_fail(CO_EINPUT, "data.dir: %s has no folder val: is the download complete?",
                       part_shown(name, w, w->base));
    if (val_name)
        CO_TRY(take_held_out(w, val, train, false));
    else
        CO_TRY(split(w, part_of(w->n, val_fraction), 0));
    size_t before = w->n;
    if (val_name)
        w->x->count[CO_SPLIT_VAL] = (uint32_t)before - w->x->count[CO_SPLIT_TRAIN];
    if (part_has(top, "test"))
        CO_TRY(take_held_out(w, test, train, true));
    w->x->count[CO_SPLIT_TEST] = (uint32_t)(w->n - before);
    return CO_OK;
}

/* CLASS/... alone; `top` becomes the index's. */
static co_err take_whole(folder_work *w, folder_part *top, double val_fraction, double test_fraction)
{
    char name[512];
    const char *val = val_folder(top);

    if (val || part_has(top, "test"))
        return co_fail(CO_EINPUT, "data.dir: %s has a folder %s but no folder train",
                       part_shown(name, w, w->base), val ? val : "test");
    if (w->rules->has_parts && w->l->n)
        return co_fail(CO_EINPUT, "data.dir: %s has no folder train: train/ and val/ are expected",
                       part_shown(name, w, w->base));
    CO_TRY(set_classes(w, top));
    CO_TRY(part_take_classes(w, &(folder_part){.prefix = w->base}));
    return split(w, part_of(w->n, val_fraction), test_fraction > 0 ? part_of(w->n, test_fraction) : 0);
}

/* If all there is lies in one folder, as in an archive, that one is looked into; but not into one class. */
static co_err find_base(folder_work *w, folder_part *top)
{
    CO_TRY(part_look(top, w, ""));
    while (top->n_classes == 1 && !top->flat && strcmp(top->classes[0], "train") != 0) {
        const char *base = co_pool_printf(&w->x->pool, "%s%s/", w->base, top->classes[0]);
        folder_part within = {0};
        co_err err = base ? part_look(&within, w, base) : CO_ENOMEM;
        if (err || within.flat || !(w->l->is_archive || part_has(&within, "train"))) {
            co_free(within.classes);
            return err;
        }
        co_free(top->classes);
        *top = within;
        w->base = base;
    }
    return CO_OK;
}

/* The text of this name beside train/; NULL: there is none. */
static const entry *find_text(const folder_work *w, const char *name)
{
    char want[512];

    snprintf(want, sizeof want, "%s%s", w->base, name);
    for (size_t i = 0; i < w->l->n; i++) {
        const entry *e = &w->l->entries[i];
        if (e->kind == ENTRY_TEXT && strcmp(listing_path(w->l, e->path), want) == 0)
            return e;
    }
    return NULL;
}

/* Tiny ImageNet's words.txt, or the file that ImageNet has on Kaggle. */
static co_err find_titles(folder_work *w)
{
    const entry *e = find_text(w, "words.txt");

    e = e ? e : find_text(w, "LOC_synset_mapping.txt");
    if (!e)
        return CO_OK;
    w->x->titles = co_array(w->x->n_classes, sizeof *w->x->titles);
    if (!w->x->titles)
        return CO_ENOMEM;
    return titles_read(w->x->titles, w->l, e, w->x->classes, w->x->n_classes, &w->x->pool);
}

static co_err check_wnids(const folder_work *w)
{
    const entry *e = w->rules->annotated ? find_text(w, "wnids.txt") : NULL;

    return e ? wnids_check(w->l, e, w->x->classes, w->x->n_classes) : CO_OK;
}

co_err folder_index_make(folder_index *out, const listing *l, const folder_rules *rules, double val_fraction,
                         double test_fraction)
{
    folder_index x = {0};
    folder_work w = {.x = &x, .l = l, .rules = rules, .base = ""};
    folder_part top = {0};
    co_err err = find_base(&w, &top);

    if (!err)
        err = part_has(&top, "train") ? take_parts(&w, &top, val_fraction)
                                      : take_whole(&w, &top, val_fraction, test_fraction);
    co_free(top.classes);
    if (!err)
        err = check_wnids(&w);
    if (!err)
        err = find_titles(&w);
    x.base_len = strlen(w.base);
    if (err)
        folder_index_fini(&x);
    else
        *out = x;
    return err;
}

void folder_index_fini(folder_index *x)
{
    co_free(x->samples);
    co_free(x->classes);
    co_free(x->titles);
    co_pool_fini(&x->pool);
    *x = (folder_index){0};
}
