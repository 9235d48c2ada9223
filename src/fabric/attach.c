/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attach tables: see attach.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/reason.h"
#include "base/util.h"
#include "fabric/attach.h"
#include "fabric/flow.h"
#include "wire/text.h"

int fabric_attach_init(struct fabric_attach *a, uint32_t n_hcas)
{
	*a = (struct fabric_attach){ .qp_count = calloc(SHM_MAX_QPS, sizeof(*a->qp_count)),
		                     .hca = calloc(n_hcas, sizeof(*a->hca)) };
	if (a->qp_count && a->hca)
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
	free(a->hca);
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

		if (g->hca == hca && ib_gid_equal(&g->mgid, mgid))
			return g;
	}
	return NULL;
}

static struct fabric_attached *group_new(struct fabric *f, uint32_t hca, const struct ib_gid *mgid)
{
	struct fabric_attached *g;

	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->hca = hca;
	g->mgid = *mgid;
	if (base_hash_add(&f->attach->groups, &g->node, hash_of(hca, mgid))) {
		free(g);
		return NULL;
	}
	f->attach->hca[hca].groups++;
	return g;
}

static void group_free(struct fabric *f, struct fabric_attached *g)
{
	f->attach->hca[g->hca].groups--;
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
	int ret = base_array_reserve(&g->entry, &g->room, (size_t)g->n + 1);

	if (!ret)
		g->entry[g->n++] = e;
	return ret;
}

/* Whether a limit leaves no room for one more entry in @g, or in a new group if that is NULL. */
static bool is_full(const struct fabric *f, uint32_t hca, const struct fabric_attached *g,
                    bool again)
{
	const struct fabric_attach_hca *used = &f->attach->hca[hca];

	if (again)
		return used->again >= FABRIC_ATTACH_MAX_AGAIN;
	return used->qps >= f->settings.max_total_mcast_qp_attach ||
	       (g ? g->n_qps : 0) >= f->settings.max_mcast_qp_attach;
}

/* Counts an entry (@by 1) or one less (-1). */
static void count(struct fabric *f, struct fabric_attached *g, const struct fabric_attachment *e,
                  int by)
{
	struct fabric_attach_hca *used = &f->attach->hca[g->hca];

	f->attach->qp_count[SHM_QP_INDEX(e->qpn)] += by;
	if (e->again) {
		used->again += by;
	} else {
		used->qps += by;
		g->n_qps += by;
	}
}

int fabric_attach_add(struct fabric *f, uint32_t hca, uint32_t qpn, const struct ib_gid *mgid,
                      uint16_t mlid)
{
	struct fabric_attached *g = fabric_attach_find(f, hca, mgid);
	struct fabric_attachment e = { .qpn = qpn, .mlid = mlid };

	for (uint32_t i = 0; g && fabric_attach_count(f, qpn) && i < g->n; i++) {
		if (g->entry[i].qpn != qpn)
			continue;
		if (g->entry[i].mlid == mlid)
			return 0;
		e.again = true;
	}
	if (is_full(f, hca, g, e.again))
		return base_because(-ENOMEM,
		                    "as many queue pairs are attached as max_mcast_qp_attach (%u) "
		                    "and max_total_mcast_qp_attach (%u) allow",
		                    f->settings.max_mcast_qp_attach,
		                    f->settings.max_total_mcast_qp_attach);
	if (!g && f->attach->hca[hca].groups >= f->settings.max_mcast_grp)
		return base_because(-ENOMEM,
		                    "the HCA has as many groups as max_mcast_grp (%u) "
		                    "allows",
		                    f->settings.max_mcast_grp);
	if (!g)
		g = group_new(f, hca, mgid);
	if (!g)
		return -ENOMEM;
	if (append(g, e)) {
		if (!g->n)
			group_free(f, g);
		return -ENOMEM;
	}
	count(f, g, &e, 1);
	base_log_trace(join, "QP 0x%06x is attached to %s, MLID 0x%04x", qpn, wire_gid_text(mgid),
	               mlid);
	if (!e.again)
		fabric_flow_attached(f, mgid, qpn);
	return 0;
}

/* Removes entry @i; another entry of the same QP then counts in its place. */
static void remove_entry(struct fabric *f, struct fabric_attached *g, uint32_t i)
{
	struct fabric_attachment gone = g->entry[i];
	struct ib_gid mgid = g->mgid;

	g->entry[i] = g->entry[--g->n];
	count(f, g, &gone, -1);
	for (uint32_t k = 0; !gone.again && k < g->n; k++) {
		if (g->entry[k].qpn != gone.qpn)
			continue;
		count(f, g, &g->entry[k], -1);
		g->entry[k].again = false;
		count(f, g, &g->entry[k], 1);
		return;
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
			remove_entry(f, g, i);
			return 0;
		}
	}
	return base_because(-EINVAL, "QP 0x%06x is not attached to %s by MLID 0x%04x", qpn,
	                    wire_gid_text(mgid), mlid);
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
		/* the group is freed with its last entry */
		while (n && (i = entry_of(g, hca, qpn)) >= 0) {
			remove_entry(f, g, (uint32_t)i);
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
