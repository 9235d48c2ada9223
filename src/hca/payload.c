/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Payload memory of a sending queue pair: slots of one message, written once and
 * read by every receiver that the message reaches.
 *
 * A slot is free again when all of them have copied it out. Nobody counts that
 * down, as a count could not survive a death in between: the arrival in the
 * receiver's ring is the reference itself, and the sender looks whether the ring
 * has moved past it. With one writer and receivers that keep up, that is one look
 * a message.
 */
#include <errno.h>
#include <stdlib.h>

#include "hca/hca.h"

#define SLOT_BYTES  IB_MTU_BYTES(IBV_MTU_4096)
#define FIRST_SLOTS 16
#define MAX_SLOTS   16384 /* 64 MiB a queue pair */
#define LOOK_AHEAD  8

static bool held(const struct hca_payload_hold *h)
{
	/* acquire: pairs with the release in shm_ring_consume(): the copy is done */
	return h->ring->gen == h->gen &&
	       (int32_t)(atomic_load_explicit(&h->ring->consumed, memory_order_acquire) - h->pos) <=
	               0;
}

static bool in_use(struct hca_payload *p)
{
	while (p->n && !held(&p->hold[p->n - 1]))
		p->n--;
	return p->n != 0;
}

static int grow(struct hca_qp *qp)
{
	struct hca_payloads *all = &qp->payloads;
	uint32_t more = all->n ? all->n : FIRST_SLOTS;
	struct control_get_payload req = { .qpn = qp->ex.qp_base.qp_num,
		                           .bytes = more * SLOT_BYTES };
	struct control_get_payload_reply rep;
	struct hca_payload *slot;
	int ret;

	if (all->n + more > MAX_SLOTS)
		return -ENOMEM;
	ret = control_call(qp->process->control,
	                   &(struct control_call){ .type = CONTROL_GET_PAYLOAD,
	                                           .request = &req,
	                                           .request_bytes = sizeof(req),
	                                           .reply = &rep,
	                                           .reply_bytes = sizeof(rep) });
	if (ret)
		return ret;
	slot = realloc(all->slot, (all->n + more) * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	all->slot = slot;
	for (uint32_t i = 0; i < more; i++)
		slot[all->n + i] = (struct hca_payload){ .off = rep.off + i * SLOT_BYTES };
	all->cursor = all->n;
	all->n += more;
	return 0;
}

/* The first free slot of the next @n from the cursor on. */
static struct hca_payload *search(struct hca_payloads *all, uint32_t n)
{
	for (uint32_t i = 0; i < n && i < all->n; i++) {
		struct hca_payload *p = &all->slot[all->cursor];

		all->cursor = all->cursor + 1 == all->n ? 0 : all->cursor + 1;
		if (!in_use(p))
			return p;
	}
	return NULL;
}

struct hca_payload *hca_payload_get(struct hca_qp *qp)
{
	struct hca_payload *p = search(&qp->payloads, LOOK_AHEAD);

	if (p)
		return p;
	return search(&qp->payloads, grow(qp) ? UINT32_MAX : 1);
}

int hca_payload_reserve(struct hca_payload *p, uint32_t holders)
{
	struct hca_payload_hold *hold;

	if (holders <= p->room)
		return 0;
	hold = realloc(p->hold, holders * sizeof(*hold));
	if (!hold)
		return -ENOMEM;
	p->hold = hold;
	p->room = holders;
	return 0;
}

void hca_payload_fini(struct hca_payloads *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		free(all->slot[i].hold);
	free(all->slot);
	*all = (struct hca_payloads){ 0 };
}
