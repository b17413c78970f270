/* loggers_int.h -- the keys logger.*, between app.c and loggers.c. */
#ifndef CO_CLI_LOGGERS_INT_H
#define CO_CLI_LOGGERS_INT_H

#include "cli/cli_int.h"

size_t logger_core_size(void); /* of the struct that the core keys of all tables fill */
/* The tables of logger.*; returns how many. */
int logger_tables(co_conf_table *tables, int most);
/* Counts the chosen trackers and their memory for the plan, and checks their settings. */
co_err logger_check(app *a);

#endif
