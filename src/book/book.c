/* book.c -- the door for one run: its page as files, as text, as figures. */
#include "book/book_int.h"

#include <string.h>

co_err co_book_write(const char *dir, const char *run_id)
{
    facts f;
    page p = {0};

    CO_TRY(facts_open(&f, dir));
    const char *id = co_json_str(f.header, "run_id");
    bool ours = !run_id || (id && strcmp(id, run_id) == 0);
    co_err err = CO_OK;
    if (ours) {
        run_page(&p, &f);
        err = page_write(&p, dir, "book");
    }
    page_fini(&p);
    facts_close(&f);
    return err;
}

co_err co_book_of_run(const char *dir, co_str *markdown, json_t **figures)
{
    facts f;
    page p = {0};

    CO_TRY(facts_open(&f, dir));
    run_page(&p, &f);
    co_err err = page_write(&p, dir, "book");
    if (!err && markdown)
        co_str_add(markdown, co_str_text(&p.md));
    if (!err && figures)
        *figures = facts_json(&f);
    page_fini(&p);
    facts_close(&f);
    return err;
}
