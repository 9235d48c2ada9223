/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Causes of a completion's status, judged by a queue pair as it stands: for explain_wc.c, whose
 * table names the causes. Single-threaded.
 */
#ifndef CLI_EXPLAIN_CAUSES_H
#define CLI_EXPLAIN_CAUSES_H

#include "cli/explain/explain.h"

enum cli_likely {
	CLI_LIKELY,
	CLI_POSSIBLE, /* nobody can tell from here */
	CLI_NOT_NOW,  /* it is not so; it may have been */
};

struct cli_case {
	struct cli_explain *e;                  /* with what was found about the queue pair */
	struct json_object *qp, *peer, *faults; /* peer: NULL if it is not known */
	unsigned status;
	char text[1024]; /* why it is judged so; may be empty */
};

/* Judges one cause; NULL in place of one: CLI_POSSIBLE. */
typedef enum cli_likely cli_judge(struct cli_case *c);

cli_judge cli_cause_fault; /* a rule makes the status */
/* of a queue pair that nobody answers */
cli_judge cli_cause_peer_gone, cli_cause_peer_state, cli_cause_mismatch, cli_cause_no_way,
        cli_cause_lossy;
/* of one that has no receives */
cli_judge cli_cause_no_receives, cli_cause_not_polled, cli_cause_rnr_settings;
/* of one whose peer refuses */
cli_judge cli_cause_peer_access, cli_cause_peer_reads, cli_cause_many_reads;
/* of requests that are flushed */
cli_judge cli_cause_earlier, cli_cause_disconnected, cli_cause_own_error;
cli_judge cli_cause_never; /* not while the daemon replies */

#endif
