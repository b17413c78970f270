/* batch.c -- the body of one file_stream request: the next lines of each channel.
 *
 *     {"files":{"wandb-history.jsonl":{"offset":10,"content":["{...}","{...}"]}, ...},
 *      "uploaded":["config.yaml"], "complete":true, "exitcode":0}
 *
 * Lines of the history are kept as `STEP rest-of-the-object}`, because a run that joins an older one adds
 * the older one's last step to every _step, and that is not known when the line is written.
 */
#include "wandb/upload_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

enum { CHUNK = 1 << 20, LINE_MOST = 10 << 20 };

static const char *const file_names[N_CHANNELS] = {"wandb-history.jsonl", "wandb-events.jsonl", "output.log"};

static co_err read_at(co_str *out, const spool *sp, uint64_t at, size_t len)
{
    char bytes[65536];

    while (len > 0) {
        ssize_t n = pread(sp->fd, bytes, len < sizeof bytes ? len : sizeof bytes, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return co_fail(CO_EIO, "read %s: %m", sp->path);
        co_str_addn(out, bytes, (size_t)n);
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return co_str_err(out);
}

static void add_line(co_str *body, int channel, int64_t base_step, const char *line, size_t len)
{
    if (channel != CH_HISTORY) {
        json_quote(body, line, len);
        return;
    }
    char *rest;
    long long step = strtoll(line, &rest, 10);
    co_str text = {0};

    co_str_addf(&text, "{\"_step\":%lld,", step + (long long)base_step);
    co_str_addn(&text, rest + 1, len - (size_t)(rest + 1 - line));
    json_quote(body, co_str_text(&text), text.len);
    body->failed = body->failed || text.failed;
    co_str_fini(&text);
}

/* The whole lines of `text` that are new to the service; counts all of them in *at. */
static void add_lines(co_str *body, const uploader *u, int channel, const co_str *text, sent_channel *at,
                      int *n)
{
    const char *line = text->p, *end = text->p + text->len, *newline;

    for (; (newline = memchr(line, '\n', (size_t)(end - line))); line = newline + 1) {
        at->bytes += (uint64_t)(newline + 1 - line);
        if (at->skip > 0) {
            at->skip--;
            at->lines++;
            continue;
        }
        if (*n == 0)
            co_str_addf(body, "\"%s\":{\"offset\":%lld,\"content\":[", file_names[channel],
                        (long long)(u->base[channel] + at->lines));
        co_str_add(body, (*n)++ ? "," : "");
        add_line(body, channel, u->base_step, line, (size_t)(newline - line));
        at->lines++;
    }
}

static co_err add_channel(co_str *body, uploader *u, int channel, batch *out)
{
    const spool *sp = &u->job.channel[channel];
    uint64_t written = atomic_load(&sp->written);
    sent_channel *at = &out->after[channel];
    int n = 0;

    *at = u->channel[channel];
    for (size_t size = CHUNK; at->bytes < written && n == 0; size = 2 * size) {
        co_str text = {0};
        uint64_t before = at->bytes, left = written - at->bytes;
        co_err err = read_at(&text, sp, at->bytes, left < size ? (size_t)left : size);
        if (!err && body->len && body->p[body->len - 1] == '}')
            co_str_add(body, ",");
        if (!err)
            add_lines(body, u, channel, &text, at, &n);
        co_str_fini(&text);
        CO_TRY(err);
        if (at->bytes == before && (left <= size || size > LINE_MOST))
            break; /* the last line is not whole yet */
    }
    if (n)
        co_str_add(body, "]}");
    else if (body->len && body->p[body->len - 1] == ',')
        body->p[--body->len] = '\0';
    out->any = out->any || n;
    out->more = out->more || (n && at->bytes < written);
    return CO_OK;
}

static void add_summary(co_str *body, uploader *u, batch *out)
{
    pthread_mutex_lock(&u->lock);
    out->summary = u->summary;
    u->summary = NULL;
    pthread_mutex_unlock(&u->lock);
    if (!out->summary)
        return;
    if (body->len && body->p[body->len - 1] == '}')
        co_str_add(body, ",");
    co_str_add(body, "\"wandb-summary.json\":{\"offset\":0,\"content\":[");
    json_quote(body, out->summary, strlen(out->summary));
    co_str_add(body, "]}");
    out->any = true;
}

static void add_uploaded(co_str *body, uploader *u, batch *out)
{
    out->named_files = u->named_files;
    if (u->named_files == u->sent_files)
        return;
    co_str_addf(body, "%s\"uploaded\":[", body->len > 1 ? "," : "");
    for (size_t i = u->named_files; i < u->sent_files; i++) {
        co_str_add(body, i > u->named_files ? "," : "");
        json_quote(body, u->file[i], strlen(u->file[i]));
    }
    co_str_add(body, "]");
    out->named_files = u->sent_files;
    out->any = true;
}

co_err batch_build(co_str *body, uploader *u, batch *out, bool last)
{
    co_str files = {0};
    co_err err = CO_OK;

    for (int i = 0; i < N_CHANNELS && !err; i++)
        err = add_channel(&files, u, i, out);
    if (!err)
        add_summary(&files, u, out);
    co_str_add(body, "{");
    if (files.len)
        co_str_addf(body, "\"files\":{%s}", co_str_text(&files));
    body->failed = body->failed || files.failed;
    co_str_fini(&files);
    pthread_mutex_lock(&u->lock); /* file[] may move */
    add_uploaded(body, u, out);
    int exit_code = u->exit_code;
    pthread_mutex_unlock(&u->lock);
    if (last && !out->more && exit_code >= 0 && !u->complete_sent) {
        co_str_addf(body, "%s\"complete\":true,\"exitcode\":%d", body->len > 1 ? "," : "", exit_code);
        out->finishes = true;
    }
    co_str_add(body, "}");
    return err ? err : co_str_err(body);
}

void batch_commit(uploader *u, batch *sent)
{
    memcpy(u->channel, sent->after, sizeof u->channel);
    u->named_files = sent->named_files;
    u->complete_sent = u->complete_sent || sent->finishes;
    co_free(sent->summary);
    sent->summary = NULL;
}

void batch_undo(uploader *u, batch *unsent)
{
    pthread_mutex_lock(&u->lock);
    if (!u->summary) { /* else a newer one has come */
        u->summary = unsent->summary;
        unsent->summary = NULL;
    }
    pthread_mutex_unlock(&u->lock);
    co_free(unsent->summary);
    unsent->summary = NULL;
}
