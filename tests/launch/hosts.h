/* hosts.h -- `cohort launch` on the hosts of a lan (net/ns.h): started, its screen read, the time that it
 * took.
 *
 *     pid_t pid = launch(&lan, 1, token_env(), "--nnodes=2 ... sh -c 'exit 0'");    // its screen is the file out1
 *     fault_ends(__func__, "closed port", began, 10, pid, 1, 1, "nothing listens there");
 *
 * A fault_row is a line of docs/faults.md: build/release/tests -k fault | sed -n 's/^ *# row: //p' prints
 * them all.
 */
#ifndef TESTS_LAUNCH_HOSTS_H
#define TESTS_LAUNCH_HOSTS_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"
#include "net/net.h"
#include "net/ns.h"

pid_t launch(const ns_lan *lan, int i, const char *env, const char *args); /* to out<i> */
pid_t launch_to(const ns_lan *lan, int i, const char *out, const char *env, const char *args);
char *output(int i); /* what out<i> has; kept to the end of the test */
char *output_of(const char *path);

/* "COHORT_TOKEN=...": one that all hosts have; another for each of four seeds. */
const char *token_env(void);
const char *token_of(uint8_t seed);

bool is_file_there(void *path);

/* Two hosts, a worker each, that run: the file began0 has the pid of rank 0. */
void two_running(const ns_lan *lan, pid_t pid[2]);

/* What a fault gave: its status, these words on the screen, all within so many seconds from `began`. */
void fault_row(const char *by, const char *fault, double began, double within, int status, int want,
               const char *text, const char *words);

/* The same of a launcher on host i, which is waited for. */
void fault_ends(const char *by, const char *fault, double began, double within, pid_t pid, int i, int want,
                const char *words);

#endif
