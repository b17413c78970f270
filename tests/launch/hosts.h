/* hosts.h -- `cohort launch` on the hosts of a lan (net/ns.h): starts it, reads its output, measures its
 * time.
 *
 *     pid_t pid = launch(&lan, 1, token_env(), "--nnodes=2 ... sh -c 'exit 0'");    // prints to out1
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
char *output(int i); /* the text of out<i>; kept until the end of the test */
char *output_of(const char *path);

/* "COHORT_TOKEN=...": one token for all hosts, or one of four different tokens, by seed. */
const char *token_env(void);
const char *token_of(uint8_t seed);

bool is_file_there(void *path);

/* Starts two hosts with a worker each and waits until they run; the file began0 has the pid of rank 0. */
void two_running(const ns_lan *lan, pid_t pid[2]);

/* Checks the outcome of a fault: the exit status, this text in the output, and the time since `began`. */
void fault_row(const char *by, const char *fault, double began, double within, int status, int want,
               const char *text, const char *words);

/* Waits for the launcher on host i, then checks the same. */
void fault_ends(const char *by, const char *fault, double began, double within, pid_t pid, int i, int want,
                const char *words);

#endif
