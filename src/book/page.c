/* page.c -- a text that is written as Markdown and as HTML at the same time, so that both say the same.
 *
 * All texts come from outside (names of metrics, hosts, configuration) and are escaped for each form. The
 * Markdown is GitHub's: tables, fenced code. The HTML is one file: style and plots are inside, no script, no
 * outside address; colours follow the reader's light or dark scheme. Plots of the Markdown are files below
 * plots/.
 */
#include "book/book_int.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"

/* --- escaping ----------------------------------------------------------------------------------------- */
/* One character of the text: its length, and whether it can be shown. Newlines count as blanks. */
static int take(const char *at, uint32_t *code)
{
    int n = co_utf8_get(code, at, 4);

    if (n == 0 || *code < 0x20 || (*code >= 0x7F && *code < 0xA0) || (*code >= 0xFFFE && *code <= 0xFFFF))
        *code = n && (*code == '\n' || *code == '\t' || *code == '\r') ? ' ' : 0xFFFD;
    return n ? n : 1;
}

static void add_code_point(co_str *out, uint32_t code)
{
    char bytes[4];

    co_str_addn(out, bytes, (size_t)co_utf8_put(bytes, code));
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* An underscore inside a word is no emphasis; everything else that Markdown or HTML could read gets a
 * backslash. */
static void add_md(co_str *out, const char *text)
{
    for (const char *at = text; *at;) {
        uint32_t code;
        int n = take(at, &code);
        bool inside = code == '_' && at > text && is_word(at[-1]) && is_word(at[1]);
        bool first = at == text && strchr("#+-=", (int)code) && code < 0x80;
        if (code < 0x80 && !inside && (strchr("\\`*_[]<>|~&$!", (int)code) || first))
            co_str_add(out, "\\");
        add_code_point(out, code);
        at += n;
    }
}

static void add_html(co_str *out, const char *text)
{
    for (const char *at = text; *at;) {
        uint32_t code;
        int n = take(at, &code);
        if (code < 0x80 && strchr("&<>\"'", (int)code))
            co_str_addf(out, "&#%u;", (unsigned)code);
        else
            add_code_point(out, code);
        at += n;
    }
}

/* A relative address. What is not plain is written as %XX; a leading "x:" cannot become a scheme. */
static void add_href(co_str *out, const char *path)
{
    if (*path != '/' && strcspn(path, ":") < strcspn(path, "/"))
        co_str_add(out, "./");
    for (; *path; path++)
        if (is_word(*path) || strchr("/._-~:+=,@", *path))
            co_str_addn(out, path, 1);
        else
            co_str_addf(out, "%%%02X", (unsigned char)*path);
}

/* A code span of Markdown; a table needs its | escaped even there. */
static void add_md_code(co_str *out, const char *text)
{
    if (!*text || strchr(text, '`')) {
        add_md(out, text);
        return;
    }
    co_str_add(out, "`");
    for (const char *at = text; *at;) {
        uint32_t code;
        at += take(at, &code);
        if (code == '|')
            co_str_add(out, "\\");
        add_code_point(out, code);
    }
    co_str_add(out, "`");
}

/* --- the whole ---------------------------------------------------------------------------------------- */
static const char style[] =
    ":root { color-scheme: light dark; --page: #ffffff; --text: #24292f; --pale: #57606a; --line: #d0d7de;\n"
    "  --box: #f6f8fa; --link: #0969da; --bad: #cf222e; }\n"
    "@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --text: #e6edf3; --pale: #9da7b3;\n"
    "  --line: #30363d; --box: #161b22; --link: #58a6ff; --bad: #ff7b72; } }\n"
    "body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }\n"
    "main { max-width: 1120px; margin: 0 auto; padding: 24px 16px 48px; }\n"
    "h1 { font-size: 1.7em; line-height: 1.25; margin: 0 0 0.5em; overflow-wrap: anywhere; }\n"
    "h2 { font-size: 1.25em; margin: 1.8em 0 0.6em; padding-bottom: 0.25em; border-bottom: 1px solid "
    "var(--line); }\n"
    "p { margin: 0.6em 0; overflow-wrap: anywhere; }\n"
    "a { color: var(--link); }\n"
    ".table { overflow-x: auto; margin: 0.8em 0; }\n"
    "table { border-collapse: collapse; font-size: 0.875em; font-variant-numeric: tabular-nums; }\n"
    "th, td { padding: 5px 7px; border: 1px solid var(--line); text-align: left; vertical-align: top; }\n"
    "th { background: var(--box); font-weight: 600; }\n"
    "td.r, th.r { text-align: right; white-space: nowrap; }\n"
    "td.short { white-space: nowrap; }\n"
    "code, pre { font: 0.875em/1.45 ui-monospace, monospace; }\n"
    "td code { overflow-wrap: anywhere; }\n"
    "pre { background: var(--box); border: 1px solid var(--line); padding: 12px; overflow-x: auto; }\n"
    "ul { padding-left: 1.4em; } li { overflow-wrap: anywhere; }\n"
    ".plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 440px), 1fr)); gap: "
    "16px; }\n"
    ".plots svg { width: 100%; height: auto; border: 1px solid var(--line); border-radius: 6px; }\n"
    ".note, .bad { border-left: 4px solid var(--link); background: var(--box); padding: 8px 14px; margin: "
    "1em 0;\n"
    "  overflow-wrap: anywhere; }\n"
    ".bad { border-color: var(--bad); }\n"
    "@media (max-width: 640px) { body { font-size: 15px; } th, td { padding: 4px 7px; } }\n"
    "@media print { pre { white-space: pre-wrap; } .plots svg { break-inside: avoid; } }\n";

void page_begin(page *p, const char *title)
{
    co_str_add(&p->md, "# ");
    add_md(&p->md, title);
    co_str_add(&p->md, "\n\n");
    co_str_add(&p->html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    add_html(&p->html, title);
    co_str_addf(&p->html, "</title>\n<style>\n%s", style);
    co_plot_style(&p->html);
    co_str_add(&p->html, "</style>\n</head>\n<body>\n<main>\n<h1>");
    add_html(&p->html, title);
    co_str_add(&p->html, "</h1>\n");
}

static void leave_plots(page *p)
{
    if (p->in_plots)
        co_str_add(&p->html, "</div>\n");
    p->in_plots = false;
}

void page_end(page *p)
{
    leave_plots(p);
    co_str_add(&p->html, "</main>\n</body>\n</html>\n");
}

co_err page_err(const page *p)
{
    co_err err = co_str_err(&p->md);

    for (int i = 0; i < p->plots && !err; i++)
        err = co_str_err(&p->plot[i].svg);
    return err ? err : co_str_err(&p->html);
}

void page_fini(page *p)
{
    co_str_fini(&p->md);
    co_str_fini(&p->html);
    co_str_fini(&p->cells);
    for (int i = 0; i < p->plots; i++)
        co_str_fini(&p->plot[i].svg);
}

/* --- blocks ------------------------------------------------------------------------------------------- */
/* The text in both forms, between what stands around it. */
static void add_block(page *p, const char *md, const char *md_end, const char *html, const char *html_end,
                      const char *text)
{
    leave_plots(p);
    co_str_add(&p->md, md);
    add_md(&p->md, text);
    co_str_add(&p->md, md_end);
    co_str_add(&p->html, html);
    add_html(&p->html, text);
    co_str_add(&p->html, html_end);
}

void page_heading(page *p, const char *text)
{
    add_block(p, "## ", "\n\n", "<h2>", "</h2>\n", text);
}

void page_text(page *p, const char *fmt, ...)
{
    char text[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    add_block(p, "", "\n\n", "<p>", "</p>\n", text);
}

void page_note(page *p, const char *kind, const char *text)
{
    char open[64];

    snprintf(open, sizeof open, "<div class=\"%s\">", kind);
    add_block(p, "> ", "\n\n", open, "</div>\n", text);
}

void page_item(page *p, const char *text)
{
    size_t n = p->html.len;
    bool goes_on = n > 6 && strcmp(co_str_text(&p->html) + n - 6, "</li>\n") == 0;

    add_block(p, "- ", "\n", goes_on ? "<li>" : "<ul>\n<li>", "</li>\n", text);
}

void page_items_end(page *p)
{
    co_str_add(&p->md, "\n");
    co_str_add(&p->html, "</ul>\n");
}

void page_link_item(page *p, const char *href, const char *text, const char *more)
{
    size_t n = p->html.len;
    bool goes_on = n > 6 && strcmp(co_str_text(&p->html) + n - 6, "</li>\n") == 0;

    co_str_add(&p->md, "- [");
    add_md(&p->md, text);
    co_str_add(&p->md, "](");
    add_href(&p->md, href);
    co_str_add(&p->md, "): ");
    add_md(&p->md, more);
    co_str_add(&p->md, "\n");
    co_str_add(&p->html, goes_on ? "<li><a href=\"" : "<ul>\n<li><a href=\"");
    add_href(&p->html, href);
    co_str_add(&p->html, "\">");
    add_html(&p->html, text);
    co_str_add(&p->html, "</a>: ");
    add_html(&p->html, more);
    co_str_add(&p->html, "</li>\n");
}

/* Line by line: newlines stay, all else that cannot be shown is replaced. */
static void add_lines(co_str *out, const char *text, bool html)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        char *line = co_sprintf("%.*s", (int)n, text);
        for (const char *at = line ? line : ""; *at && !html;) {
            uint32_t code;
            at += take(at, &code);
            add_code_point(out, code);
        }
        if (html)
            add_html(out, line ? line : "");
        out->failed |= !line;
        co_free(line);
        co_str_add(out, "\n");
        text += n + (text[n] == '\n');
    }
}

void page_code(page *p, const char *text)
{
    size_t longest = 2, run = 0; /* the fence is longer than any row of backticks inside */

    for (const char *at = text; *at; at++) {
        run = *at == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    leave_plots(p);
    for (size_t i = 0; i <= longest; i++)
        co_str_add(&p->md, "`");
    co_str_add(&p->md, "\n");
    add_lines(&p->md, text, false);
    for (size_t i = 0; i <= longest; i++)
        co_str_add(&p->md, "`");
    co_str_add(&p->md, "\n\n");
    co_str_add(&p->html, "<pre>");
    add_lines(&p->html, text, true);
    co_str_add(&p->html, "</pre>\n");
}

/* --- tables ------------------------------------------------------------------------------------------- */
/* The same text for a terminal, without what could change it. */
static void add_plain(page *p, const char *text)
{
    char clean[256];

    if (!p->plain)
        return;
    co_utf8_clean(clean, sizeof clean, text);
    for (char *at = clean; *at; at++)
        *at = *at == '\n' || *at == '\t' ? ' ' : *at;
    co_str_addn(&p->cells, clean, strlen(clean) + 1);
}

void page_table(page *p, const char *const *head, const char *align)
{
    leave_plots(p);
    p->columns = (int)strlen(align);
    p->column = 0;
    p->align = align;
    co_str_add(&p->html, "<div class=\"table\"><table>\n<tr>");
    for (int i = 0; i < p->columns; i++) {
        co_str_add(&p->md, "| ");
        add_md(&p->md, head[i]);
        co_str_add(&p->md, " ");
        co_str_add(&p->html, align[i] == 'r' ? "<th class=\"r\">" : "<th>");
        add_html(&p->html, head[i]);
        co_str_add(&p->html, "</th>");
        add_plain(p, head[i]);
    }
    co_str_add(&p->html, "</tr>\n");
    co_str_add(&p->md, "|\n");
    for (int i = 0; i < p->columns; i++)
        co_str_add(&p->md, align[i] == 'r' ? "|---:" : "|---");
    co_str_add(&p->md, "|\n");
}

static void begin_cell(page *p, bool is_short)
{
    bool right = p->align[p->column] == 'r';

    co_str_add(&p->md, "| ");
    co_str_addf(&p->html, "%s<td%s>", p->column == 0 ? "<tr>" : "",
                right      ? " class=\"r\""
                : is_short ? " class=\"short\""
                           : "");
}

static void end_cell(page *p, const char *text)
{
    add_plain(p, text);
    p->column = (p->column + 1) % p->columns;
    co_str_add(&p->md, p->column == 0 ? " |\n" : " ");
    co_str_add(&p->html, p->column == 0 ? "</td></tr>\n" : "</td>");
}

void page_cell(page *p, const char *text)
{
    begin_cell(p, strlen(text) < 24);
    add_md(&p->md, text);
    add_html(&p->html, text);
    end_cell(p, text);
}

void page_cellf(page *p, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    page_cell(p, text);
}

void page_cell_code(page *p, const char *text)
{
    begin_cell(p, strlen(text) < 24);
    add_md_code(&p->md, text);
    co_str_add(&p->html, "<code>");
    add_html(&p->html, text);
    co_str_add(&p->html, "</code>");
    end_cell(p, text);
}

void page_cell_book(page *p, const char *book, const char *text)
{
    begin_cell(p, strlen(text) < 40);
    co_str_add(&p->md, "[");
    add_md(&p->md, text);
    co_str_add(&p->md, "](");
    add_href(&p->md, book);
    co_str_add(&p->md, ".md)");
    co_str_add(&p->html, "<a href=\"");
    add_href(&p->html, book);
    co_str_add(&p->html, ".html\">");
    add_html(&p->html, text);
    co_str_add(&p->html, "</a>");
    end_cell(p, text);
}

/* --- tables of a terminal --- */
static size_t columns_of(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static void end_line(co_str *out)
{
    while (out->len && out->p[out->len - 1] == ' ')
        out->p[--out->len] = '\0';
    co_str_add(out, "\n");
}

/* The cells as lines, each column as wide as its widest cell. */
static void print_plain(page *p)
{
    size_t width[32] = {0};
    const char *at = co_str_text(&p->cells), *end = at + p->cells.len;

    for (int k = 0; at < end; at += strlen(at) + 1, k = (k + 1) % p->columns) {
        size_t n = columns_of(at);
        width[k] = n > width[k] ? n : width[k];
    }
    at = co_str_text(&p->cells);
    for (int k = 0; at < end; at += strlen(at) + 1, k = (k + 1) % p->columns) {
        int pad = (int)(width[k] - columns_of(at));
        bool last = k + 1 == p->columns;
        co_str_addf(p->plain, "%*s%s%*s%s", p->align[k] == 'r' ? pad : 0, "", at,
                    p->align[k] == 'r' || last ? 0 : pad, "", last ? "" : "  ");
        if (last)
            end_line(p->plain);
    }
}

void page_table_end(page *p)
{
    if (p->plain && p->columns <= 32)
        print_plain(p);
    co_str_clear(&p->cells);
    co_str_add(&p->md, "\n");
    co_str_add(&p->html, "</table></div>\n");
}

/* --- plots -------------------------------------------------------------------------------------------- */
/* The place for a plot's own file; NULL: there are too many. */
static co_str *begin_plot(page *p, const char *name, const char *title)
{
    if (p->plots == PAGE_PLOTS)
        return NULL;
    snprintf(p->plot[p->plots].name, sizeof p->plot[0].name, "%s", name);
    if (!p->in_plots)
        co_str_add(&p->html, "<div class=\"plots\">\n");
    p->in_plots = true;
    co_str_add(&p->md, "![");
    add_md(&p->md, title);
    co_str_addf(&p->md, "](plots/%s.svg)\n\n", name);
    return &p->plot[p->plots++].svg;
}

void page_plot(page *p, const char *name, const co_plot *plot)
{
    co_plot own = *plot;
    co_str *file = begin_plot(p, name, plot->title);

    if (!file)
        return;
    own.width = PAGE_PLOT_WIDTH;
    own.height = PAGE_PLOT_HEIGHT;
    co_plot_svg(file, &own);
    own.part = name;
    co_plot_svg(&p->html, &own);
}

void page_bars(page *p, const char *name, const co_plot_bars *bars)
{
    co_plot_bars own = *bars;
    co_str *file = begin_plot(p, name, bars->title);

    if (!file)
        return;
    own.width = PAGE_PLOT_WIDTH;
    co_plot_bars_svg(file, &own);
    own.part = name;
    co_plot_bars_svg(&p->html, &own);
}

/* --- files -------------------------------------------------------------------------------------------- */
static co_err write_file(const char *dir, const char *name, const char *ending, const co_str *text)
{
    char *path = co_sprintf("%s/%s%s", dir, name, ending);
    co_err err = path ? co_fs_write_lightly(path, co_str_text(text), text->len) : CO_ENOMEM;

    co_free(path);
    return err;
}

co_err page_write(const page *p, const char *dir, const char *name)
{
    char *plots = co_sprintf("%s/plots", dir);
    co_err err = plots ? page_err(p) : CO_ENOMEM;

    if (!err && p->plots && mkdir(plots, 0777) != 0 && errno != EEXIST)
        err = co_fail(CO_EIO, "mkdir %s: %m", plots);
    for (int i = 0; i < p->plots && !err; i++)
        err = write_file(plots, p->plot[i].name, ".svg", &p->plot[i].svg);
    if (!err)
        err = write_file(dir, name, ".md", &p->md);
    if (!err)
        err = write_file(dir, name, ".html", &p->html);
    co_free(plots);
    return err;
}
