/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connected queue pairs at a port's network link: what the link and the daemon call in
 * hca/transport/wire.c. Receiving: under the port's receive lock, in its receiver's turn.
 * Finishing: likewise, or without the turn before it sleeps. Ticking: by the daemon's one thread,
 * also while a process has the turn.
 */
#ifndef HCA_WIRES_H
#define HCA_WIRES_H

#include <stdbool.h>
#include <stdint.h>

struct hca_roce;
struct wire_roce_packet;

/* A packet of RC or UC has come, or a CNP. */
void hca_wires_receive(struct hca_roce *port, const struct wire_roce_packet *packet);

/* The batch is done: sends acknowledgements and responses that are due. @later: acknowledgements
 * may wait for a reply, as the caller will poll again. Whether some are left. */
bool hca_wires_finish(struct hca_roce *port, bool later);

/* The daemon looks at the queue pair with this index, for which a time may be over. False: there is
 * nothing that it waits for. */
bool hca_wires_tick(struct hca_roce *port, uint32_t index, uint64_t now);

void hca_wires_free(struct hca_roce *port);

#endif
