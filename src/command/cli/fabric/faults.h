/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules of faults, as `umbel fault` and `umbel run` add them.
 */
#ifndef CLI_FAULTS_H
#define CLI_FAULTS_H

struct control_client;

/* Adds the rule; *@number: its number. 0; or says what is wrong, and returns the exit status. */
int cli_fault_add(struct control_client *client, const char *rule, unsigned *number);

/* Adds the rules in the file @path to a fabric: a line each; blank ones and those that begin with #
 * are none. 0, or CLI_FABRIC_FAILED. */
int cli_faults_read(const char *fabric, const char *path);

/* Tells of each rule how often it has fired. 0, or CLI_FABRIC_FAILED. */
int cli_faults_each(const char *fabric, void (*tell)(void *arg, const char *rule, long fired),
                    void *arg);

#endif
