/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Collects the senders' counts, for the readers of ports' counters. A look at all flows takes long
 * if there are a million. So it is done in slices, and a reader waits until all is collected that
 * was counted before it asked. Readers that come during a pass through the flows wait for the next
 * pass, which is the same for all of them. Where there are few flows nobody waits.
 *
 * Only the daemon uses this; not thread-safe.
 */
#ifndef FABRIC_COLLECT_H
#define FABRIC_COLLECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct fabric;

/* Work of a slice: a unit is a flow on which nothing was sent, or a port that another one has
 * crossed. Some milliseconds at most. */
#define FABRIC_COLLECT_SLICE 32768

/* A reader that waits. All zero: it does not. */
struct fabric_reader {
	TAILQ_ENTRY(fabric_reader) entry;
	uint64_t pass; /* that it waits for */
	/* Reads the counters. The reader does not wait any more, and may be freed. */
	void (*read)(struct fabric *f, struct fabric_reader *r);
};

/* Adds what senders have counted since the last call to the counters of the ports. */
void fabric_flow_collect(struct fabric *f);

/* The same in slices: each spends some of @budget (FABRIC_COLLECT_SLICE) and goes on at *@at, which
 * is 0 at first. True: that was the last. */
bool fabric_flow_collect_step(struct fabric *f, uint32_t *at, uint32_t *budget);

/* Collects all that is counted, if that does not take long. False: the reader has to wait. */
bool fabric_collect_at_once(struct fabric *f);

/* Has @read called when that is done. */
void fabric_collect_wait(struct fabric *f, struct fabric_reader *r,
                         void (*read)(struct fabric *f, struct fabric_reader *r));

/* A reader that waits does so no longer. */
void fabric_collect_cancel(struct fabric *f, struct fabric_reader *r);

/* Does a slice. */
void fabric_collect_run(struct fabric *f);

/* The loop has come round: there is time again for some who shall not wait. */
void fabric_collect_turn(struct fabric *f);

#endif
