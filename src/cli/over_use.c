/* over_use.c -- what a guest takes of its machine, for the one record. It travels with the lines that
 * guests send anyway: a JSON object {"system": ...} (track/use.h), about 1 KB every two seconds. If lines
 * wait to be sent, it is dropped: the next one is newer. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/over_int.h"

#define SEND_S 2.0

/* Two hosts of one name are told apart by their places. */
void label_host(training *s, const co_roster_view *view)
{
    const co_member *me = &view->member[view->view.deal.me];
    char name[CO_HOST_NAME + 16], number[16] = "";

    for (int h = 0; h < view->view.deal.hosts; h++)
        if (&view->member[h] != me && strcmp(view->member[h].name, me->name) == 0)
            snprintf(number, sizeof number, "-%d", me->id);
    snprintf(name, sizeof name, "%.*s%s", CO_USE_HOST - 1 - (int)strlen(number), me->name, number);
    co_use_host(s->over->label, name);
}

void over_send_use(training *s)
{
    machine *m = &s->machine;
    double now_s = co_now_s();

    if (!s->over->label[0] || m->hosts == 0 || now_s - m->sent_s < SEND_S)
        return;
    m->sent_s = now_s;
    co_use mine = m->host[0]->use;
    snprintf(mine.host, sizeof mine.host, "%s", s->over->label);
    json_t *said = json_pack("{s:o}", "system", co_use_json(&mine));
    char *text = said ? co_json_text(said) : NULL;

    if (text)
        log_line(s, text);
    co_free(text);
    json_decref(said);
}
