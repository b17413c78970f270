/* pairs.c -- sentences and their translations.
 *
 * A sample is a source sentence, between the tokens that begin and end one, and its translation. The files
 * are read and checked whole when the set is opened (pairs_find.c, pairs_read.c, pairs_json.c), split once
 * (pairs_split.c), and made tokens of by a tokenizer for each language (pairs_tokens.c). In memory stand
 * the texts, for samples and scores, and 4 bytes a token.
 *
 *     "Hello.   Ciao."     x = begin Hello . end      given = begin Ciao .      y = Ciao . end
 */
#include "data/pairs_int.h"

#include <stdio.h>
#include <string.h>

struct pairs_cfg {
    char *dir, *file, *lang[2], *column[2], *tokenizer[2];
    int64_t max_len, min_frequency, vocab_size, split_seed;
    double val_fraction, test_fraction;
};

static co_err check_lang(const char *full, const char *value)
{
    size_t n = strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

    if (n == 0 || value[n] || n > 16)
        return co_fail(CO_EINPUT, "%s=%s: a language is named by 1 to 16 letters, as in en", full, value);
    return CO_OK;
}

static const co_option options[] = {
    {"dir", CO_OPT_STR, offsetof(struct pairs_cfg, dir), "null",
     "folder with a file of pairs (.tsv, .jsonl, .en and .it)"
     ", or the file itself",
     .alias = "data.data_dir", .path = true, .of_host = true},
    {"file", CO_OPT_STR, offsetof(struct pairs_cfg, file), "*",
     "which file of data.dir: a name with * and ?, several separated by |, "
     "of which the first that fits counts",
     .needed = true},
    {"lang_src", CO_OPT_STR, offsetof(struct pairs_cfg, lang[0]), "en",
     "language to translate from: its name in the files", .alias = "data.src_lang", .needed = true,
     .check = check_lang},
    {"lang_tgt", CO_OPT_STR, offsetof(struct pairs_cfg, lang[1]), "it",
     "language to translate to: its name in the files", .alias = "data.tgt_lang", .needed = true,
     .check = check_lang},
    {"column_src", CO_OPT_STR, offsetof(struct pairs_cfg, column[0]), "null",
     "column of a tab-separated file with the source: a number from 1 on, or a name of its first line; null: "
     "the one named"
     " as data.lang_src there or by the file's name (NAME.en-it.tsv), or else the first"},
    {"column_tgt", CO_OPT_STR, offsetof(struct pairs_cfg, column[1]), "null",
     "column with the target; null: the one named as data.lang_tgt there or by the file's name, or else the "
     "second"},
    {"tokenizer_src", CO_OPT_STR, offsetof(struct pairs_cfg, tokenizer[0]), "null",
     "tokenizer file (Hugging Face JSON) of the source; null: words of the pairs to train on", .path = true,
     .of_host = true},
    {"tokenizer_tgt", CO_OPT_STR, offsetof(struct pairs_cfg, tokenizer[1]), "null",
     "tokenizer file of the target; null: words of the pairs to train on", .path = true, .of_host = true},
    {"min_frequency", CO_OPT_INT, offsetof(struct pairs_cfg, min_frequency), "2",
     "words that occur less often are unknown, in tokenizers trained here", .min = 1, .max = 1000000},
    {"vocab_size", CO_OPT_INT, offsetof(struct pairs_cfg, vocab_size), "30000",
     "most tokens of a tokenizer trained here", .min = 8, .max = 1 << 24},
    {"max_len", CO_OPT_INT, offsetof(struct pairs_cfg, max_len), "350",
     "longest sentence in tokens, begin and end among them; longer pairs are left out and counted",
     .alias = "data.seq_len", .min = 3, .max = 65536},
    {"val_fraction", CO_OPT_FLOAT, offsetof(struct pairs_cfg, val_fraction), "0.1",
     "part of the source sentences to validate on", .min = 0, .max = 0.9},
    {"test_fraction", CO_OPT_FLOAT, offsetof(struct pairs_cfg, test_fraction), "0",
     "part of the source sentences to test on", .min = 0, .max = 0.9},
    {"split_seed", CO_OPT_INT, offsetof(struct pairs_cfg, split_seed), "0",
     "draws the sentences that are held out", .min = 0, .max = 0x1p53},
    {0},
};

/* --- giving out samples ------------------------------------------------------------------------------- */
static int length(const co_dataset *d, co_split s, uint32_t id)
{
    const struct pairs *set = (const struct pairs *)d;

    return (int)set->source[split_start(d, s) + id];
}

static int target_length(const co_dataset *d, co_split s, uint32_t id)
{
    const struct pairs *set = (const struct pairs *)d;
    uint32_t at = split_start(d, s) + id;

    return (int)(set->start[at + 1] - set->start[at]) - (int)set->source[at] + 1;
}

