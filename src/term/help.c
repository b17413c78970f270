/* help.c -- prints help texts, never wider than the terminal, with the name by which the program was called.
 *
 * A line that is too long is broken between words. The rest is indented to the line's last column: to the
 * description in a table of flags, to the first word in a paragraph. If the last column is too narrow, the
 * description moves to lines of its own. What is left over of a paragraph's line goes to the front of the
 * paragraph's next line. A broken example gets the shell's backslash, so that it can still be copied.
 */
#include "term/help.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/program.h"
#include "base/str.h"

enum { WIDTH_ELSEWHERE = 80, WIDTH_LEAST = 40, COLUMN_LEAST = 28, NAME_MOST = 16 };

static int width_of(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return WIDTH_ELSEWHERE;
    return size.ws_col < WIDTH_LEAST ? WIDTH_LEAST : size.ws_col;
}

/* --- the program's name -------------------------------------------------------------------------------- */
/* A long path would fill the text, so it is not used; the plain name is. */
static const char *short_name(void)
{
    return strlen(co_program()) > NAME_MOST ? "cohort" : co_program();
}

/* Texts say "cohort train ..." where the reader may have typed build/cohort. The name is replaced in examples
 * and in backticks, which are for typing; elsewhere "cohort train" is the command's name. Columns stay
 * aligned as long as there are blanks to remove. */
static void name_program(co_str *out, const char *text)
{
    static const char ours[] = "cohort ";
    size_t owed = 0,
           extra = strlen(short_name()) > strlen("cohort") ? strlen(short_name()) - strlen("cohort") : 0;
    bool start = true; /* nothing but blanks since the line began */

    for (const char *at = text; *at; at++) {
        bool typed = start || (at > text && (at[-1] == '`' || at[-1] == '('));
        start = *at == '\n' || (start && *at == ' ');
        if (*at == '\n')
            owed = 0;
        if (typed && strncmp(at, ours, strlen(ours)) == 0 && islower((unsigned char)at[strlen(ours)])) {
            co_str_add(out, short_name());
            at += strlen("cohort") - 1;
            owed += extra;
        } else if (owed && strncmp(at, "   ", 3) == 0)
            owed--;
        else
            co_str_addn(out, at, 1);
    }
}

/* --- breaking lines ------------------------------------------------------------------------------------ */
/* How many bytes of a text of `len` fit into `room`: up to a blank; in a longer word, up to a bar or comma;
 * else all. */
static size_t fitting(const char *text, size_t len, size_t room)
{
    if (len <= room)
        return len;
    for (size_t n = room + 1; n > 0; n--)
        if (text[n - 1] == ' ')
            return n - 1;
    for (size_t n = room; n > 0; n--)
        if (strchr("|,/", text[n - 1]))
            return n;
    return room;
}

/* Prints words from column `at` on. Further lines begin at column `hang`; with `mark`, each broken line ends
 * in a backslash. */
static void put_words(FILE *to, const char *text, size_t len, size_t at, size_t hang, size_t width, bool mark)
{
    while (len > 0) {
        size_t room = width > at + 8 ? width - at : 8;
        size_t n = fitting(text, len, len > room && mark ? room - 2 : room);
        fprintf(to, "%.*s%s\n", (int)n, text, n < len && mark ? " \\" : "");
        while (n < len && text[n] == ' ')
            n++;
        text += n;
        len -= n;
        if (len > 0)
            fprintf(to, "%*s", (int)hang, "");
        at = hang;
    }
}

/* Where the last column begins: after the last two blanks in a row. If the line has only one column, its
 * indentation. */
static size_t last_column(const char *text, size_t len, size_t indent)
{
    for (size_t i = len; i > indent + 2; i--)
        if (text[i - 1] != ' ' && text[i - 2] == ' ' && text[i - 3] == ' ')
            return i - 1;
    return indent;
}

