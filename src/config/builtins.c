/* builtins.c -- the YAML files of configs/, inside the program (made by the Makefile with tools/embed). */
#include "config/config.h"

const co_conf_builtin co_conf_builtins[] = {
#include "builtins.inc"
    {0}};
