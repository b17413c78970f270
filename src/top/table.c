/* table.c -- rows of columns that fit a line: a narrow terminal loses the columns that are needed least. */
#include "top/top_int.h"

#include <stdio.h>
#include <string.h>

int top_width(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80; /* not a byte inside a character */
    return n;
}

void top_cut(co_str *out, const char *text, int cols, bool pad, bool utf8)
{
    uint32_t code;
    int at = 0;

    while (*text && at < cols) {
        int n = co_utf8_get(&code, text, 4);
        n = n > 0 ? n : 1;
        if (n > 1 && utf8)
            co_str_addn(out, text, (size_t)n);
        else
            co_str_addn(out, *text >= ' ' && *text < 127 ? text : "?", 1);
        text += n;
        at++;
    }
    for (; pad && at < cols; at++)
        co_str_add(out, " ");
}

static int width_of(const top_column *column, int n, const bool *shown)
{
    int width = 0;

    for (int i = 0; i < n; i++)
        if (shown[i])
            width += (column[i].width ? column[i].width : 8) + 1; /* the last one needs some room, too */
    return width - 1;
}

void top_fit(const top_column *column, int n, int cols, bool shown[TOP_COLUMNS])
{
    for (int i = 0; i < n; i++)
        shown[i] = true;
    while (width_of(column, n, shown) > cols) {
        int worst = -1;
        for (int i = 0; i < n; i++)
            if (shown[i] && column[i].need > 0 && (worst < 0 || column[i].need > column[worst].need))
                worst = i;
        if (worst < 0)
            return;
        shown[worst] = false;
    }
}

static void add_cell(co_str *out, const top_column *column, const char *text, int width)
{
    int pad = width - top_width(text);

    for (int i = 0; i < pad && !column->left; i++)
        co_str_add(out, " ");
    top_cut(out, text, width, column->left && column->width, true);
}

void top_head(co_str *out, const top_column *column, int n, const bool *shown)
{
    bool first = true;

    for (int i = 0; i < n; i++) {
        if (!shown[i])
            continue;
        co_str_add(out, first ? "" : " ");
        add_cell(out, &column[i], column[i].title,
                 column[i].width ? column[i].width : top_width(column[i].title));
        first = false;
    }
}

void top_row(co_str *out, const top_column *column, int n, const bool *shown, int cols, top_cells cells)
{
    bool first = true;
    int at = 0;

    for (int i = 0; i < n; i++) {
        if (!shown[i])
            continue;
        co_str_add(out, first ? "" : " ");
        at += !first;
        int width = column[i].width ? column[i].width : cols - at;
        add_cell(out, &column[i], cells[i], width > 0 ? width : 0);
        at += width;
        first = false;
    }
}
