/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attach tables: see attach_table.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/reason.h"
#include "base/util.h"
#include "fabric/model/attach_table.h"
#include "wire/text.h"

int fabric_attach_init(struct fabric_attach *a, uint32_t n_hcas)
{
	*a = (struct fabric_attach){ .qp = calloc(SHM_MAX_QPS, sizeof(*a->qp)),
		                     .hca = calloc(n_hcas, sizeof(*a->hca)) };
	if (a->qp && a->hca)
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
	for (uint32_t i = 0; a->qp && i < SHM_MAX_QPS; i++)
		free(a->qp[i].at);
	free(a->qp);
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
	struct fabric_attached *g;

	BASE_HASH_FOREACH(g, &f->attach->groups, hash_of(hca, mgid), node)
		if (g->hca == hca && ib_gid_equal(&g->mgid, mgid))
			return g;
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
	if (g->n)
		return;
	if (f->attach->emptied)
		f->attach->emptied(f->attach->emptied_arg, g);
	group_free(f, g);
}

/* ---- entries ---- */

static struct fabric_attach_qp *list_of(const struct fabric *f, uint32_t qpn)
{
	return &f->attach->qp[SHM_QP_INDEX(qpn)];
}

static bool is_entry(const struct fabric_attachment *e, uint32_t qpn, int mlid)
{
	return e->qpn == qpn && (mlid < 0 || e->mlid == mlid);
}

/* The entry of @qpn in @g, *@i; by any MLID if @mlid is -1. Looks through the group or through what
 * the QP is attached to, whichever is shorter. False: there is none. */
static bool find(const struct fabric *f, const struct fabric_attached *g, uint32_t qpn, int mlid,
                 uint32_t *i)
{
	const struct fabric_attach_qp *qp = list_of(f, qpn);

	for (uint32_t k = 0; qp->n < g->n && k < qp->n; k++) {
		*i = qp->at[k].i;
		if (qp->at[k].group == g && is_entry(&g->entry[*i], qpn, mlid))
			return true;
	}
	for (*i = 0; qp->n >= g->n && *i < g->n; ++*i)
		if (is_entry(&g->entry[*i], qpn, mlid))
			return true;
	return false;
}

static int append(struct fabric *f, struct fabric_attached *g, const struct fabric_attachment *e)
{
	struct fabric_attach_qp *qp = list_of(f, e->qpn);
	int ret = base_array_reserve(&g->entry, &g->room, (size_t)g->n + 1);

	if (!ret)
		ret = base_array_reserve(&qp->at, &qp->room, (size_t)qp->n + 1);
	if (ret)
		return ret;
	g->entry[g->n] = *e;
	g->entry[g->n].of_qp = qp->n;
	qp->at[qp->n++] = (struct fabric_attach_place){ g, g->n++ };
	return 0;
}

/* The last one of each list takes its place. */
static struct fabric_attachment take(struct fabric *f, struct fabric_attached *g, uint32_t i)
{
	struct fabric_attachment gone = g->entry[i], *last = &g->entry[--g->n];
	struct fabric_attach_qp *qp = list_of(f, gone.qpn);
	struct fabric_attach_place *place;

	list_of(f, last->qpn)->at[last->of_qp].i = i;
	g->entry[i] = *last;
	place = &qp->at[--qp->n];
	if (gone.of_qp != qp->n)
		place->group->entry[place->i].of_qp = gone.of_qp;
	qp->at[gone.of_qp] = *place;
	if (!qp->n) {
		free(qp->at);
		*qp = (struct fabric_attach_qp){ 0 };
	}
	return gone;
}

bool fabric_attach_has(const struct fabric *f, uint32_t hca, uint32_t qpn,
                       const struct ib_gid *mgid)
{
	const struct fabric_attached *g = fabric_attach_find(f, hca, mgid);
	uint32_t i;

	return g && find(f, g, qpn, -1, &i) && !g->entry[i].leaves;
}

