/* ckpt_hf.c -- `cohort ckpt export --to hf`: a folder that timm loads as it is.
 *
 *     mine/config.json          architecture, num_classes, model_args, pretrained_cfg (size, mean, std)
 *     mine/model.safetensors
 *
 *     timm.create_model("local-dir:mine", pretrained=True)
 *
 * The shapes of the tensors say most of it. Mean, std, the size of the pictures and the names of the classes
 * are those of the run's data set, which is opened for them; if it is not here, they are left out with a
 * warning, because timm would then use ImageNet's. A model that timm lacks gets a config.json all the same,
 * and a line that says so.
 */
#include "cli/ckpt_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "ckpt/ckpt.h"
#include "cli/eval_int.h"
#include "data/data.h"
#include "tensor/safetensors.h"

/* What is known of the exported model. */
typedef struct facts {
    const char *model;      /* our name */
    co_st_file *weights;    /* the exported file */
    const co_dataset *data; /* the run's; NULL: it is not here */
    long long num_heads;    /* model.num_heads; 0: that of the name */
    bool is_vit, in_timm;
    const char *first, *head; /* layers, by name */
} facts;

static int64_t size_of(const facts *x, const char *tensor, int dim)
{
    const co_st_tensor *t = co_st_find(x->weights, tensor);

    return t && dim < t->shape.nd ? t->shape.d[dim] : 0;
}

static bool has_layer(const facts *x, const char *layer)
{
    char name[64];

    snprintf(name, sizeof name, "%s.weight", layer);
    return co_st_find(x->weights, name) != NULL;
}

/* --- the model ------------------------------------------------------------------------------------------ */
static int count_blocks(const facts *x)
{
    char name[64];
    int n = 0;

    do
        snprintf(name, sizeof name, "blocks.%d.norm1.weight", n++);
    while (co_st_find(x->weights, name));
    return n - 1;
}

static void recognise(facts *x)
{
    x->is_vit = strncmp(x->model, "vit_", 4) == 0;
    bool resnet = strncmp(x->model, "resnet", 6) == 0;
    x->first = x->is_vit ? "patch_embed.proj" : "conv1";
    x->head = co_st_find(x->weights, "head.weight") ? "head" : "fc";
    x->in_timm = x->is_vit || (resnet && size_of(x, "conv1.weight", 2) == 7); /* timm has no stem of 3x3 */
}

/* timm has no vit_tiny_patch4_32: it is its vit_tiny_patch16_224 with other numbers. */
static const char *architecture(const facts *x)
{
    return strcmp(x->model, "vit_tiny_patch4_32") == 0 ? "vit_tiny_patch16_224" : x->model;
}

/* Height and width of the pictures that a ViT's positions are for. */
static void vit_size(const facts *x, int64_t size[2])
{
    int64_t patch = size_of(x, "patch_embed.proj.weight", 2), n = size_of(x, "pos_embed", 1) - 1;

    size[0] = size[1] = (int64_t)(sqrt((double)n) + 0.5) * patch;
    if (x->data && x->data->io.x.nd == 3)
        for (int i = 0; i < 2; i++)
            size[i] = x->data->io.x.d[1 + i];
}

/* What timm's constructor needs besides the architecture; NULL: nothing. */
static json_t *model_args(const facts *x)
{
    int64_t size[2], planes = size_of(x, x->is_vit ? "patch_embed.proj.weight" : "conv1.weight", 1);
    json_t *args = json_object();

    if (planes && planes != 3)
        json_object_set_new(args, "in_chans", json_integer(planes));
    if (x->is_vit) {
        vit_size(x, size);
        json_object_set_new(args, "img_size", json_pack("[I, I]", (json_int_t)size[0], (json_int_t)size[1]));
        json_object_set_new(args, "patch_size", json_integer(size_of(x, "patch_embed.proj.weight", 2)));
        json_object_set_new(args, "embed_dim", json_integer(size_of(x, "patch_embed.proj.weight", 0)));
        json_object_set_new(args, "depth", json_integer(count_blocks(x)));
        if (x->num_heads)
            json_object_set_new(args, "num_heads", json_integer(x->num_heads));
    }
    if (json_object_size(args))
        return args;
    json_decref(args);
    return NULL;
}

/* --- the pictures --------------------------------------------------------------------------------------- */
static json_t *numbers(const double *v, int n)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_real(v[i]));
    return list;
}

static void add_pictures(json_t *to, const facts *x)
{
    const co_shape *shape = x->data ? &x->data->io.x : NULL;
    co_picture_use use;

    if (shape && shape->nd == 3)
        json_object_set_new(to, "input_size",
                            json_pack("[I, I, I]", (json_int_t)shape->d[0], (json_int_t)shape->d[1],
                                      (json_int_t)shape->d[2]));
    if (!x->data || !co_pictures_use(x->data, &use))
        return;
    json_object_set_new(to, "interpolation", json_string("bilinear"));
    json_object_set_new(to, "crop_pct", json_real(use.crop_share));
    json_object_set_new(to, "crop_mode", json_string("center"));
    json_object_set_new(to, "mean", numbers(use.mean, use.planes));
    json_object_set_new(to, "std", numbers(use.std, use.planes));
}

