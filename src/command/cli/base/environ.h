/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a program comes to run on a host of a fabric: for `umbel exec` and `umbel run`.
 * Single-threaded.
 */
#ifndef CLI_ENVIRON_H
#define CLI_ENVIRON_H

#include <stdbool.h>

/* Checks that fabric @name is up and, unless @host is NULL, that it has that host.
 * 0, or the exit status after naming the possible hosts. */
int cli_check_host(const char *name, const char *host);

/* Makes the environment one in which a program runs on that host of that fabric, its limit of
 * locked memory included; @host NULL: on all of them. 0 or CLI_FAILED. */
int cli_environ_set(const char *fabric, const char *host);

/* Has a library of ours be loaded first; before cli_environ_set(). 0 or CLI_FAILED. */
int cli_environ_preload(const char *library);

/* If the host has a network of its own, takes this process there: to its namespaces. @must: it is
 * an error if it has none. 0, or the exit status. */
int cli_enter_host(const char *fabric, const char *host, bool must);

/* Whether it has one. */
bool cli_has_network(const char *fabric, const char *host);

/* Becomes the program argv[0] of ours, one beside umbel, in that environment; for a process that is
 * on the host already. Returns only if that fails, after it has said why. */
void cli_exec_own(const char *fabric, const char *host, char **argv);

/* Runs the command in this process; returns only if that fails, the exit status. */
int cli_exec_command(char **argv);

#endif
