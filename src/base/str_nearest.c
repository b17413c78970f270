/* str_nearest.c -- guesses which name the user meant.
 *
 * The distance is Damerau-Levenshtein in its restricted form: a letter added, dropped or changed, or two
 * neighbours swapped, costs 1 each; case does not count. Keys are dotted paths and people often remember only
 * the last word. So the last words are compared too, at a small extra cost (costs are counted in halves):
 *
 *     batchsize   -> data.batch_size     last words differ by 1
 *     traner.lr   -> trainer.lr          whole names differ by 1
 *     trainer.lr  -> optim.lr            last words agree, the table was wrong
 *     learning    -> learning_rate       one is the beginning of the other
 *
 * A candidate may differ by one mistake per three letters. Names of more than 127 letters are ignored. Ties
 * go to the first candidate. Cost: candidates times the product of the lengths; nothing is allocated.
 */
#include "base/str.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { MOST = 128 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int lower(char c)
{
    return tolower((unsigned char)c);
}

static int distance(const char *a, const char *b)
{
    int row[3][MOST + 1]; /* rows i-2, i-1, i of the table, in turn */
    int na = (int)strlen(a), nb = (int)strlen(b);

    for (int j = 0; j <= nb; j++)
        row[0][j] = j;
    for (int i = 1; i <= na; i++) {
        int *now = row[i % 3], *one = row[(i + 2) % 3], *two = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= nb; j++) {
            int x = lower(a[i - 1]), y = lower(b[j - 1]);
            now[j] = least(one[j - 1] + (x != y), least(one[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y)
                now[j] = least(now[j], two[j - 2] + 1);
        }
    }
    return row[na % 3][nb];
}

static const char *last_word(const char *s)
{
    const char *dot = strrchr(s, '.');

    return dot ? dot + 1 : s;
}

static bool begins(const char *s, const char *start)
{
    return strncasecmp(s, start, strlen(start)) == 0;
}

/* The result is in halves of an edit. */
static int cost(const char *name, const char *candidate)
{
    const char *word = last_word(candidate), *own = last_word(name);
    int c = 2 * distance(name, candidate);

    if (word != candidate || own != name)
        c = least(c, 2 * distance(own, word) + (own != name ? 2 : 1));
    if (strlen(name) >= 3 && (begins(candidate, name) || begins(word, name)))
        c = least(c, 2);
    return c;
}

const char *co_str_nearest(const char *name, const char *const *candidates, size_t n)
{
    const char *best = NULL;
    int len = (int)strnlen(name, MOST);
    int most = 2 * ((len + 1) / 3 > 1 ? (len + 1) / 3 : 1) + 1;

    if (len == 0 || len >= MOST)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (strnlen(candidates[i], MOST) >= MOST)
            continue;
        int c = cost(name, candidates[i]);
        if (c <= most && c < 2 * len) { /* never suggest a wholly different word */
            best = candidates[i];
            most = c - 1;
        }
    }
    return best;
}