static void fill_target(const struct pairs *set, const int32_t *words, size_t n, int32_t *given, int32_t *y)
{
    if (given) {
        given[0] = set->marks[CO_SIDE_TARGET].begin;
        memcpy(given + 1, words, n * sizeof *words);
    }
    if (y) {
        memcpy(y, words, n * sizeof *words);
        y[n] = set->marks[CO_SIDE_TARGET].end;
    }
}

static int fill(const co_dataset *d, co_split s, const uint32_t *id, co_slice_shape shape,
                const co_draw *draw, const co_slice_dst *dst)
{
    const struct pairs *set = (const struct pairs *)d;
    uint32_t first = split_start(d, s);

    for (int i = 0; i < shape.n; i++) {
        uint32_t at = first + id[i];
        const int32_t *tokens = set->tokens + set->start[at], *words = tokens + set->source[at];
        if (dst->x)
            memcpy((int32_t *)dst->x + dst->offsets[i], tokens, set->source[at] * sizeof *tokens);
        if (dst->given || dst->y)
            fill_target(set, words, (size_t)(set->tokens + set->start[at + 1] - words),
                        dst->given ? dst->given + dst->y_offsets[i] : NULL,
                        dst->y ? (int32_t *)dst->y + dst->y_offsets[i] : NULL);
        if (dst->ids)
            dst->ids[i] = id[i];
    }
    return 0;
}

static void decode(const co_dataset *d, const int32_t *tokens, int n, co_str *out)
{
    co_tokenizer_decode(((const struct pairs *)d)->tokenizer[CO_SIDE_TARGET], tokens, (size_t)n, out);
}

static int encode(const co_dataset *d, const char *text, size_t len, int32_t *tokens, int room)
{
    const struct pairs *set = (const struct pairs *)d;
    co_tokens ids = {0};
    int n = 0;

    if (co_tokenizer_encode(set->tokenizer[CO_SIDE_SOURCE], &ids, text, len) != CO_OK) {
        co_tokens_fini(&ids);
        return -1;
    }
    for (size_t i = 0; i < ids.n + 2; i++, n++)
        if (n < room)
            tokens[n] = i == 0           ? set->marks[CO_SIDE_SOURCE].begin
                        : i == ids.n + 1 ? set->marks[CO_SIDE_SOURCE].end
                                         : ids.id[i - 1];
    co_tokens_fini(&ids);
    return n;
}

static void text(const co_dataset *d, co_split s, uint32_t id, co_side side, co_str *out)
{
    const struct pairs *set = (const struct pairs *)d;

    co_str_add(out, pair_text(&set->list, set->place[split_start(d, s) + id], side));
}

/* --- opening ------------------------------------------------------------------------------------------ */
struct pairs *pairs_new(const char *lang_src, const char *lang_tgt, int64_t limit)
{
    struct pairs *set = co_zalloc(sizeof *set);

    if (!set)
        return NULL;
    set->limit = limit;
    set->base = (co_dataset){
        .io = {.task = CO_TASK_PAIRS, .x = CO_SCALAR},
        .length = length,
        .target_length = target_length,
        .fill = fill,
        .decode = decode,
        .encode = encode,
        .text = text,
        .vocabulary = pairs_vocabulary,
        .run_file = pairs_run_file,
        .close = pairs_close,
    };
    set->lang[0] = co_strdup(lang_src);
    set->lang[1] = set->lang[0] ? co_strdup(lang_tgt) : NULL;
    if (set->lang[1])
        return set;
    pairs_close(&set->base);
    return NULL;
}

void pairs_close(co_dataset *d)
{
    struct pairs *set = (struct pairs *)d;

    pair_list_fini(&set->list);
    co_free_shared(set->tokens);
    co_free_shared(set->start);
    co_free_shared(set->source);
    co_free_shared(set->place);
    for (int side = 0; side < 2; side++) {
        co_tokenizer_free(set->tokenizer[side]);
        co_free(set->lang[side]);
    }
    co_free(set);
}

co_err pairs_set_io(struct pairs *set, int64_t longest)
{
    co_io *io = &set->base.io;

    io->sources = co_tokenizer_size(set->tokenizer[CO_SIDE_SOURCE]);
    io->classes = co_tokenizer_size(set->tokenizer[CO_SIDE_TARGET]);
    io->begin = set->marks[CO_SIDE_TARGET].begin;
    io->end = set->marks[CO_SIDE_TARGET].end;
    io->max_len = longest;
    return CO_OK;
}

