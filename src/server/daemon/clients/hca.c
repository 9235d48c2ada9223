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

/* ---- users of GIDs ---- */

/* That of @holder, or NULL. */
static struct daemon_gid_users *gid_users_of(const struct daemon_holder *holder, uint32_t hca)
{
	struct daemon_gid_users *u;

	LIST_FOREACH(u, &holder->gid_users, of_holder)
	if (u->hca == hca)
		return u;
	return NULL;
}

int daemon_hca_count_gids(struct daemon_hcas *all, struct daemon_memory *m,
                          const struct daemon_hca *h, uint64_t *off)
{
	struct daemon_gid_users *u = gid_users_of(h->holder, h->hca);

	if (!u) {
		u = calloc(1, sizeof(*u));
		if (!u)
			return -ENOMEM;
		u->hca = h->hca;
		u->off = daemon_memory_payload(m, sizeof(struct shm_gid_users));
		if (!u->off) {
			free(u);
			return daemon_memory_none(m, false, &h->holder->want);
		}
		LIST_INSERT_HEAD(&all->gid_users, u, entry);
		LIST_INSERT_HEAD(&h->holder->gid_users, u, of_holder);
	}
	*off = u->off;
	return 0;
}

uint32_t daemon_hcas_used_gids(const struct daemon_hcas *all, const struct daemon_memory *m,
                               uint32_t hca)
{
	const struct daemon_gid_users *u;
	uint32_t used = 0;

	atomic_thread_fence(memory_order_seq_cst); /* see struct shm_gid_users */
	LIST_FOREACH(u, &all->gid_users, entry)
	{
		struct shm_gid_users *users = shm_data_at(m->region, u->off);

		for (unsigned i = 0; u->hca == hca && i < SHM_GIDS; i++)
			if (atomic_load_explicit(&users->n[i], memory_order_acquire))
				used |= UINT32_C(1) << i;
	}
	return used;
}

/* ---- events ---- */

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

/* ---- all ---- */

/* The holder counts the users of its GIDs no longer. There is a row for each HCA of its host. */
static bool free_of_holder(void *arg, struct daemon_holder *holder, uint32_t *budget)
{
	const struct daemon_hcas *all = arg;
	struct daemon_gid_users *u;

	(void)budget;
	while ((u = LIST_FIRST(&holder->gid_users))) {
		LIST_REMOVE(u, entry);
		LIST_REMOVE(u, of_holder);
		daemon_memory_free_payload(all->memory, u->off);
		free(u);
	}
	return true;
}

void daemon_hcas_init(struct daemon_hcas *all, struct daemon_loop *loop,
                      struct daemon_memory *memory, struct daemon_endings *endings)
{
	all->memory = memory;
	all->loop = loop;
	base_idtable_init(&all->ids, MAX_HCAS);
	daemon_ending_register(endings, &all->ending, free_of_holder, all);
}
