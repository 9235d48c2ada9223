/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reports of tests as CI systems read them: JUnit's XML, one suite. The report is written to its
 * file when it begins, with an error, and again when it ends: so a run that is killed meanwhile has
 * not passed. For run.c. Single-threaded.
 */
#ifndef CLI_JUNIT_H
#define CLI_JUNIT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/queue.h>
#include <time.h>

enum cli_junit_outcome {
	CLI_JUNIT_PASSED,
	CLI_JUNIT_FAILED, /* what is tested is wrong */
	CLI_JUNIT_ERROR,  /* the test could not be made */
};

struct cli_junit {
	FILE *file; /* NULL: nobody wants a report, and nothing here does anything */
	const char *path;
	const char *suite;
	struct timespec begun;
	uint64_t begun_ns;
	TAILQ_HEAD(, cli_junit_property) properties;
	TAILQ_HEAD(, cli_junit_case) cases;
	int error; /* there was no memory for all of it */
};

/* Begins a report to the file @path. Texts that are given to these functions are copied, and may
 * have any bytes. 0, or CLI_FAILED. */
int cli_junit_begin(struct cli_junit *j, const char *path, const char *suite);

void cli_junit_property(struct cli_junit *j, const char *name, const char *value);

/* A case that has taken @ns. @message: what went wrong. */
void cli_junit_case(struct cli_junit *j, const char *class, const char *name, uint64_t ns,
                    enum cli_junit_outcome outcome, const char *message);

/* Writes it, and frees all. 0, or CLI_FAILED. */
int cli_junit_end(struct cli_junit *j);

/*
 * Writes the text as XML has it between quotes, at most @most bytes of it. Bytes that are no UTF-8,
 * and characters that XML has not, become U+FFFD.
 */
void cli_junit_escape(FILE *to, const char *text, size_t most);

#endif
