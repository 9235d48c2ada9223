/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that wait: see packet.h.
 */
#include <stdlib.h>
#include <string.h>

#include "ipoib/packet.h"

void ipoib_queue_init(struct ipoib_queue *q, struct ipoib_budget *budget)
{
	STAILQ_INIT(&q->held);
	q->budget = budget;
	q->n = 0;
}

bool ipoib_queue_add(struct ipoib_queue *q, const struct ipoib_packet *p, uint32_t qpn)
{
	struct ipoib_budget *budget = q->budget;
	struct ipoib_held *held;

	if (q->n == IPOIB_QUEUE_MAX || p->bytes > budget->max_bytes - budget->bytes)
		return false;
	held = malloc(sizeof(*held) + p->bytes);
	if (!held)
		return false;
	held->packet = *p;
	held->packet.data = (uint8_t *)(held + 1);
	held->qpn = qpn;
	memcpy(held->packet.data, p->data, p->bytes);
	STAILQ_INSERT_TAIL(&q->held, held, entry);
	q->n++;
	budget->bytes += p->bytes;
	return true;
}

struct ipoib_held *ipoib_queue_take(struct ipoib_queue *q)
{
	struct ipoib_held *held = STAILQ_FIRST(&q->held);

	if (!held)
		return NULL;
	STAILQ_REMOVE_HEAD(&q->held, entry);
	q->n--;
	q->budget->bytes -= held->packet.bytes;
	return held;
}

void ipoib_held_free(struct ipoib_held *held)
{
	free(held);
}

unsigned ipoib_queue_drop(struct ipoib_queue *q)
{
	unsigned n = q->n;
	struct ipoib_held *held;

	while ((held = ipoib_queue_take(q)))
		ipoib_held_free(held);
	return n;
}
