/* Plots are checked by what must hold of any: where dots and marks stand, that every text survives, that
 * XML is well formed. */
#include "track/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "harness.h"

static char *terminal_of(const co_plot *p)
{
    co_str s = {0};

    co_plot_terminal(&s, p);
    CHECK_OK(co_str_err(&s));
    return co_str_take(&s);
}

static char *svg_of(const co_plot *p)
{
    co_str s = {0};

    co_plot_svg(&s, p);
    CHECK_OK(co_str_err(&s));
    return co_str_take(&s);
}

/* The n-th line of a text, from 0, in a static buffer. */
static const char *row_of(const char *text, int n)
{
    static char row[1024];

    for (; n > 0 && text; n--) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    CHECK(text, "no such row");
    snprintf(row, sizeof row, "%.*s", (int)strcspn(text, "\n"), text);
    return row;
}

TEST(a_rising_line_goes_from_the_lower_left_to_the_upper_right)
{
    double x[] = {0, 10}, y[] = {0, 5};
    co_plot_line l = {.x = x, .y = y, .n = 2};
    co_plot p = {.line = &l, .lines = 1, .width = 33, .height = 6, .ascii = true};
    char *text = terminal_of(&p);
    int before = -1;

    for (int r = 5; r >= 0; r--) {
        const char *row = row_of(text, r);
        int at = (int)strcspn(row, "*");
        CHECK(row[at] == '*' && at > before, "row %d:\n%s", r, text);
        before = at;
    }
    CHECK(strlen(row_of(text, 0)) == 33, "the last dot is not at the right edge:\n%s", text);
    CHECK(strncmp(row_of(text, 5), "0 +*", 4) == 0, "the first is not at the left edge:\n%s", text);
    CHECK(test_contains(row_of(text, 6), "+-") && test_contains(row_of(text, 7), "10"), "no axis:\n%s", text);
    co_free(text);
}

TEST(a_terminal_plot_keeps_to_its_width_and_marks_the_point)
{
    double x[100], y[100];
    co_plot_line l = {.x = x, .y = y, .n = 100};
    co_plot_mark m = {1e-3, 1, "optim.lr=0.001"};
    co_plot p = {.line = &l, .lines = 1, .mark = &m, .marks = 1, .log_x = true, .width = 60, .height = 10};

    for (int i = 0; i < 100; i++) {
        x[i] = pow(10, -6 + i * 0.06);
        y[i] = 2 + sin(i * 0.1);
    }
    p.title = "title", p.x_label = "rate", p.y_label = "loss";
    char *text = terminal_of(&p), *at = text;
    int dots = 0;
    while (*at) {
        int cells = 0;
        for (; *at != '\n'; cells++) {
            uint32_t code;
            int n = co_utf8_get(&code, at, 4);
            CHECK(n > 0, "not UTF-8:\n%s", text);
            dots += code > 0x2800 && code < 0x2900;
            at += n;
        }
        CHECK(cells <= 60, "%d cells:\n%s", cells, text);
        at++;
    }
    CHECK(dots > 40, "%d cells are drawn:\n%s", dots, text);
    CHECK(test_contains(text, "●") && test_contains(text, "● optim.lr=0.001"), "no mark:\n%s", text);
    CHECK(test_contains(text, "1e-06") && test_contains(text, "0.001"), "no decades:\n%s", text);
    co_free(text);
}

/* Well formed by our own eyes: tags nest, attributes are quoted, no raw & or <, no control characters. */
static void check_xml(const char *svg)
{
    const char *open[32];
    int depth = 0;

    CHECK(co_utf8_valid(svg), "not UTF-8");
    CHECK(strncmp(svg, "<?xml ", 6) == 0, "no head");
    for (const char *at = strstr(svg, "?>") + 2; *at; at++) {
        CHECK((unsigned char)*at >= 0x20 || *at == '\n' || *at == '\t', "a control character");
        if (*at == '&')
            CHECK(at[1] == '#' && strchr(at, ';'), "a bare &: %.20s", at);
        if (*at != '<')
            continue;
        const char *end = strchr(at, '>');
        CHECK(end, "a tag without end");
        int quotes = 0;
        for (const char *q = at + 1; q < end; q++) {
            quotes += *q == '"';
            CHECK(*q != '<', "< inside a tag: %.40s", at);
        }
        CHECK(quotes % 2 == 0, "quotes: %.60s", at);
        if (at[1] == '/') {
            size_t n = (size_t)(end - at - 2);
            CHECK(depth > 0 && strncmp(open[--depth], at + 2, n) == 0, "%.20s closes something else", at);
        } else if (end[-1] != '/') {
            CHECK(depth < 32, "too deep");
            open[depth++] = at + 1;
        }
        at = end;
    }
    CHECK(depth == 0, "%d tags are open", depth);
}

