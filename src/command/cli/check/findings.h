/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The output of `umbel check`: its findings. Single-threaded.
 */
#ifndef CLI_FINDINGS_H
#define CLI_FINDINGS_H

#include "check/check.h"

#define CLI_FINDINGS_KEPT 100 /* of a property, in JSON */

struct cli_findings {
	const struct check_net *net;
	const struct check_report *report;
	const char *routing; /* "": unknown */
	const char *levels;  /* where service levels are from */
	unsigned excepted;   /* properties that need not hold, bit by bit */
	bool strict;         /* notes count, too */
	long most;           /* findings of a property that are shown */
	long balance; /* percent of the mean that a link may carry, compared with its kind; 0: any
	               */
};

/* Print it. CLI_OK; CLI_FAILED: something is wrong that counts, or there was no memory. */
int cli_findings_text(const struct cli_findings *f);
int cli_findings_json(const struct cli_findings *f);

#endif
