/* models.c -- pretrained weights from the Hugging Face hub, kept in the cache.
 *
 * timm publishes the weights of each model in a repository; ours have the same names and shapes. The ResNets
 * are torchvision's. In $COHORT_CACHE (base/fs.h says where that is otherwise):
 *
 *     models-1/NAME.safetensors           the file
 *     models-1/NAME.safetensors.sha256    "SHA-256 LENGTH", written last: without it the file does not count
 *
 * The hub states the SHA-256 of a file (X-Linked-ETag) when it redirects to it, and we compare. If a mirror
 * does not, the sum that the file had when it came is kept, so later damage is noticed.
 */
#include "fetch/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/str.h"
#include "fetch/fetch_int.h"

#define HUB "https://huggingface.co"
enum { RETRIES = 5 };
static const uint64_t HASHED_MOST = 1u << 30, LONGEST = (uint64_t)8 << 30;

#define IMAGENET "imagenet"
#define HALVES   "0.5:0.5:0.5/0.5:0.5:0.5"

const co_pretrained_row co_pretrained_rows[] = {
    {"resnet18", "timm/resnet18.tv_in1k", IMAGENET},
    {"resnet34", "timm/resnet34.tv_in1k", IMAGENET},
    {"resnet50", "timm/resnet50.tv_in1k", IMAGENET},
    {"resnet101", "timm/resnet101.tv_in1k", IMAGENET},
    {"resnet152", "timm/resnet152.tv_in1k", IMAGENET},
    {"vit_tiny_patch16_224", "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k", HALVES},
    {"vit_small_patch16_224", "timm/vit_small_patch16_224.augreg_in21k_ft_in1k", HALVES},
    {"vit_base_patch16_224", "timm/vit_base_patch16_224.augreg2_in21k_ft_in1k", HALVES},
    {"vit_large_patch16_224", "timm/vit_large_patch16_224.augreg_in21k_ft_in1k", HALVES},
    {"vit_small_patch32_224", "timm/vit_small_patch32_224.augreg_in21k_ft_in1k", HALVES},
    {"vit_base_patch32_224", "timm/vit_base_patch32_224.augreg_in21k_ft_in1k", HALVES},
    {"vit_large_patch32_224", "timm/vit_large_patch32_224.orig_in21k", HALVES},
    {0}};

co_err co_pretrained_find(const co_pretrained_row **out, const char *model)
{
    for (const co_pretrained_row *row = co_pretrained_rows; row->model; row++)
        if (strcmp(row->model, model) == 0) {
            *out = row;
            return CO_OK;
        }
    return co_fail(
        CO_EINPUT,
        "model.pretrained=true: no weights of model=%s are known here; there are some for resnet18 to "
        "resnet152 and timm's vision transformers (vit_base_patch32_224). A file of your own: "
        "model.pretrained=FILE",
        model);
}

/* --- the cache ------------------------------------------------------------------------------------------ */
static bool note_fits(const char *path, const char *note_path, uint64_t *len)
{
    char *note = NULL, have[65];
    size_t note_len;
    struct stat st;
    bool good = co_fs_read(&note, &note_len, note_path, 256) == CO_OK &&
                strspn(note, "0123456789abcdef") == 64 && sscanf(note + 64, " %" SCNu64, len) == 1 &&
                stat(path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == *len;

    if (good && *len <= HASHED_MOST)
        good = co_sha256_of_file(path, have, NULL) == CO_OK && memcmp(have, note, 64) == 0;
    co_free(note);
    co_errclear();
    return good;
}

static co_err write_note(const char *path, const char *note_path, const co_fetch_facts *facts)
{
    char hex[65], text[128];

    if (facts->sum == CO_SUM_SHA256)
        memcpy(hex, facts->hex, sizeof hex);
    else
        CO_TRY(co_sha256_of_file(path, hex, NULL));
    int n = snprintf(text, sizeof text, "%s %" PRIu64 "\n", hex, facts->bytes);
    return co_fs_write_atomic(note_path, text, (size_t)n);
}

/* --- the hub -------------------------------------------------------------------------------------------- */
static co_err address(char url[FETCH_URL], const char *repository)
{
    const char *base = getenv("HF_ENDPOINT");

    base = base && *base ? base : HUB;
    size_t n = strlen(base);
    while (n > 0 && base[n - 1] == '/')
        n--;
    return snprintf(url, FETCH_URL, "%.*s/%s/resolve/main/model.safetensors", (int)n, base, repository) <
                   FETCH_URL
               ? CO_OK
               : co_fail(CO_EINPUT, "the address in $HF_ENDPOINT is too long");
}

static co_err download(co_fetch_facts *facts, const char *repository, const char *path, co_fetch_tell *tell,
                       void *ctx)
{
    char url[FETCH_URL];
    const char *urls[] = {url, NULL};

    CO_TRY(address(url, repository));
    co_fetch_job job = {.urls = urls,
                        .path = path,
                        .linked_sum = true,
                        .most = LONGEST,
                        .retries = RETRIES,
                        .tell = tell,
                        .ctx = ctx};
    unlink(path); /* without its note it is not trusted */
    co_err err = co_fetch(facts, &job);
    if (err)
        return co_fail(
            err,
            "the weights %s could not be downloaded: %s. If this host has no network, get the file elsewhere "
            "and give model.pretrained=FILE; $HF_ENDPOINT names a mirror",
            repository, co_errmsg());
    return CO_OK;
}

/* Under the lock: runs that start at once download a file once. */
static co_err find_or_download(co_pretrained *out, const char *note, co_fetch_tell *tell, void *ctx)
{
    co_fetch_facts facts = {0};

    if (note_fits(out->path, note, &out->bytes)) {
        out->was_there = out->has_sum = true;
        return CO_OK;
    }
    CO_TRY(download(&facts, out->name, out->path, tell, ctx));
    out->bytes = facts.bytes;
    out->has_sum = facts.sum == CO_SUM_SHA256;
    return write_note(out->path, note, &facts);
}

static co_err lock(int *fd, const char *path)
{
    *fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (*fd < 0)
        return co_fail(CO_EIO, "create %s: %m", path);
    while (flock(*fd, LOCK_EX) != 0)
        if (errno != EINTR)
            return co_fail(CO_EIO, "lock %s: %m", path);
    return CO_OK;
}

co_err co_pretrained_get(co_pretrained *out, const co_pretrained_row *row, co_fetch_tell *tell, void *ctx)
{
    char dir[FETCH_PATH - 512], note[FETCH_PATH + 16], lock_path[FETCH_PATH + 16];
    int fd = -1;

    *out = (co_pretrained){.name = row->repository};
    CO_TRY(co_fs_cache(dir, sizeof dir, "models-1"));
    snprintf(out->path, sizeof out->path, "%s/%s.safetensors", dir, strchr(row->repository, '/') + 1);
    snprintf(note, sizeof note, "%s.sha256", out->path);
    snprintf(lock_path, sizeof lock_path, "%s.lock", out->path);
    co_err err = lock(&fd, lock_path);
    if (!err)
        err = find_or_download(out, note, tell, ctx);
    if (fd >= 0)
        close(fd);
    return err;
}
