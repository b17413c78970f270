/* pairs_read.c -- pairs of sentences from tab-separated files and from two files that go line by line
 * together.
 *
 * Every line must have both sides, in UTF-8 and without control characters. Blanks at the ends of a side
 * are cut off. Empty lines are passed over in one file; of two files, both must be empty there.
 */
#include "data/pairs_int.h"

#include <string.h>
#include <strings.h>

const char *pair_text(const pair_list *list, uint32_t i, co_side side)
{
    return list->text.p + list->pair[i].side[side].at;
}

void pair_list_fini(pair_list *list)
{
    co_str_fini(&list->text);
    co_free(list->pair);
    *list = (pair_list){0};
}

/* --- one pair ----------------------------------------------------------------------------------------- */
static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static co_err check_side(const csv *from, const char *text, size_t len, const char *lang)
{
    uint32_t code;

    if (len == 0)
        return csv_fail(from, "its %s side is empty: take the line out, or give both sides", lang);
    for (size_t at = 0; at < len;) {
        int n = co_utf8_get(&code, text + at, len - at);
        if (n == 0)
            return csv_fail(from, "its %s side is not UTF-8: byte 0x%02x (iconv -f LATIN1 -t UTF-8 may help)",
                            lang, (uint8_t)text[at]);
        if (code < 0x20 && !is_blank(text[at]))
            return csv_fail(from, "its %s side has the control character 0x%02x; is this text?", lang, code);
        at += (size_t)n;
    }
    return CO_OK;
}

static bool make_room(pair_list *list)
{
    uint32_t room = list->room ? 2 * list->room : 1024;

    if (list->n < list->room)
        return true;
    pair *more = co_realloc(list->pair, room * sizeof *more);
    if (!more)
        return false;
    list->pair = more;
    list->room = room;
    return true;
}

/* Ends of lines and tabs inside a side (JSON has them) become blanks. */
static void add_side(co_str *text, const char *side, size_t len)
{
    size_t from = text->len;

    co_str_addn(text, side, len);
    for (size_t i = from; i < text->len; i++)
        text->p[i] = is_blank(text->p[i]) ? ' ' : text->p[i];
    co_str_addn(text, "", 1);
}

co_err pairs_add(pair_list *list, const csv *from, const char *const side[2], const pair_ask *ask)
{
    pair p;

    if (list->n == PAIRS_MOST || !make_room(list))
        return list->n == PAIRS_MOST ? csv_fail(from, "more than %d pairs", (int)PAIRS_MOST) : CO_ENOMEM;
    for (int s = 0; s < 2; s++) {
        const char *text = side[s];
        size_t len = strlen(text);
        while (len && is_blank(text[len - 1]))
            len--;
        for (; len && is_blank(*text); len--)
            text++;
        CO_TRY(check_side(from, text, len, ask->lang[s]));
        if (list->text.len + len >= INT32_MAX)
            return csv_fail(from, "the file has more than 2 GiB of text: give a part of it");
        p.side[s] = (sentence){(uint32_t)list->text.len, (uint32_t)len};
        add_side(&list->text, text, len);
    }
    list->pair[list->n++] = p;
    return co_str_err(&list->text);
}

/* --- tab-separated ------------------------------------------------------------------------------------ */
static int field_named(const csv *table, const char *name)
{
    for (int i = 0; i < table->n; i++)
        if (strcasecmp(table->field[i], name) == 0)
            return i;
    return -1;
}

/* Which field of a line each side is, from the first line. *is_head: that line only has names. */
static co_err choose_columns(const csv *table, const pair_ask *ask, int column[2], bool *is_head)
{
    int named[2] = {field_named(table, ask->lang[0]), field_named(table, ask->lang[1])};
    long long number;

    *is_head = !ask->column[0] && !ask->column[1] && named[0] >= 0 && named[1] >= 0;
    for (int s = 0; s < 2; s++) {
        const char *want = ask->column[s];
        column[s] = *is_head ? named[s] : s;
        if (!want)
            continue;
        if (co_str_to_i64(want, &number) && number >= 1 && number <= CSV_FIELDS) {
            column[s] = (int)number - 1;
            continue;
        }
        *is_head = true;
        if ((column[s] = field_named(table, want)) < 0)
            return csv_fail(
                table,
                "it has no column %s (data.column_%s); give a number from 1 on, or a name that stands"
                " in the first line",
                want, s == 0 ? "src" : "tgt");
    }
    if (column[0] == column[1])
        return csv_fail(table, "both sides are column %d: see data.column_src and data.column_tgt",
                        column[0] + 1);
    return *is_head || ask->column[0] || ask->column[1] ? CO_OK : pairs_name_columns(table, ask, column);
}

