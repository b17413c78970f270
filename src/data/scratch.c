/* scratch.c -- a thread's working memory for pictures: a few buffers that only grow, and go when the thread
 * does. */
#include "data/transform_int.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { ALIGN = 64 };

struct buffers {
    struct {
        char *memory;
        size_t len;
    } slot[SCRATCH_SLOTS];
};

static _Thread_local struct buffers mine;
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void give_back(void *buffers)
{
    struct buffers *b = buffers;

    for (int i = 0; i < SCRATCH_SLOTS; i++) {
        co_free(b->slot[i].memory);
        b->slot[i].memory = NULL;
        b->slot[i].len = 0;
    }
}

static void make_key(void)
{
    int failed = pthread_key_create(&at_exit, give_back);

    CO_ASSERT(!failed, "a key for the thread's scratch memory");
}

static void grow(scratch_slot slot, size_t len)
{
    size_t room = len + len / 4 + ALIGN;
    char *memory;

    pthread_once(&once, make_key);
    co_free(mine.slot[slot].memory);
    mine.slot[slot].memory = memory = co_alloc(room);
    CO_ASSERT(memory, "memory for a picture");
    mine.slot[slot].len = room - ALIGN;
    pthread_setspecific(at_exit, &mine);
}

void *scratch_get(scratch_slot slot, size_t len)
{
    if (!mine.slot[slot].memory || mine.slot[slot].len < len)
        grow(slot, len);
    char *memory = mine.slot[slot].memory;
    return memory + (ALIGN - (uintptr_t)memory % ALIGN) % ALIGN;
}