struct fabric_attachment *fabric_attach_only(const struct fabric *f, uint32_t hca, uint32_t qpn,
                                             const struct ib_gid *mgid, uint16_t mlid)
{
	const struct fabric_attach_qp *qp = list_of(f, qpn);
	const struct fabric_attached *g = fabric_attach_find(f, hca, mgid);
	uint32_t i, n = 0;

	if (!g || !find(f, g, qpn, mlid, &i))
		return NULL;
	for (uint32_t k = 0; k < qp->n; k++)
		n += qp->at[k].group == g;
	return n == 1 ? &g->entry[i] : NULL;
}

/* ---- changes ---- */

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

	if (e->again) {
		used->again += by;
	} else {
		used->qps += by;
		g->n_qps += by;
	}
}

int fabric_attach_table_add(struct fabric *f, uint32_t hca, uint32_t qpn, const struct ib_gid *mgid,
                            uint16_t mlid)
{
	struct fabric_attached *g = fabric_attach_find(f, hca, mgid);
	struct fabric_attachment e = { .qpn = qpn, .mlid = mlid };
	uint32_t i;

	if (g && find(f, g, qpn, mlid, &i))
		return 0;
	e.again = g && find(f, g, qpn, -1, &i);
	if (is_full(f, hca, g, e.again))
		return base_because(-ENOMEM,
		                    "as many queue pairs are attached as max_mcast_qp_attach (%u) "
		                    "and max_total_mcast_qp_attach (%u) allow",
		                    f->settings.max_mcast_qp_attach,
		                    f->settings.max_total_mcast_qp_attach);
	if (!g && f->attach->hca[hca].groups >= f->settings.max_mcast_grp)
		return base_because(-ENOMEM,
		                    "the HCA has as many groups as max_mcast_grp (%u) allows",
		                    f->settings.max_mcast_grp);
	if (!g)
		g = group_new(f, hca, mgid);
	if (!g)
		return -ENOMEM;
	if (append(f, g, &e)) {
		if (!g->n)
			group_free(f, g);
		return -ENOMEM;
	}
	count(f, g, &e, 1);
	base_log_trace(join, "QP 0x%06x is attached to %s, MLID 0x%04x", qpn, wire_gid_text(mgid),
	               mlid);
	return !e.again;
}

/* Removes entry @i; another entry of the same QP then counts in its place. True: there is none. */
static bool remove_entry(struct fabric *f, struct fabric_attached *g, uint32_t i)
{
	struct fabric_attachment gone = take(f, g, i);
	uint32_t other;

	count(f, g, &gone, -1);
	if (gone.again)
		return false;
	if (find(f, g, gone.qpn, -1, &other)) {
		count(f, g, &g->entry[other], -1);
		g->entry[other].again = false;
		count(f, g, &g->entry[other], 1);
		return false;
	}
	group_free_if_empty(f, g);
	return true;
}

int fabric_attach_table_remove(struct fabric *f, uint32_t hca, uint32_t qpn,
                               const struct ib_gid *mgid, uint16_t mlid)
{
	struct fabric_attached *g = fabric_attach_find(f, hca, mgid);
	uint32_t i;

	if (!g || !find(f, g, qpn, mlid, &i))
		return base_because(-EINVAL, "QP 0x%06x is not attached to %s by MLID 0x%04x", qpn,
		                    wire_gid_text(mgid), mlid);
	return remove_entry(f, g, i);
}

uint32_t fabric_attach_count(const struct fabric *f, uint32_t qpn)
{
	return list_of(f, qpn)->n;
}

bool fabric_attach_table_drop(struct fabric *f, uint32_t qpn, struct ib_gid *mgid)
{
	const struct fabric_attach_qp *qp = list_of(f, qpn);
	struct fabric_attach_place last;

	if (!qp->n)
		return false;
	last = qp->at[qp->n - 1];
	*mgid = last.group->mgid;
	return remove_entry(f, last.group, last.i);
}