/* Of everything that decides what a sample is: the keys, every pair with its split, both tokenizers. */
static void fingerprint(struct pairs *set, const uint8_t *part)
{
    co_sha256 hash;
    char says[64];

    snprintf(says, sizeof says, "pairs 1 max_len=%lld\n", (long long)set->limit);
    co_sha256_init(&hash);
    co_sha256_add(&hash, says, strlen(says));
    for (uint32_t i = 0; i < set->list.n; i++) {
        co_sha256_add(&hash, &part[i], 1);
        for (int side = 0; side < 2; side++) {
            const char *text = pair_text(&set->list, i, (co_side)side);
            co_sha256_add(&hash, text, set->list.pair[i].side[side].len + 1);
        }
    }
    for (int side = 0; side < 2; side++) {
        size_t len;
        const char *file = co_tokenizer_file(set->tokenizer[side], &len);
        co_sha256_add(&hash, file, len);
    }
    co_sha256_hex(&hash, set->base.fingerprint);
}

/* Which column is which language, where the user may think otherwise: the columns are swapped, or assumed. */
static void tell_columns(struct pairs *set, const pair_ask *ask)
{
    size_t n = strlen(set->base.note), room = sizeof set->base.note - n;
    const int *column = set->list.column;

    if (column[0] && (!ask->named[0][0] || column[0] != 1))
        snprintf(set->base.note + n, room, "\n%s is column %d, %s is column %d%s", set->lang[0], column[0],
                 set->lang[1], column[1],
                 ask->named[0][0] ? ": the columns are swapped, as the file's name says"
                                  : " (data.column_src, data.column_tgt)");
}

static void tell_note(struct pairs *set, const pair_files *files, uint32_t sources, uint32_t left_out)
{
    const char *slash = strrchr(files->path[0], '/');
    char pairs[32], distinct[32], out[32];
    size_t room = sizeof set->base.note;
    int n = snprintf(set->base.note, room, "%.40s: %s pairs of %s source sentences, each in one split",
                     slash ? slash + 1 : files->path[0], with_commas(pairs, set->list.n),
                     with_commas(distinct, sources));

    if (left_out && n > 0 && (size_t)n < room)
        snprintf(set->base.note + n, room - (size_t)n, "; %s of more than %lld tokens left out",
                 with_commas(out, left_out), (long long)set->limit);
}

static co_err use_pairs(struct pairs *set, uint8_t *part, const pair_files *files, const struct pairs_cfg *c)
{
    const pair_shares shares = {c->val_fraction, c->test_fraction, (uint64_t)c->split_seed};
    const pair_words words = {
        {c->tokenizer[0], c->tokenizer[1]}, (uint64_t)c->min_frequency, (size_t)c->vocab_size};
    uint32_t sources, left_out;

    CO_TRY(pairs_split(part, &set->list, &shares, &sources));
    CO_TRY(pairs_tokenizers(set, part, &words));
    CO_TRY(pairs_tokens(set, part, &left_out));
    if (set->base.count[CO_SPLIT_TRAIN] == 0)
        return co_fail(CO_EINPUT,
                       "all %u pairs have more than %lld tokens: nothing is left to train on (data.max_len)",
                       left_out, (long long)set->limit);
    fingerprint(set, part);
    tell_note(set, files, sources, left_out);
    return CO_OK;
}

static co_err read_set(struct pairs *set, const struct pairs_cfg *c)
{
    pair_ask ask = {.lang = {c->lang[0], c->lang[1]}, .column = {c->column[0], c->column[1]}};
    pair_files files;

    if (!c->dir || !*c->dir)
        return co_fail(CO_EINPUT,
                       "it needs data.dir=FOLDER, with a file of pairs: source, tab, target on each line of a"
                       " .tsv, or JSON lines as of opus_books");
    if (strcmp(c->lang[0], c->lang[1]) == 0)
        return co_fail(CO_EINPUT, "data.lang_src and data.lang_tgt are both %s", c->lang[0]);
    CO_TRY(pairs_find(&files, c->dir, c->file, &ask));
    pairs_name(&ask, files.path[0]);
    CO_TRY(pairs_read(&set->list, &files, &ask));
    uint8_t *part = co_array(set->list.n, 1);
    co_err err = part ? use_pairs(set, part, &files, c) : CO_ENOMEM;
    co_free(part);
    if (!err)
        tell_columns(set, &ask);
    return err;
}

static co_err open_pairs(co_dataset **out, const void *cfg)
{
    const struct pairs_cfg *c = cfg;
    struct pairs *set = pairs_new(c->lang[0], c->lang[1], c->max_len);

    if (!set)
        return CO_ENOMEM;
    co_err err = read_set(set, c);
    if (err) {
        pairs_close(&set->base);
        return err == CO_EINPUT ? co_fail_in(err, "data=pairs") : err;
    }
    *out = &set->base;
    return CO_OK;
}

const co_dataset_def pairs_def = {
    .name = "pairs",
    .help = "sentences and their translations, from tab-separated files, JSON lines or two files of lines",
    .options = options,
    .cfg_size = sizeof(struct pairs_cfg),
    .open = open_pairs,
    .open_vocabulary = pairs_open_vocabulary,
};