static bool is_example(const char *text)
{
    size_t n = strlen(short_name());

    return strncmp(text, short_name(), n) == 0 && text[n] == ' ';
}

static void put_line(FILE *to, const char *text, size_t len, size_t width)
{
    size_t indent = strspn(text, " "), column = last_column(text, len, indent), head = column;

    if (len <= width) {
        fprintf(to, "%.*s\n", (int)len, text);
        return;
    }
    while (head > indent && text[head - 1] == ' ')
        head--;
    fprintf(to, "%*s", (int)indent, "");
    if (column == indent) {
        bool example = is_example(text + indent);
        put_words(to, text + indent, len - indent, indent, example ? indent + 4 : indent, width, example);
        return;
    }
    if (column + COLUMN_LEAST <= width && !is_example(text + indent)) {
        fprintf(to, "%.*s", (int)(column - indent), text + indent);
        put_words(to, text + column, len - column, column, column, width, false);
        return;
    }
    put_words(to, text + indent, head - indent, indent, indent + 4, width, is_example(text + indent));
    fprintf(to, "%*s", (int)indent + 6, "");
    put_words(to, text + column, len - column, indent + 6, indent + 6, width, false);
}

/* --- paragraphs ---------------------------------------------------------------------------------------- */
/* One column of words: no flag, no example, no row of a table. */
static bool is_prose(const char *text, size_t len)
{
    size_t indent = strspn(text, " ");

    return len > indent && text[indent] != '-' && !is_example(text + indent) &&
           last_column(text, len, indent) == indent;
}

/* Does the text after this line's end go on with the same paragraph? */
static bool goes_on(const char *line, size_t len, const char *next)
{
    return *next == '\n' && is_prose(line, len) && is_prose(next + 1, strcspn(next + 1, "\n")) &&
           strspn(line, " ") == strspn(next + 1, " ");
}

/* Prints what of `line` fills whole lines. The rest stays in it, to be put before the paragraph's next line. */
static void put_full_lines(FILE *to, co_str *line, size_t width)
{
    size_t indent = strspn(co_str_text(line), " ");
    co_str rest = {0};

    while (line->len > width) {
        size_t n = fitting(line->p, line->len, width);
        if (n <= indent)
            break;
        fprintf(to, "%.*s\n", (int)n, line->p);
        co_str_clear(&rest);
        co_str_addn(&rest, line->p, indent);
        co_str_add(&rest, line->p + n + strspn(line->p + n, " "));
        co_str_clear(line);
        co_str_add(line, co_str_text(&rest));
    }
    co_str_fini(&rest);
}

void co_help_print(FILE *to, const char *text)
{
    co_str named = {0}, line = {0};
    size_t width = (size_t)width_of();

    name_program(&named, text);
    for (const char *at = co_str_text(&named); *at;) {
        size_t len = strcspn(at, "\n"), indent = strspn(at, " ");
        if (line.len) {
            co_str_addf(&line, " %.*s", (int)(len - indent), at + indent);
        } else {
            co_str_addn(&line, at, len);
        }
        at += len;
        bool flows = line.len > width && goes_on(co_str_text(&line), line.len, at);
        if (flows)
            put_full_lines(to, &line, width);
        else
            put_line(to, co_str_text(&line), line.len, width);
        if (!flows)
            co_str_clear(&line);
        at += *at == '\n';
    }
    co_str_fini(&line);
    co_str_fini(&named);
}

void co_help_print_list(FILE *to, const char *text)
{
    size_t width = (size_t)width_of();
    co_str named = {0};

    name_program(&named, text);
    for (const char *at = co_str_text(&named); *at;) {
        size_t len = strcspn(at, "\n"), indent = strspn(at, " ");
        fprintf(to, "%*s", (int)indent, "");
        put_words(to, at + indent, len - indent, indent, indent + 4, width, false);
        if (len == indent)
            fputc('\n', to);
        at += len + (at[len] == '\n');
    }
    co_str_fini(&named);
}
