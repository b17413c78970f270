/* log.h -- log lines for people. The library itself writes nothing; it hands each line to a sink.
 *
 * The sink may be called from any thread and must not call back into the log. Set it before threads start.
 *
 *     co_log_say(CO_LOG_WARN, "rank %d is %d s behind", rank, late);
 */
#ifndef CO_BASE_LOG_H
#define CO_BASE_LOG_H

typedef enum { CO_LOG_DEBUG, CO_LOG_INFO, CO_LOG_WARN, CO_LOG_ERROR } co_log_level;
typedef void (*co_log_sink)(void *ctx, co_log_level level, const char *text);

void co_log_to(co_log_sink sink, void *ctx, co_log_level least); /* NULL, the initial state: silent */
void co_log_say(co_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