/* What may part the fields of a line instead of tabs. */
static const char *other_mark(const char *line)
{
    static const struct {
        const char *mark, *says;
    } marks[] = {{" ||| ", "|||"}, {";", "semicolons"}, {"|", "bars"}, {",", "commas"}};

    for (size_t i = 0; i < CO_COUNT(marks); i++)
        if (strstr(line, marks[i].mark))
            return marks[i].says;
    return NULL;
}

static co_err lacks_column(const csv *table, const pair_ask *ask, int s, int column)
{
    const char *mark = table->n == 1 ? other_mark(table->field[0]) : NULL;

    const char *more = mark ? mark : " (data.column_src and data.column_tgt say which are which)";

    return csv_fail(table, "it has %d field%s, and the %s side is column %d: fields are parted by tabs%s%s",
                    table->n, table->n == 1 ? "" : "s", ask->lang[s], column + 1, mark ? ", not by " : "",
                    more);
}

static co_err read_tabs(pair_list *out, csv *table, const pair_ask *ask)
{
    int column[2];
    bool more, is_head = false;

    CO_TRY(csv_next(table, &more));
    if (more)
        CO_TRY(choose_columns(table, ask, column, &is_head));
    for (int s = 0; more && !is_head && !ask->column[0] && !ask->column[1] && s < 2; s++)
        out->column[s] = column[s] + 1;
    if (more && is_head)
        CO_TRY(csv_next(table, &more));
    while (more) {
        for (int s = 0; s < 2; s++)
            if (column[s] >= table->n)
                return lacks_column(table, ask, s, column[s]);
        const char *side[2] = {table->field[column[0]], table->field[column[1]]};
        CO_TRY(pairs_add(out, table, side, ask));
        CO_TRY(csv_next(table, &more));
    }
    return CO_OK;
}

/* --- two files ---------------------------------------------------------------------------------------- */
static co_err read_two(pair_list *out, csv *table, csv *second, const pair_ask *ask)
{
    bool more, both;

    for (;;) {
        CO_TRY(csv_next(table, &more));
        CO_TRY(csv_next(second, &both));
        if (!more && !both)
            return CO_OK;
        const csv *longer = more ? table : second;
        if (more != both)
            return csv_fail(longer, "%s has no such line: both files need the same number of lines",
                            packed_path(more ? second->in : table->in));
        if (table->line != second->line)
            return csv_fail(table->line < second->line ? table : second,
                            "that line is empty in %s: the sides would no longer go together",
                            packed_path(table->line < second->line ? second->in : table->in));
        CO_TRY(pairs_add(out, table, (const char *const[]){table->field[0], second->field[0]}, ask));
    }
}

/* --- all ---------------------------------------------------------------------------------------------- */
co_err pairs_parse(pair_list *out, pairs_format format, packed *first, packed *second, const pair_ask *ask)
{
    /* A character that no text has: lines are not cut. */
    const char *sep = format == PAIRS_TABS ? "\t" : "\x01";
    csv table = {.in = first}, other = {.in = second};
    co_err err = csv_open(&table, first, sep, false, NULL);

    if (!err && second)
        err = csv_open(&other, second, sep, false, NULL);
    if (!err)
        err = format == PAIRS_TABS   ? read_tabs(out, &table, ask)
              : format == PAIRS_JSON ? pairs_read_json(out, &table, ask)
                                     : read_two(out, &table, &other, ask);
    if (!err && out->n == 0)
        err = co_fail(CO_EINPUT, "%s has no pairs of sentences: it is empty", packed_path(first));
    csv_close(&table);
    csv_close(&other);
    return err;
}

co_err pairs_read(pair_list *out, const pair_files *files, const pair_ask *ask)
{
    packed *in[2] = {NULL, NULL};

    CO_TRY(packed_open(&in[0], files->path[0]));
    if (files->format == PAIRS_TWO_FILES) {
        co_err err = packed_open(&in[1], files->path[1]);
        if (err) {
            packed_close(in[0]);
            return err;
        }
    }
    return pairs_parse(out, files->format, in[0], in[1], ask);
}
