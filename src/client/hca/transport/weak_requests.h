/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests of connected queue pairs on a weak fabric (base/weak.h). All of them wait in the queue
 * of connected_wait.c, and are carried out in steps, each of which may be late:
 *
 *   gather	a SEND's or WRITE's bytes are read at the sender; a READ's, or an atomic
 *		operation's word, at the receiver
 *   pieces	some of a WRITE's bytes are placed, or some of what a READ has read; an atomic
 *		operation writes its word
 *   place	all of them are, or whatever else is left to do
 *   complete	the completion can be polled
 *
 * What the specification orders stays in order (docs/weak.md has the table): may() is that table. A
 * step is late by so many steps of the queue pair's clock, which goes on with each request that is
 * posted and each completion that is polled. If the program does neither, and polls, the clock goes
 * on by itself after a time; if it calls nothing, the thread of process/weak.h sees to that.
 *
 * Only the queue pair's own process works on such a queue; its peer does not help
 * (hca_connected_is_weak()). With the send lock held. XRC, and connections that are made of
 * packets, are not weak.
 */
#ifndef HCA_WEAK_REQUESTS_H
#define HCA_WEAK_REQUESTS_H

#include "hca/transport/connected.h"

/* The queue pair is connected, or goes on behind SQD: its requests are weak, if they can be. */
void hca_weak_open(struct hca_connected_qp *c);
void hca_weak_close(struct hca_connected_qp *c);

/* Carries out the steps that are due. */
void hca_weak_work_off(struct hca_connected_qp *c);

/* The program polls, or the thread looks: if nothing is due, the clock may go on. */
void hca_weak_let_pass(struct hca_connected_qp *c);

/* The queue pair is in SQD: what was posted before is done, as far as it can be. */
void hca_weak_drain(struct hca_connected_qp *c);

/* A request was flushed. Whether those behind it are later, when the program polls again. */
bool hca_weak_stops_flush(struct hca_connected_qp *c);

/* Whether nothing is carried out just now: all requests are kept. */
bool hca_weak_holds(const struct hca_connected_qp *c);
/* The records of both ends were copied again. */
void hca_weak_renewed(struct hca_connected_qp *c);

#endif
