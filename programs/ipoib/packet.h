/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A packet between the kernel's interface and the link, with the header in which the kernel says
 * what it leaves to a device (struct virtio_net_hdr); and packets that wait, for an address, a path
 * or a group, in queues that are bounded each and together. Not thread-safe.
 */
#ifndef IPOIB_PACKET_H
#define IPOIB_PACKET_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct ipoib_packet {
	struct virtio_net_hdr vnet;
	uint8_t *data;
	uint32_t bytes;
	uint16_t type; /* enum ipoib_type */
};

struct ipoib_held {
	STAILQ_ENTRY(ipoib_held) entry;
	struct ipoib_packet packet; /* its data follows */
	uint32_t qpn;               /* the receiver's, once it is known */
};

/* The bytes that all queues may hold together. */
struct ipoib_budget {
	uint32_t bytes, max_bytes;
};

struct ipoib_queue {
	STAILQ_HEAD(, ipoib_held) held;
	struct ipoib_budget *budget;
	unsigned n;
};

#define IPOIB_QUEUE_MAX 16

void ipoib_queue_init(struct ipoib_queue *q, struct ipoib_budget *budget);

/* Adds a copy. False: the queue is full, or memory is. */
bool ipoib_queue_add(struct ipoib_queue *q, const struct ipoib_packet *p, uint32_t qpn);

/* The first packet, which ipoib_held_free() frees; NULL: there is none. */
struct ipoib_held *ipoib_queue_take(struct ipoib_queue *q);
void ipoib_held_free(struct ipoib_held *held);

/* Frees all; returns how many there were. */
unsigned ipoib_queue_drop(struct ipoib_queue *q);

#endif
