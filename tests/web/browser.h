/* browser.h -- drives a real Chromium through chromedriver (the WebDriver protocol), for tests of pages.
 *
 *     browser *b = browser_open(1280, 900, false);          // skips the test where Chromium is absent
 *     browser_go(b, url);
 *     browser_until(b, "document.querySelector('canvas')", 10, "a chart");
 *     json_t *n = browser_eval(b, "document.querySelectorAll('canvas').length");
 *     browser_drag(b, ".plot", 100, 50, 200, 50);
 *     browser_check_quiet(b);                               // no message in the console
 *     browser_close(b);
 *
 * Every function ends the test if the browser refuses. Texts of scripts are expressions of JavaScript.
 */
#ifndef TESTS_BROWSER_H
#define TESTS_BROWSER_H

#include <jansson.h>
#include <stdbool.h>

typedef struct browser browser;

browser *browser_open(int width, int height, bool dark);
void browser_close(browser *b);
void browser_go(browser *b, const char *url);
json_t *browser_eval(browser *b, const char *script);  /* the caller's */
double browser_number(browser *b, const char *script); /* of an expression that is a number */
char *browser_text(browser *b, const char *script);    /* of one that is a text; free() it */
void browser_until(browser *b, const char *script, double timeout_s, const char *what); /* until it is true */
/* The pointer, from the top left corner of the first element that the selector finds. */
void browser_drag(browser *b, const char *selector, int x0, int y0, int x1, int y1);
void browser_double_click(browser *b, const char *selector, int x, int y);
void browser_check_quiet(browser *b);
void browser_picture(browser *b, const char *path); /* a PNG of the window */

#endif
