/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread's knowledge of the connected queue pairs whose packets it receives: at an Ethernet
 * port's network link, or, in the daemon, of packets that make the detour (hca/link/detour.h). The
 * functions are those of hca/transport/packet_receiver.c that links and the daemon call. Receiving:
 * under the port's receive lock, in its receiver's turn. Finishing: likewise, or without the turn
 * before it sleeps. Ticking: by the daemon's one thread, also while a process has the turn.
 */
#ifndef HCA_PACKET_RECEIVER_H
#define HCA_PACKET_RECEIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/hash.h"

struct hca_process;
struct hca_sender;
struct wire_roce_packet;

TAILQ_HEAD(hca_wire_list, hca_wire);
TAILQ_HEAD(hca_wire_ahead_list, hca_wire_copy);

struct hca_wires {
	struct hca_process *process;
	struct hca_sender *sender;        /* by which their answers leave */
	uint32_t port;                    /* index: where packets come in */
	uint32_t from;                    /* index: where they were sent, if they make the detour */
	struct base_hash all;             /* struct hca_wire, by queue pair number */
	size_t sweep_at;                  /* so many, and those that are closed are forgotten */
	struct hca_wire_list known;       /* the same, in the order in which they are looked at */
	struct hca_wire_list due;         /* of these, those that have something to send */
	struct hca_wire_ahead_list ahead; /* packets behind a gap, of all: the oldest first */
	unsigned n_ahead;
	/* So often another worker had the lock. The daemon counts anew each turn. */
	unsigned barred;
};

void hca_wires_init(struct hca_wires *wires, struct hca_process *p, struct hca_sender *sender,
                    uint32_t port);
void hca_wires_fini(struct hca_wires *wires);

/*
 * @n packets of RC or UC have come, or a CNP; up to HCA_WIRES_RUN_MOST that continue each other
 * (hca_wires_continue()), which are worked on as if they were one. Whether they were for a queue
 * pair that there is.
 */
#define HCA_WIRES_RUN_MOST 64
bool hca_wires_receive(struct hca_wires *wires, const struct wire_roce_packet *packets, unsigned n);

/* Whether @packet goes on, right behind @before, with one message. */
bool hca_wires_continue(const struct wire_roce_packet *before,
                        const struct wire_roce_packet *packet);

/* The batch is done: sends acknowledgements and responses that are due. @later: acknowledgements
 * may wait for a reply, as the caller will poll again. Whether some are left. */
bool hca_wires_finish(struct hca_wires *wires, bool later);

/* The daemon looks at the queue pair with this index, for which a time may be over. False: there is
 * nothing that it waits for. */
bool hca_wires_tick(struct hca_wires *wires, uint32_t index, uint64_t now);

#endif