static void parses_elsewhere(const char *svg)
{
    CHECK_OK(co_fs_write_atomic("p.svg", svg, strlen(svg)));
    test_run r =
        test_sh("command -v python3 >/dev/null || exit 0; python3 -c 'import xml.etree.ElementTree as t; "
                "assert t.parse(\"p.svg\").getroot().tag.endswith(\"svg\")'");
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
}

TEST(an_svg_is_well_formed_whatever_the_texts_are)
{
    double x[] = {1, 2, 3, 4}, y[] = {1, NAN, 1e6, 2}, wild[] = {1, 2, INFINITY, -1e18};
    co_plot_line l[] = {{.name = "a<b&c>\"d'", .x = x, .y = y, .n = 4},
                        {"\x01\xFF", x, wild, 4, .faint = true}};
    co_plot_mark m = {3, 1, "]]><!-- \xEF\xBF\xBF"};
    co_plot p = {.title = "na\xC3\xAFve <title>",
                 .x_label = "&amp;",
                 .y_label = "\x1B[31m",
                 .log_y = true,
                 .line = l,
                 .lines = 2,
                 .mark = &m,
                 .marks = 1};
    char *svg = svg_of(&p);

    check_xml(svg);
    parses_elsewhere(svg);
    CHECK(!strstr(svg, "nan") && !strstr(svg, "inf"), "a number that is none:\n%s", svg);
    CHECK(strstr(svg, "prefers-color-scheme: dark") && strstr(svg, "na\xC3\xAFve &#60;title&#62;"), "%s", svg);
    co_free(svg);
}

static void draws(double *x, double *y, size_t n, bool log_)
{
    co_plot_line l = {.x = x, .y = y, .n = n};
    co_plot p = {.line = &l, .lines = 1, .log_x = log_, .log_y = log_};
    char *text = terminal_of(&p), *svg = svg_of(&p);

    check_xml(svg);
    CHECK(!strstr(svg, "nan") && !strstr(svg, "inf") && !strstr(text, "nan"), "%s\n%s", text, svg);
    p.width = p.height = 1; /* too small: as small as it goes */
    co_free(text);
    text = terminal_of(&p);
    co_free(text);
    co_free(svg);
}

TEST(odd_values_are_drawn_or_left_out)
{
    double odd[] = {0,        -0.0,      1,   -1,    1e-320, 1e308,    -1e308,
                    INFINITY, -INFINITY, NAN, 1e300, 1e-300, 123456789};
    size_t n = CO_COUNT(odd);

    draws(NULL, NULL, 0, false);
    draws(NULL, NULL, 0, true);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            double x[] = {odd[i], odd[k]}, y[] = {odd[k], odd[i]};
            for (size_t many = 1; many <= 2; many++) {
                draws(x, y, many, false);
                draws(x, y, many, true);
            }
        }
}

TEST(ticks_are_round_numbers_and_of_a_sensible_count)
{
    static const double ends[][2] = {{0, 1},       {0.013, 2.31}, {-5, 17},
                                     {1e-6, 1e-5}, {100, 100.5},  {2.3, 2.30001}};

    for (size_t i = 0; i < CO_COUNT(ends); i++) {
        double x[] = {ends[i][0], ends[i][1]};
        co_plot_line l = {.x = x, .y = x, .n = 2};
        char *svg = svg_of(&(co_plot){.line = &l, .lines = 1});
        int ticks = 0;
        for (const char *at = svg; (at = strstr(at, "class=\"number\"")); at++)
            ticks++;
        CHECK(ticks >= 6 && ticks <= 24, "%g to %g: %d ticks on both axes\n%s", x[0], x[1], ticks, svg);
        co_free(svg);
    }
}

static co_err draw_both(void *ctx)
{
    double x[] = {1, 2, 3};
    co_plot_line l = {.name = "n", .x = x, .y = x, .n = 3};
    co_plot p = {.title = "t", .line = &l, .lines = 1};
    co_str s = {0};

    (void)ctx;
    co_plot_terminal(&s, &p);
    co_plot_svg(&s, &p);
    co_err err = co_str_err(&s);
    co_str_fini(&s);
    return err;
}

TEST(a_plot_survives_any_allocation_that_fails)
{
    test_each_alloc_fails(draw_both, NULL);
}