static json_t *pretrained_cfg(const facts *x, int64_t classes)
{
    json_t *cfg = json_pack("{s:b, s:b}", "custom_load", 0, "fixed_input_size", x->is_vit);

    if (classes)
        json_object_set_new(cfg, "num_classes", json_integer(classes));
    if (has_layer(x, x->first))
        json_object_set_new(cfg, "first_conv", json_string(x->first));
    if (classes)
        json_object_set_new(cfg, "classifier", json_string(x->head));
    if (cfg)
        add_pictures(cfg, x);
    return cfg;
}

static json_t *label_names(const facts *x, int64_t classes)
{
    if (!x->data || !x->data->class_name || x->data->io.task != CO_TASK_CLASSIFY ||
        classes != x->data->io.classes)
        return NULL;
    json_t *list = json_array();
    for (int64_t i = 0; i < classes; i++) {
        const char *name = x->data->class_name(x->data, i);
        json_array_append_new(list, co_json_string(name ? name : ""));
    }
    return list;
}

static co_err write_config(const facts *x, const char *path)
{
    char head[64];
    snprintf(head, sizeof head, "%s.weight", x->head);
    int64_t classes = size_of(x, head, 0), features = size_of(x, head, 1);
    json_t *config = json_pack("{s:s}", "architecture", architecture(x));
    json_t *args = model_args(x), *labels = label_names(x, classes);

    if (classes) {
        json_object_set_new(config, "num_classes", json_integer(classes));
        json_object_set_new(config, "num_features", json_integer(features));
    }
    if (args)
        json_object_set_new(config, "model_args", args);
    if (labels)
        json_object_set_new(config, "label_names", labels);
    json_object_set_new(config, "pretrained_cfg", pretrained_cfg(x, classes));
    /* 15 digits: 0.485, not 0.48499999999999999 */
    char *text = config ? json_dumps(config, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
    size_t len = text ? strlen(text) : 0;
    if (text)
        text[len++] = '\n'; /* replaces the NUL */
    co_err err = text ? co_fs_write_atomic(path, text, len) : CO_ENOMEM;
    co_free(text);
    json_decref(config);
    return err;
}

/* --- the run -------------------------------------------------------------------------------------------- */
static void take_heads(void *ctx, const char *key, const char *value)
{
    facts *x = ctx;

    if (strcmp(key, "model.num_heads") == 0 && !co_str_to_i64(value, &x->num_heads))
        x->num_heads = 0;
}

/* Opens the run's data set. *run must be closed in any case. */
static void open_run(eval_line *run, facts *x, const char *ckpt)
{
    char *word = co_conf_word("ckpt_path", ckpt);
    char *argv[] = {"test", word};
    co_err err = word ? line_parse(&run->line, 2, argv, true, (const co_flag[]){{0}}) : CO_ENOMEM;

    if (!err)
        err = eval_line_open(run);
    if (run->app.conf)
        (void)co_conf_facts(run->app.conf, take_heads, x);
    if (!err)
        x->data = co_plan_facts_of(run->plan)->data;
    else
        co_notice("the run's data set does not open here (%s): config.json has neither mean and std nor the "
                  "size of the "
                  "pictures, and timm will assume ImageNet's",
                  co_errmsg());
    co_free(word);
}

static co_err write_folder(const char *ckpt, const char *weights, const char *config)
{
    eval_line run = {.split_name = "test"};
    co_ckpt_meta meta = {0};
    facts x = {0};
    co_err err = co_ckpt_read_meta(&meta, ckpt);

    if (!err)
        err = co_st_open(&x.weights, weights);
    if (!err) {
        x.model = meta.model;
        recognise(&x);
        if (!x.in_timm)
            co_notice(
                "timm has no model like this %s: the folder is for safetensors and for programs of your own",
                x.model);
        open_run(&run, &x, ckpt);
        err = write_config(&x, config);
        eval_line_close(&run);
    }
    co_st_close(x.weights);
    co_ckpt_meta_fini(&meta);
    return err;
}

co_err ckpt_export_hf(const char *ckpt, const char *to, bool average)
{
    char *weights = co_sprintf("%s/model.safetensors", to), *config = co_sprintf("%s/config.json", to);
    co_err err = weights && config ? CO_OK : CO_ENOMEM;

    if (!err && mkdir(to, 0777) != 0)
        err = co_fail(CO_EIO, "mkdir %s: %m", to);
    else if (!err) {
        err = co_weights_export(ckpt, weights, average);
        if (!err)
            err = write_folder(ckpt, weights, config);
        if (err && co_fs_remove_tree(to) != CO_OK) /* the first error is the one to tell */
            co_notice("%s is left half made", to);
    }
    co_free(weights);
    co_free(config);
    return err;
}
