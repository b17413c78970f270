/* ckpt_import.c -- `cohort ckpt import FILE.pth`: the state dict of a file of torch.save as a safetensors
 * file.
 *
 * With model=NAME the names and shapes are compared with that model's. Which shapes it has depends on the
 * data, too: unless the line has data=, they are taken to be colour pictures of the model's usual size, with
 * as many classes as the head in the file has. */
#include "cli/ckpt_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "ckpt/ckpt.h"
#include "cli/eval_int.h"
#include "tensor/safetensors.h"

/* --- does it fit the model? ----------------------------------------------------------------------------- */
/* Outputs of the last layer in the file, by the names that models give it; 10 if it has another. */
static long long classes_in(const char *file)
{
    static const char *const heads[] = {"fc.weight", "head.weight", "classifier.weight", "head.fc.weight"};
    long long classes = 10;
    co_st_file *f = NULL;

    if (co_st_open(&f, file) != CO_OK)
        return classes;
    for (size_t i = 0; i < CO_COUNT(heads); i++) {
        const co_st_tensor *t = co_st_find(f, heads[i]);
        if (t && t->shape.nd >= 1 && t->shape.d[0] >= 2 && t->shape.d[0] <= 10000)
            classes = t->shape.d[0];
    }
    co_st_close(f);
    return classes;
}

/* The size of pictures in a name: 32 of vit_tiny_patch4_32; 224 if it has none. */
static long long size_in(const char *model)
{
    const char *last = strrchr(model, '_');
    long long size = 0;

    return last && co_str_to_i64(last + 1, &size) && size >= 4 && size <= 1024 ? size : 224;
}

/* The line `test data=fake_images ... WORDS weights=FILE`: its plan compares names and shapes. */
static co_err check_model(const line *l, const char *file)
{
    eval_line t = {.split_name = "test"};
    char *model = line_value(l, "model"), size[48], classes[48], *weights = co_conf_word("weights", file);
    const char **argv = co_array((size_t)l->n + 8, sizeof *argv);
    int n = 0;
    co_err err = model && weights && argv ? CO_OK : CO_ENOMEM;

    if (!err) {
        snprintf(size, sizeof size, "data.size=%lld", size_in(model));
        snprintf(classes, sizeof classes, "data.classes=%lld", classes_in(file));
        argv[n++] = "test";
        if (!line_has(l, "data")) {
            argv[n++] = "data=fake_images";
            argv[n++] = size;
            argv[n++] = classes;
        }
        for (int i = 2; i < l->n; i++)
            argv[n++] = l->words[i];
        argv[n++] = weights;
        err = line_parse(&t.line, n, (char **)argv, true, (const co_flag[]){{0}});
    }
    if (!err) {
        err = eval_line_open(&t);
        eval_line_close(&t);
    }
    co_free(argv);
    co_free(weights);
    co_free(model);
    return err;
}

/* --- the command ---------------------------------------------------------------------------------------- */
/* FILE.safetensors beside FILE.pth; the caller's. */
static char *place_for(const char *from)
{
    const char *slash = strrchr(from, '/'), *dot = strrchr(from, '.');
    bool ending = dot && (!slash || dot > slash + 1) && dot != from;

    return co_sprintf("%.*s.safetensors", ending ? (int)(dot - from) : (int)strlen(from), from);
}

static co_err check_words(const line *l)
{
    for (int i = 2; i < l->n; i++)
        if (!strchr(l->words[i], '='))
            return co_fail(
                CO_EINPUT,
                "ckpt import takes one file, and words such as model=resnet18 to compare it with; what "
                "is %s?",
                l->words[i]);
    if (l->n < 2)
        return co_fail(CO_EINPUT, "ckpt import takes a file of torch.save: cohort ckpt import model.pth");
    if (l->n > 2 && !line_has(l, "model"))
        return co_fail(CO_EINPUT, "ckpt import: %s without model=NAME, the model to compare with", l->words[2]);
    return CO_OK;
}

/* The message of check_model names the file that was written and is removed: name the one that was read. */
static co_err name_input(co_err err, const char *from, const char *to)
{
    char *said = co_strdup(co_errmsg()), *named = co_sprintf("weights of %s ", to);
    char *at = said && named ? strstr(said, named) : NULL;

    at = at ? at + strlen("weights of ") : NULL;
    if (at)
        err = co_fail(err, "%.*s%s%s", (int)(at - said), said, from, at + strlen(to));
    co_free(named);
    co_free(said);
    return err;
}

static co_err import(const ckpt_line *l, const char *from, const char *to, co_import_facts *facts)
{
    co_import_how how = {.prefix = l->prefix, .drop_objects = l->drop_objects};

    if (co_fs_exists(to))
        return co_fail(CO_EINPUT, "%s is there already; give another name: --to FILE", to);
    co_err err = co_weights_import(from, to, &how, facts);
    if (err || l->line.n == 2)
        return err;
    err = check_model(&l->line, to);
    if (!err)
        return CO_OK;
    unlink(to);
    return name_input(err, from, to);
}

static void tell(const line *l, const char *from, const char *to, const co_import_facts *facts)
{
    if (l->json) {
        co_json_print(json_pack("{s:s, s:s, s:i, s:I, s:i, s:s, s:s, s:b}", "from", from, "file", to, "tensors",
                                facts->tensors, "bytes", (json_int_t)facts->bytes, "left_out", facts->left_out,
                                "held_by", facts->held_by, "prefix", facts->prefix, "compared", l->n > 2));
        return;
    }
    co_say("%d tensors, %.1f MB%s%s%s%s%s%s", facts->tensors, (double)facts->bytes * 1e-6,
           facts->held_by[0] ? ", from " : "", facts->held_by, facts->prefix[0] ? ", names without \"" : "",
           facts->prefix, facts->prefix[0] ? "\"" : "", l->n > 2 ? "; names and shapes are the model's" : "");
    if (facts->left_out)
        co_say("left out: %d entr%s of the state dict that are no tensors%s", facts->left_out,
               facts->left_out == 1 ? "y" : "ies", facts->prefix[0] ? ", or have another prefix" : "");
    printf("%s\n", to);
}

int ckpt_import(const ckpt_line *c)
{
    const line *l = &c->line;
    co_import_facts facts = {0};
    co_err err = check_words(l);
    char *to = err ? NULL : c->to ? co_strdup(c->to) : place_for(l->words[1]);

    if (!err)
        err = to ? import(c, l->words[1], to, &facts) : CO_ENOMEM;
    if (!err)
        tell(l, l->words[1], to, &facts);
    co_free(to);
    return err == CO_EFORMAT ? (co_notice("%s", co_errmsg()), CO_EXIT_FAILED)
           : err             ? co_say_error(err)
                             : CO_EXIT_DONE;
}
