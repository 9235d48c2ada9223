/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attach tables: see attach.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fabric/attach.h"
#include "fabric/flow.h"

int fabric_attach_init(struct fabric_attach *a, uint32_t n_hcas)
{
	*a = (struct fabric_attach){ .qp_count = calloc(SHM_MAX_QPS, sizeof(*a->qp_count)),
		                     .hca_groups = calloc(n_hcas, sizeof(*a->hca_groups)),
		                     .hca_total = calloc(n_hcas, sizeof(*a->hca_total)) };
	if (a->qp_count && a->hca_groups && a->hca_total)
		return 0;
	fabric_attach_fini(a);
	return -ENOMEM;
}

void fabric_attach_fini(struct fabric_attach *a)
{
	struct base_hash_node *node, *next;

	for (node = base_hash_walk(&a->groups, NULL); node; node = next) {
		struct fabric_attached *g = container_of(node, struct fabric_attached, node);

		next = base_hash_walk(&a->groups, node);
		free(g->entry);
		free(g);
	}
	base_hash_fini(&a->groups);
	free(a->qp_count);
	free(a->hca_groups);
	free(a->hca_total);
	*a = (struct fabric_attach){ 0 };
}

static uint64_t hash_of(uint32_t hca, const struct ib_gid *mgid)
{
	return base_hash_of(mgid, sizeof(*mgid), hca);
}

struct fabric_attached *fabric_attach_find(const struct fabric *f, uint32_t hca,
                                           const struct ib_gid *mgid)
{
	struct base_hash_node *node;

	for (node = base_hash_first(&f->attach->groups, hash_of(hca, mgid)); node;
	     node = base_hash_next(node)) {
		struct fabric_attached *g = container_of(node, struct fabric_attached, node);

		if (g->hca == hca && !memcmp(&g->mgid, mgid, sizeof(*mgid)))
			return g;
	}
	return NULL;
}

static struct fabric_attached *group_new(struct fabric *f, uint32_t hca, const struct ib_gid *mgid)
{
	struct fabric_attached *g;

	if (f->attach->hca_groups[hca] >= f->settings.max_mcast_grp)
		return NULL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->hca = hca;
	g->mgid = *mgid;
	if (base_hash_add(&f->attach->groups, &g->node, hash_of(hca, mgid))) {
		free(g);
		return NULL;
	}
	f->attach->hca_groups[hca]++;
	return g;
}

static void group_free(struct fabric *f, struct fabric_attached *g)
{
	f->attach->hca_groups[g->hca]--;
	base_hash_remove(&f->attach->groups, &g->node);
	free(g->entry);
	free(g);
}

static void group_free_if_empty(struct fabric *f, struct fabric_attached *g)
{
	uint32_t hca = g->hca;
	struct ib_gid mgid = g->mgid;

	if (g->n)
		return;
	group_free(f, g);
	if (f->attach->emptied)
		f->attach->emptied(f->attach->emptied_arg, hca, &mgid);
}

static int append(struct fabric_attached *g, struct fabric_attachment e)
{
	if (g->n == g->room) {
		uint32_t room = g->room ? g->room * 2 : 4;
		struct fabric_attachment *p = realloc(g->entry, room * sizeof(*p));

		if (!p)
			return -ENOMEM;
		g->entry = p;
		g->room = room;
	}
	g->entry[g->n++] = e;
	return 0;
}

int fabric_attach_add(struct fabric *f, uint32_t hca, uint32_t qpn, const struct ib_gid *mgid,
                      uint16_t mlid)
{
	struct fabric_attach *a = f->attach;
	struct fabric_attached *g = fabric_attach_find(f, hca, mgid);
	bool again = false;

	for (uint32_t i = 0; g && fabric_attach_count(f, qpn) && i < g->n; i++) {
		if (g->entry[i].qpn != qpn)
			continue;
		if (g->entry[i].mlid == mlid)
			return 0;
		again = true;
	}
	if (a->hca_total[hca] >= f->settings.max_total_mcast_qp_attach ||
	    (g ? g->n : 0) >= f->settings.max_mcast_qp_attach)
		return -ENOMEM;
	if (!g)
		g = group_new(f, hca, mgid);
	if (!g)
		return -ENOMEM;
	if (append(g, (struct fabric_attachment){ .qpn = qpn, .mlid = mlid, .again = again })) {
		if (!g->n)
			group_free(f, g);
		return -ENOMEM;
	}
	a->hca_total[hca]++;
	a->qp_count[SHM_QP_INDEX(qpn)]++;
	if (!again)
		fabric_flow_attached(f, mgid, qpn);
	return 0;
}

/* Takes entry @i out; another attachment of the same QP then stands for it. */
static void take_out(struct fabric *f, struct fabric_attached *g, uint32_t i)
{
	struct fabric_attachment gone = g->entry[i];
	struct ib_gid mgid = g->mgid;

	g->entry[i] = g->entry[--g->n];
	f->attach->hca_total[g->hca]--;
	f->attach->qp_count[SHM_QP_INDEX(gone.qpn)]--;
	for (uint32_t k = 0; !gone.again && k < g->n; k++) {
		if (g->entry[k].qpn == gone.qpn) {
			g->entry[k].again = false;
			return;
		}
	}
	group_free_if_empty(f, g);
	if (!gone.again)
		fabric_flow_detached(f, &mgid, gone.qpn);
}

int fabric_attach_remove(struct fabric *f, uint32_t hca, uint32_t qpn, const struct ib_gid *mgid,
                         uint16_t mlid)
{
	struct fabric_attached *g = fabric_attach_find(f, hca, mgid);

	for (uint32_t i = 0; g && i < g->n; i++) {
		if (g->entry[i].qpn == qpn && g->entry[i].mlid == mlid) {
			take_out(f, g, i);
			return 0;
		}
	}
	return -EINVAL;
}

uint32_t fabric_attach_count(const struct fabric *f, uint32_t qpn)
{
	return f->attach->qp_count[SHM_QP_INDEX(qpn)];
}

static int entry_of(const struct fabric_attached *g, uint32_t hca, uint32_t qpn)
{
	for (uint32_t i = 0; g->hca == hca && i < g->n; i++)
		if (g->entry[i].qpn == qpn)
			return (int)i;
	return -1;
}

void fabric_attach_remove_all(struct fabric *f, uint32_t hca, uint32_t qpn)
{
	struct base_hash_node *node, *next;
	int i;

	for (node = base_hash_walk(&f->attach->groups, NULL); node && fabric_attach_count(f, qpn);
	     node = next) {
		struct fabric_attached *g = container_of(node, struct fabric_attached, node);
		uint32_t n = g->n;

		next = base_hash_walk(&f->attach->groups, node);
		/* the last entry taken out takes the group with it */
		while (n && (i = entry_of(g, hca, qpn)) >= 0) {
			take_out(f, g, (uint32_t)i);
			n--;
		}
	}
}

void fabric_attach_qp_moved(struct fabric *f, uint32_t hca, uint32_t qpn)
{
	struct base_hash_node *node;

	if (!fabric_attach_count(f, qpn))
		return;
	for (node = base_hash_walk(&f->attach->groups, NULL); node;
	     node = base_hash_walk(&f->attach->groups, node)) {
		struct fabric_attached *g = container_of(node, struct fabric_attached, node);

		if (entry_of(g, hca, qpn) >= 0)
			fabric_flow_group_changed(f, &g->mgid);
	}
}
