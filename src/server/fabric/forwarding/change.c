/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Changes of groups, in slices: see change.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fabric/forwarding/change.h"
#include "fabric/forwarding/mcast_path.h"

#define LOOK_AT_RECEIVERS 64 /* at so many numbers in a list: FABRIC_FLOW_LOOKS */

void fabric_changes_init(struct fabric_changes *all)
{
	TAILQ_INIT(&all->waiting);
}

void fabric_changes_fini(struct fabric_changes *all)
{
	struct fabric_change *c;

	while ((c = TAILQ_FIRST(&all->waiting))) {
		TAILQ_REMOVE(&all->waiting, c, entry);
		free(c);
	}
}

bool fabric_change_is_long(const struct fabric *f, const struct ib_gid *mgid)
{
	const struct fabric_mcast_group *g = fabric_mcast_group_find(f, mgid);

	return g && g->n_flows > FABRIC_CHANGE_AT_ONCE;
}

int fabric_change_add(struct fabric *f, const struct fabric_change *c)
{
	struct fabric_change *copy = malloc(sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	*copy = *c;
	TAILQ_INSERT_TAIL(&f->flows->changes.waiting, copy, entry);
	f->flows->changes.added++;
	return 0;
}

int fabric_change_gone(struct fabric *f, const struct ib_gid *mgid)
{
	struct fabric_mcast_group *g = fabric_mcast_group_find(f, mgid);
	int ret = 0;

	if (g && !g->loses_some)
		ret = fabric_change_add(
		        f, &(struct fabric_change){ .kind = FABRIC_CHANGE_GONE, .mgid = *mgid });
	if (g && !ret)
		g->loses_some = true;
	return ret;
}

/* ---- the list of a path ---- */

/* Where the list has @qpn; s->count: it has not. */
static uint32_t find(struct fabric *f, const struct fabric_mcast_path *s, uint32_t qpn)
{
	const uint32_t *list = fabric_mcast_path_list(f, s);
	uint32_t i = 0;

	while (i < s->count && list[i] != qpn)
		i++;
	f->flows->work += i / LOOK_AT_RECEIVERS;
	return i;
}

/* Gives the path a copy of its list, with room for @count; flows have the old one until they
 * follow. False: there is no room. */
static bool copy_list(struct fabric *f, struct fabric_mcast_path *s, uint32_t count)
{
	struct fabric_changes *at = &f->flows->changes;
	const uint32_t *list = fabric_mcast_path_list(f, s);
	const uint32_t room = (uint32_t)base_align_up(count * 2 + 1, 16);
	const uint64_t off = shm_extent_get(&f->flows->lists, room * sizeof(*list));

	if (!off)
		return false;
	at->old_list = s->list_room ? s->list_off : 0;
	s->list_off = off;
	s->list_room = room;
	if (s->count)
		memcpy(fabric_mcast_path_list(f, s), list, s->count * sizeof(*list));
	f->flows->work += s->count / LOOK_AT_RECEIVERS;
	return true;
}

/* Behind what flows read of the list there is nothing. */
static bool add_receiver(struct fabric *f, struct fabric_mcast_path *s, uint32_t qpn)
{
	if (s->count == s->list_room && !copy_list(f, s, s->count + 1)) {
		fabric_mcast_path_receiver_add(f, s, qpn); /* it says that there is no room */
		return false;
	}
	fabric_mcast_path_list(f, s)[s->count++] = qpn;
	return true;
}

static bool remove_receiver(struct fabric *f, struct fabric_mcast_path *s, uint32_t qpn, uint32_t i)
{
	uint32_t *list;

	if (!copy_list(f, s, s->count)) {
		fabric_mcast_path_receiver_remove(f, s, qpn);
		return false;
	}
	list = fabric_mcast_path_list(f, s);
	list[i] = list[--s->count];
	return true;
}

static bool is_gone(const struct fabric *f, uint32_t qpn)
{
	return shm_qp_at(f->region, SHM_QP_INDEX(qpn))->qpn != qpn;
}

static bool remove_gone(struct fabric *f, struct fabric_mcast_path *s)
{
	uint32_t *list = fabric_mcast_path_list(f, s), n = 0, i = 0;

	while (i < s->count && !is_gone(f, list[i]))
		i++;
	f->flows->work += s->count / 8;
	if (i == s->count)
		return false;
	if (!copy_list(f, s, s->count)) {
		fabric_mcast_path_prune(f, s);
		return false;
	}
	list = fabric_mcast_path_list(f, s);
	for (i = 0; i < s->count; i++)
		if (!is_gone(f, list[i]))
			list[n++] = list[i];
	s->count = n;
	return true;
}

/* Changes the list, if that is needed. Whether flows are to have their records written. */
static bool change_list(struct fabric *f, struct fabric_mcast_path *s,
                        const struct fabric_change *c)
{
	bool is, wanted;
	uint32_t i;

	if (c->kind == FABRIC_CHANGE_GONE)
		return remove_gone(f, s);
	i = find(f, s, c->qpn);
	is = i < s->count;
	wanted = c->kind == FABRIC_CHANGE_RECEIVER && fabric_mcast_path_is_for(f, s, c->qpn);
	if (is == wanted)
		return false;
	return wanted ? add_receiver(f, s, c->qpn) : remove_receiver(f, s, c->qpn, i);
}

/* ---- from path to path ---- */

/* No flow has the old list of the last path any more. */
static void put_old_list(struct fabric *f)
{
	struct fabric_changes *at = &f->flows->changes;

	if (at->old_list)
		shm_extent_put(&f->flows->lists, at->old_list);
	at->old_list = 0;
	at->flow = NULL;
	at->moves = at->skipped = false;
}

/* All flows of the path have followed. */
static void end_path(struct fabric *f)
{
	put_old_list(f);
	f->flows->changes.path = LIST_NEXT(f->flows->changes.path, of_group);
}

static void move_some(struct fabric *f)
{
	struct fabric_changes *at = &f->flows->changes;
	struct fabric_flow *flow;

	for (unsigned n = 0; n < FABRIC_FLOW_LOOKS && (flow = at->flow); n++) {
		at->flow = LIST_NEXT(flow, of_mcast_path);
		if (at->counts && fabric_flow_has_more(f, flow->id))
			fabric_flow_count(f, flow);
		if (at->writes)
			fabric_mcast_path_write(f, at->path, flow);
		f->flows->work++;
	}
	if (!at->flow)
		end_path(f);
}

static void begin(struct fabric *f, const struct fabric_change *c)
{
	struct fabric_changes *at = &f->flows->changes;
	struct fabric_mcast_group *g = fabric_mcast_group_find(f, &c->mgid);
	const struct fabric_attached *on_hca = NULL;

	if (c->kind == FABRIC_CHANGE_LEAVES)
		on_hca = fabric_attach_find(f, c->hca, &c->mgid);
	at->begun = true;
	at->counts = on_hca && on_hca->n == 1; /* later it would seem to have come in vain */
	at->path = g ? LIST_FIRST(&g->paths) : NULL;
	if (g && c->kind == FABRIC_CHANGE_GONE)
		g->loses_some = false;
}

static void end(struct fabric *f, struct fabric_change *c)
{
	struct fabric_changes *at = &f->flows->changes;

	TAILQ_REMOVE(&at->waiting, c, entry);
	at->begun = false;
	at->done++;
	if (c->done)
		c->done(f, c);
	free(c);
}

void fabric_changes_step(struct fabric *f)
{
	struct fabric_changes *at = &f->flows->changes;
	struct fabric_change *c = TAILQ_FIRST(&at->waiting);

	f->flows->work++;
	if (at->skipped)
		put_old_list(f);
	if (!at->begun)
		begin(f, c);
	for (unsigned n = 0; n < FABRIC_FLOW_LOOKS && at->path && !at->moves; n++) {
		at->writes = change_list(f, at->path, c);
		at->moves = at->writes || at->counts;
		at->flow = LIST_FIRST(&at->path->flows);
		if (!at->moves)
			end_path(f);
	}
	if (at->moves)
		move_some(f);
	if (!at->path)
		end(f, c);
}
