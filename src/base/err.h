/* err.h -- what went wrong, said once, where the facts are.
 *
 * A function that can fail returns co_err. The code says what the caller may do; the text, kept per thread,
 * says what happened, where, and what to try next. The library never prints and never exits: whoever stops
 * the error prints co_errmsg() once.
 *
 *     int fd = open(path, O_RDONLY | O_CLOEXEC);
 *     if (fd < 0)
 *         return co_fail(CO_EIO, "open %s: %m", path);
 *     co_err err = parse(fd);
 *     if (err)
 *         return co_fail_in(err, "checkpoint %s", path);     // "checkpoint last: header is cut short"
 */
#ifndef CO_BASE_ERR_H
#define CO_BASE_ERR_H

typedef enum {
    CO_OK = 0,
    CO_EINPUT,   /* the user's input is wrong: tell them, start nothing (exit 2) */
    CO_EIO,      /* the outside world refused: disk, file, socket; may work elsewhere or later */
    CO_EFORMAT,  /* bytes are not what they claim to be: use another source */
    CO_ENOMEM,   /* not enough memory for the plan */
    CO_EPEER,    /* a rank or host is gone: re-form without it */
    CO_ETIMEOUT, /* a deadline passed */
    CO_ESTOP,    /* a stop was requested: clean up and leave */
    CO_EFAIL     /* the run itself failed (not finite, blamed, repeated deaths): say why and end */
} co_err;

/* Stores the message for this thread and returns `code`. `%m` is errno's text, as in syslog(3). */
co_err co_fail(co_err code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "context: " in front of the stored message and returns `err`. */
co_err co_fail_in(co_err err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* This thread's last message; "" if none. Valid until its next co_fail. */
const char *co_errmsg(void);
void co_errclear(void);

/* Use it only where the function holds nothing that needs cleanup; otherwise `goto out`. */
#define CO_TRY(expr)                                                                                         \
    do {                                                                                                     \
        co_err co_try_err_ = (expr);                                                                         \
        if (co_try_err_)                                                                                     \
            return co_try_err_;                                                                              \
    } while (0)

/* For our own bugs, never for input. On in release too: prints place and backtrace, aborts. */
#define CO_ASSERT(cond, why) ((cond) ? (void)0 : co_assert_failed(#cond, why, __FILE__, __LINE__))
_Noreturn void co_assert_failed(const char *cond, const char *why, const char *file, int line);

#define CO_COUNT(a) (sizeof(a) / sizeof((a)[0]))

#endif
