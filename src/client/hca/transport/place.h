/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SENDs that are yet to be placed. A short message to memory that the sending thread reaches by
 * system calls only lies in its arrival, or in payload memory, until the receiver polls: that costs
 * neither of them a system call. But requests of a connection take effect in their order. So before
 * one that reads or writes the responder's memory is carried out, the messages that the requester
 * has sent before are placed.
 *
 * The thread that places a SEND takes the arrival first (shm_ring_take()), as the receiver does
 * when it polls. One thread at a time carries out the requests of a queue pair, and calls these.
 */
#ifndef HCA_PLACE_H
#define HCA_PLACE_H

#include "hca/transport/responder.h"

/* A message of the requester's is about to be published at @pos of the responder's ring, and lies
 * unplaced. */
void hca_place_note(struct hca_responder *t, uint32_t pos);

/* Places those that are not placed, but for such at @end or behind it. 0, or HCA_WAITS_FOR_PATH:
 * not now. */
int hca_place_until(struct hca_responder *t, uint32_t end);
/* All that there are. */
int hca_place_sends(struct hca_responder *t);

/* The responder's ring is another one: messages in the old ring are none of ours any more. */
void hca_place_forget(struct hca_responder *t);

#endif
