/* completion.c -- `cohort completion bash|zsh`: prints the shell functions that call `cohort complete` and
 * offer its output. In a program that uses cohort as a library, they carry that program's name. */
#include "cli/cli_int.h"

#include <stdio.h>
#include <string.h>

#include "base/program.h"

static const char bash_lines[] =
    "# Completion of %1$s for bash: source it, or put it where bash-completion looks.\n"
    "_%1$s() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} cur strip=\n"
    "    local -a words=() found=()\n"
    "    cur=${line##*[[:space:]]}\n"
    "    read -ra words <<<\"${line%%\"$cur\"}\"\n"
    "    mapfile -t found < <(\"${words[0]/#\\~\\//$HOME/}\" complete -- \"${words[@]:1}\" \"$cur\" "
    "2>/dev/null)\n"
    "    # Readline breaks words at = and :, and wants what comes after.\n"
    "    [[ $cur == *[=:]* && $COMP_WORDBREAKS == *=* ]] && strip=${cur%%\"${cur##*[=:]}\"}\n"
    "    if [[ ${found[0]-} == '<files>' ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"${cur#*=}\")\n"
    "        return\n"
    "    fi\n"
    "    COMPREPLY=(\"${found[@]#\"$strip\"}\")\n"
    "    [[ ${#found[@]} == 1 && ${found[0]} == *[=.] ]] && compopt -o nospace 2>/dev/null\n"
    "    return 0\n"
    "}\n"
    "complete -F _%1$s %1$s\n";

static const char zsh_lines[] =
    "#compdef %1$s\n"
    "# Completion of %1$s for zsh: put it into a folder of $fpath as _%1$s.\n"
    "_%1$s() {\n"
    "    local -a found open closed\n"
    "    found=(\"${(@f)$(${~words[1]} complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
    "    if [[ $found[1] == '<files>' ]]; then\n"
    "        compset -P '*='\n"
    "        _files\n"
    "        return\n"
    "    fi\n"
    "    open=(${(M)found:#*[=.]})\n"
    "    closed=(${found:#*[=.]})\n"
    "    compadd -S '' -a open\n"
    "    compadd -a closed\n"
    "}\n"
    "if [[ $funcstack[1] == _%1$s ]]; then _%1$s \"$@\"; else compdef _%1$s %1$s; fi\n";

int cmd_completion(int argc, char **argv)
{
    line l;

    if (line_parse(&l, argc, argv, false, NULL) != CO_OK)
        return co_say_error(CO_EINPUT);
    const char *shell = l.n == 1 ? l.words[0] : "";
    int status = CO_EXIT_DONE;
    if (l.help)
        show_usage("completion");
    else if (strcmp(shell, "bash") == 0)
        printf(bash_lines, co_program_name());
    else if (strcmp(shell, "zsh") == 0)
        printf(zsh_lines, co_program_name());
    else {
        co_notice("completion takes a shell: bash or zsh");
        status = CO_EXIT_USAGE;
    }
    line_free(&l);
    return status;
}
