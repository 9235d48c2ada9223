/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Open HCAs: see hca.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "control/message.h"
#include "daemon/clients/hca.h"

#define MAX_HCAS (1u << 20)

void daemon_hcas_init(struct daemon_hcas *all, struct daemon_loop *loop)
{
	all->loop = loop;
	base_idtable_init(&all->ids, MAX_HCAS);
}

int daemon_hca_open(struct daemon_hcas *all, struct daemon_holder *holder, uint32_t hca,
                    struct daemon_hca **out, int *fd)
{
	struct daemon_hca *h = calloc(1, sizeof(*h));
	int ret;

	if (!h)
		return -ENOMEM;
	h->holder = holder;
	h->hca = hca;
	ret = daemon_outbox_open(all->loop, &h->events, fd);
	if (ret)
		goto err_free;
	ret = base_idtable_add(&all->ids, h, &h->handle);
	if (ret)
		goto err_close;
	LIST_INSERT_HEAD(&holder->hcas, h, entry);
	*out = h;
	return 0;
err_close:
	daemon_outbox_close(h->events);
	close(*fd);
err_free:
	free(h);
	return ret;
}

void daemon_hca_close(struct daemon_hcas *all, struct daemon_hca *h)
{
	base_idtable_remove(&all->ids, h->handle);
	LIST_REMOVE(h, entry);
	daemon_outbox_close(h->events);
	h->events = NULL;
}

bool daemon_hca_is_open(const struct daemon_hca *h)
{
	return h->events;
}

struct daemon_hca *daemon_hca_of(const struct daemon_hcas *all, const struct daemon_holder *holder,
                                 uint32_t handle)
{
	struct daemon_hca *h = base_idtable_get(&all->ids, handle);

	return h && h->holder == holder ? h : NULL;
}

bool daemon_hca_event(struct daemon_hca *h, enum ibv_event_type type, uint32_t element)
{
	struct control_event e = { .type = type, .element = element };

	return !daemon_outbox_send(h->events, &e, sizeof(e));
}

void daemon_hcas_event(struct daemon_hcas *all, uint32_t hca, enum ibv_event_type type,
                       uint32_t element)
{
	for (uint32_t i = 0; i < all->ids.size; i++) {
		struct daemon_hca *h = base_idtable_get(&all->ids, i);

		if (h && h->hca == hca)
			daemon_hca_event(h, type, element);
	}
}
