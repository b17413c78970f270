/* tar.c -- the regular files of a tar archive, one after the other (POSIX ustar, as GNU, BSD and Python write
 * it).
 *
 * An archive is blocks of 512 bytes: a head, the file's bytes padded to whole blocks, the next head; a block
 * of zeros ends it. Folders and links are passed over. A name too long for a head stands before it in blocks
 * of its own: type L has the name (GNU), type x lines "LENGTH path=NAME" (POSIX). Other extra facts are
 * ignored. If one changed a file's size, the next head would not be where it is expected, and its checksum
 * would fail.
 */
#include "data/images_int.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 512, NAME_ROOM = sizeof((tar *)0)->name };

/* Where things stand in a head, as ustar lays it out. */
enum {
    NAME = 0,
    NAME_LEN = 100,
    SIZE = 124,
    SIZE_LEN = 12,
    SUM = 148,
    SUM_LEN = 8,
    TYPE = 156,
    MAGIC = 257,
    PREFIX = 345,
    PREFIX_LEN = 155
};

/* Octal digits with blanks before and a blank or NUL after; false if it is anything else. */
static bool octal(const uint8_t *at, size_t len, uint64_t *out)
{
    size_t i = 0, digits = 0;
    uint64_t x = 0;

    while (i < len && at[i] == ' ')
        i++;
    for (; i < len && at[i] >= '0' && at[i] <= '7'; i++, digits++)
        x = x * 8 + (uint64_t)(at[i] - '0');
    for (; i < len; i++)
        if (at[i] != ' ' && at[i] != 0)
            return false;
    *out = x;
    return digits > 0;
}

static bool all_zero(const uint8_t *block)
{
    for (int i = 0; i < BLOCK; i++)
        if (block[i])
            return false;
    return true;
}

static co_err bad(const tar *t, const char *what)
{
    return co_fail(CO_EINPUT, "%s: %s: is it a tar archive, and the download complete?", packed_path(t->in),
                   what);
}

static co_err need(tar *t, void *to, size_t want)
{
    size_t got;

    CO_TRY(packed_read(t->in, to, want, &got));
    t->at += got;
    return got == want ? CO_OK : bad(t, "it ends in the middle");
}

static co_err skip(tar *t)
{
    CO_TRY(packed_skip(t->in, t->unread));
    t->at += t->unread;
    t->unread = 0;
    return CO_OK;
}

/* To the end of the file, so that its checksum is checked. */
static co_err drain(tar *t)
{
    uint8_t waste[16 * BLOCK];
    size_t got = sizeof waste;

    while (got == sizeof waste)
        CO_TRY(packed_read(t->in, waste, sizeof waste, &got));
    return CO_OK;
}

static co_err take_head(tar *t, const uint8_t *h)
{
    uint64_t sum, have = 0;
    int prefix = h[PREFIX] ? (int)strnlen((const char *)h + PREFIX, PREFIX_LEN) : 0;

    for (int i = 0; i < BLOCK; i++)
        have += i >= SUM && i < SUM + SUM_LEN ? ' ' : h[i];
    if (memcmp(h + MAGIC, "ustar", 5) != 0 || !octal(h + SUM, SUM_LEN, &sum) || sum != have)
        return bad(t, "a head in it is damaged");
    if (!octal(h + SIZE, SIZE_LEN, &t->size))
        return bad(t, "the size of a file in it is not a number");
    snprintf(t->name, sizeof t->name, "%.*s%s%.*s", prefix, (const char *)h + PREFIX, prefix ? "/" : "",
             (int)strnlen((const char *)h + NAME, NAME_LEN), (const char *)h + NAME);
    t->unread = (t->size + BLOCK - 1) / BLOCK * BLOCK;
    return CO_OK;
}

/* The value of `path` in lines "LENGTH KEY=VALUE\n", LENGTH being the whole line's; "" if there is none. */
static void find_path(char name[NAME_ROOM], const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t line = 0, i = at;
        for (; i < len && text[i] >= '0' && text[i] <= '9' && line < NAME_ROOM * 4; i++)
            line = line * 10 + (size_t)(text[i] - '0');
        if (line < i - at + 2 || line > len - at || text[i] != ' ')
            return;
        i++;
        size_t rest = at + line - i;
        if (rest > 6 && memcmp(text + i, "path=", 5) == 0)
            snprintf(name, NAME_ROOM, "%.*s", (int)(rest - 6), text + i + 5);
        at += line;
    }
}

/* The name that follows in a block of type L or x. Long blocks of type x are about other things. */
static co_err take_name(tar *t, uint8_t type, char name[NAME_ROOM])
{
    char text[NAME_ROOM * 4];

    if (t->size >= sizeof text)
        return type == 'x' ? CO_OK : bad(t, "the name of a file in it is too long");
    size_t len = (size_t)t->size;
    CO_TRY(tar_read(t, text));
    text[len] = 0;
    if (type == 'L')
        snprintf(name, NAME_ROOM, "%.*s", NAME_ROOM - 1, text);
    else
        find_path(name, text, len);
    return CO_OK;
}

co_err tar_next(tar *t, bool *is_one)
{
    uint8_t head[BLOCK];
    char name[NAME_ROOM] = "";

    for (;;) {
        CO_TRY(skip(t));
        CO_TRY(need(t, head, BLOCK));
        if (all_zero(head)) {
            *is_one = false;
            return drain(t);
        }
        CO_TRY(take_head(t, head));
        if (head[TYPE] == 'L' || head[TYPE] == 'x')
            CO_TRY(take_name(t, head[TYPE], name));
        else if (head[TYPE] == '0' || head[TYPE] == 0)
            break;
        else if (head[TYPE] != 'g' && head[TYPE] != 'K')
            name[0] = 0; /* it was a folder's or a link's */
    }
    if (name[0])
        memcpy(t->name, name, sizeof name);
    *is_one = true;
    return CO_OK;
}

co_err tar_part(tar *t, void *to, size_t len)
{
    CO_ASSERT(t->unread >= len, "a file is read once");
    CO_TRY(need(t, to, len));
    t->unread -= len;
    return CO_OK;
}

co_err tar_read(tar *t, void *to)
{
    return tar_part(t, to, (size_t)t->size);
}
