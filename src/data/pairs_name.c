/* pairs_name.c -- which languages the columns of a tab-separated file hold, as its name tells them.
 *
 *     tatoeba.en-it.tsv   en-it.tsv.gz   opus_en-it_2023.txt   Books.it_en.tab
 *
 * Two words side by side, joined by '-' or '_', name the languages of columns 1 and 2. A word is a language if
 * it is a code of ISO 639-1, or if it is a language that the user asks for. Of several such pairs in a name,
 * the one that the user asks for counts, or else the first. If the name of the file tells nothing, that of its
 * folder may tell the two languages asked for.
 */
#include "data/pairs_int.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char iso_639_1[] = " aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch "
                                "co cr cs cu cv cy da de dv dz"
                                " ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr "
                                "ht hu hy hz ia id ie ig ii ik"
                                " io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li "
                                "ln lo lt lu lv mg mh mi mk ml"
                                " mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps "
                                "pt qu rm rn ro ru rw sa sc sd"
                                " se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr "
                                "ts tt tw ty ug uk ur uz ve vi"
                                " vo wa wo xh yi yo za zh zu ";

/* zh is zh_cn as well, but zh_tw is not: what follows '-' or '_' is a region. */
static bool is_lang(const char *word, const char *lang)
{
    return strcasecmp(word, lang) == 0 ||
           (strlen(word) == strcspn(lang, "-_") && strncasecmp(word, lang, strlen(word)) == 0);
}

static bool is_any_lang(const char *word, const pair_ask *ask)
{
    char code[8];

    if (is_lang(word, ask->lang[0]) || is_lang(word, ask->lang[1]))
        return true;
    snprintf(code, sizeof code, " %c%c ", tolower((unsigned char)word[0]),
             word[0] ? tolower((unsigned char)word[1]) : ' ');
    return strlen(word) == 2 && strstr(iso_639_1, code);
}

/* Cuts the next word of letters and digits from *at. Returns the character before it; 0: it is the first one. */
static char next_word(char word[PAIRS_LANG], const char **at, const char *end, const char *start)
{
    size_t n = 0;

    while (*at < end && !isalnum((unsigned char)**at))
        (*at)++;
    char before = *at > start ? (*at)[-1] : 0;
    for (; *at < end && isalnum((unsigned char)**at); (*at)++)
        if (n + 1 < PAIRS_LANG)
            word[n++] = **at;
    word[n] = 0;
    return before;
}

/* zh becomes zh_cn if that is asked for, and its region is what stands next in the name. */
static void add_region(char word[PAIRS_LANG], const char **at, const char *end, const pair_ask *ask)
{
    for (int s = 0; s < 2; s++) {
        const char *lang = ask->lang[s];
        size_t base = strcspn(lang, "-_"), region = strlen(lang + base); /* with its '-' or '_' */
        if (region < 2 || base + region >= PAIRS_LANG || !is_lang(word, lang) || (size_t)(end - *at) < region)
            continue;
        const char *after = *at + region;
        if ((**at != '-' && **at != '_') || strncasecmp(*at + 1, lang + base + 1, region - 1) != 0 ||
            (after < end && isalnum((unsigned char)*after)))
            continue;
        memcpy(word, lang, base + region + 1);
        *at = after;
        return;
    }
}

static bool asks_for(const pair_ask *ask, char named[2][PAIRS_LANG])
{
    return (is_lang(named[0], ask->lang[0]) && is_lang(named[1], ask->lang[1])) ||
           (is_lang(named[0], ask->lang[1]) && is_lang(named[1], ask->lang[0]));
}

/* Looks for two languages in the `len` characters of `name`. True: they are those asked for. */
static bool look_in(pair_ask *ask, const char *name, size_t len)
{
    char last[PAIRS_LANG] = "", word[PAIRS_LANG];
    const char *end = name + len;

    for (const char *at = name; at < end;) {
        char before = next_word(word, &at, end, name);
        add_region(word, &at, end, ask);
        char named[2][PAIRS_LANG];
        memcpy(named[0], last, PAIRS_LANG);
        memcpy(named[1], word, PAIRS_LANG);
        memcpy(last, word, PAIRS_LANG);
        if ((before != '-' && before != '_') || !is_any_lang(named[0], ask) || !is_any_lang(named[1], ask) ||
            strcasecmp(named[0], named[1]) == 0)
            continue;
        bool asked = asks_for(ask, named);
        if (asked || !ask->named[0][0])
            memcpy(ask->named, named, sizeof named);
        if (asked)
            return true;
    }
    return false;
}

void pairs_name(pair_ask *ask, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *folder = slash;

    memset(ask->named, 0, sizeof ask->named);
    look_in(ask, name, strlen(name));
    if (ask->named[0][0] || !slash)
        return;
    while (folder > path && folder[-1] != '/')
        folder--;
    if (!look_in(ask, folder, (size_t)(slash - folder)))
        memset(ask->named, 0, sizeof ask->named);
}

/* Which of the name's two languages is the side's; -1: neither. */
static int place_of(const pair_ask *ask, int side)
{
    return is_lang(ask->named[0], ask->lang[side]) ? 0 : is_lang(ask->named[1], ask->lang[side]) ? 1 : -1;
}

co_err pairs_name_columns(const csv *table, const pair_ask *ask, int column[2])
{
    for (int s = 0; s < 2 && ask->named[0][0]; s++) {
        column[s] = place_of(ask, s);
        if (column[s] < 0 || (s == 1 && column[1] == column[0])) /* both: zh_cn and zh_tw of en-zh */
            return csv_fail(
                table,
                "data.lang_%s=%s, but the file's name says that it holds %s and %s. Ask for these two"
                " (data.lang_src=%s data.lang_tgt=%s), name another file, or say which column is"
                " which (data.column_src=1 data.column_tgt=2)",
                s == 0 ? "src" : "tgt", ask->lang[s], ask->named[0], ask->named[1], ask->named[0],
                ask->named[1]);
    }
    return CO_OK;
}
