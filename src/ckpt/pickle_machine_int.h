/* pickle_machine_int.h -- the state of the pickle reader, and what its opcodes are made of. */
#ifndef CO_CKPT_PICKLE_MACHINE_INT_H
#define CO_CKPT_PICKLE_MACHINE_INT_H

#include "ckpt/pickle_int.h"

/* An array of pointers or numbers that grows. */
typedef struct pickle_stack {
    void **at;
    size_t n, room;
} pickle_stack;

typedef struct pickle_machine {
    const uint8_t *at, *end;
    const uint8_t *begin;
    co_pool *pool;
    pickle_stack values, memo;
    pickle_stack marks; /* how many values there were below each mark, as pointers */
    const char *what;
    bool drop_objects, stopped;
} pickle_machine;

typedef co_err pickle_op(pickle_machine *m);
/* Each puts its opcodes into the table. */
void pickle_ops_plain(pickle_op *ops[256]);
void pickle_ops_collections(pickle_op *ops[256]);
void pickle_ops_calls(pickle_op *ops[256]);

/* pickle_machine.c, which says what each does */
co_err pickle_damaged(const pickle_machine *m, const char *why);
co_err pickle_grow(pickle_stack *s, void *value);
co_err pickle_take(pickle_machine *m, const uint8_t **out, size_t n);
co_err pickle_take_number(pickle_machine *m, uint64_t *out, int bytes);
co_err pickle_take_line(pickle_machine *m, const char **out);
co_err pickle_push(pickle_machine *m, const pickle_value *value);
co_err pickle_need(const pickle_machine *m, size_t n);
pickle_value *pickle_top(const pickle_machine *m, size_t below);
co_err pickle_pop_mark(pickle_machine *m, pickle_value ***out, size_t *n);
co_err pickle_add(pickle_machine *m, pickle_value *to, pickle_value *const *item, size_t n);

#endif
