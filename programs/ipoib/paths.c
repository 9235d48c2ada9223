/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paths: see paths.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "ipoib/paths.h"
#include "wire/sa_records.h"

#define ASK_AGAIN_NS 1000000000ull

void ipoib_paths_init(struct ipoib_paths *t)
{
	TAILQ_INIT(&t->all);
}

static void forget(struct ipoib_paths *t, struct ipoib_path *path)
{
	t->dropped += ipoib_queue_drop(&path->queue);
	ipoib_sa_cancel(t->sa, &path->request);
	ipoib_link_retire_ah(t->link, path->ah);
	TAILQ_REMOVE(&t->all, path, entry);
	base_hash_remove(&t->by_gid, &path->node);
	free(path);
}

void ipoib_paths_fini(struct ipoib_paths *t)
{
	struct ipoib_path *path;

	while ((path = TAILQ_FIRST(&t->all)))
		forget(t, path);
	base_hash_fini(&t->by_gid);
}

static struct ipoib_path *find(const struct ipoib_paths *t, const struct ib_gid *gid)
{
	struct ipoib_path *path;

	BASE_HASH_FOREACH(path, &t->by_gid, base_hash_of(gid, sizeof(*gid), 0), node)
		if (ib_gid_equal(&path->gid, gid))
			return path;
	return NULL;
}

static struct ipoib_path *add(struct ipoib_paths *t, const struct ib_gid *gid)
{
	struct ipoib_path *path;

	if (t->by_gid.n >= IPOIB_PATHS_MAX)
		forget(t, TAILQ_FIRST(&t->all));
	path = calloc(1, sizeof(*path));
	if (!path)
		return NULL;
	path->table = t;
	path->gid = *gid;
	ipoib_queue_init(&path->queue, t->budget);
	if (base_hash_add(&t->by_gid, &path->node, base_hash_of(gid, sizeof(*gid), 0))) {
		free(path);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&t->all, path, entry);
	return path;
}

/* ---- asking ---- */

static void take_record(struct ipoib_path *path, const struct wire_path_record *rec)
{
	struct ipoib_paths *t = path->table;
	struct ipoib_way way = { .gid = rec->dgid,
		                 .lid = rec->dlid,
		                 .sl = rec->sl,
		                 .flow_label = rec->flow_label,
		                 .hop_limit = rec->hop_limit,
		                 .traffic_class = rec->tclass,
		                 /* beyond the subnet, by a router */
		                 .global = rec->hop_limit > 1 };

	ipoib_link_retire_ah(t->link, path->ah);
	path->ah = ipoib_link_ah(t->link, &way);
	path->lid = rec->dlid;
}

static void path_done(struct ipoib_sa_request *r, int status, const uint8_t *record)
{
	struct ipoib_path *path = container_of(r, struct ipoib_path, request);
	struct ipoib_paths *t = path->table;
	struct wire_path_record rec;
	struct ipoib_held *held;

	if (!status) {
		wire_path_record_decode(record, &rec);
		take_record(path, &rec);
	}
	if (!path->ah) {
		t->dropped += ipoib_queue_drop(&path->queue);
		path->not_before_ns = base_now_ns() + ASK_AGAIN_NS;
		return;
	}
	while ((held = ipoib_queue_take(&path->queue))) {
		t->send(t->arg, path->ah, held->qpn, &held->packet);
		ipoib_held_free(held);
	}
}

static int ask(struct ipoib_path *path)
{
	struct ipoib_paths *t = path->table;
	struct wire_path_record rec = { .dgid = path->gid,
		                        .sgid = t->port->gid,
		                        .reversible = 1,
		                        .numb_path = 1,
		                        .pkey = t->port->pkey };
	struct ipoib_sa_query query = { .method = MAD_GET,
		                        .attribute = SA_ATTR_PATH,
		                        .mask = SA_PR(dgid) | SA_PR(sgid) | SA_PR(reversible) |
		                                SA_PR(numb_path) | SA_PR(pkey),
		                        .layout = &wire_path_record_layout,
		                        .record = &rec };

	path->request.done = path_done;
	return ipoib_sa_send(t->sa, &query, &path->request);
}

struct ibv_ah *ipoib_paths_use(struct ipoib_paths *t, const struct ib_gid *gid, uint32_t qpn,
                               const struct ipoib_packet *p)
{
	struct ipoib_path *path = find(t, gid);

	if (!path)
		path = add(t, gid);
	if (!path) {
		t->dropped++;
		return NULL;
	}
	if (TAILQ_NEXT(path, entry)) {
		TAILQ_REMOVE(&t->all, path, entry);
		TAILQ_INSERT_TAIL(&t->all, path, entry);
	}
	if (path->ah)
		return path->ah;
	if (!path->request.tid && (base_now_ns() < path->not_before_ns || ask(path))) {
		t->dropped++;
		return NULL;
	}
	t->dropped += !ipoib_queue_add(&path->queue, p, qpn);
	return NULL;
}

static void doubt(struct ipoib_paths *t, struct ipoib_path *path)
{
	/* A response that is on its way may be as wrong. If one is awaited, the SA is asked
	 * anew. */
	bool asked = path->request.tid;

	ipoib_link_retire_ah(t->link, path->ah);
	path->ah = NULL;
	path->not_before_ns = 0;
	if (asked && ask(path))
		t->dropped += ipoib_queue_drop(&path->queue);
}

void ipoib_paths_doubt(struct ipoib_paths *t, const struct ib_gid *gid)
{
	struct ipoib_path *path = gid ? find(t, gid) : NULL;

	if (path)
		doubt(t, path);
	if (gid)
		return;
	TAILQ_FOREACH(path, &t->all, entry)
	doubt(t, path);
}

enum ipoib_path_match ipoib_paths_match(const struct ipoib_paths *t, const struct ib_gid *gid,
                                        uint16_t lid)
{
	uint16_t lmc_mask = (uint16_t)((1u << t->port->lmc) - 1);
	const struct ipoib_path *path = find(t, gid);

	if (!path || !path->ah)
		return IPOIB_PATH_UNKNOWN;
	return (path->lid & ~lmc_mask) == (lid & ~lmc_mask) ? IPOIB_PATH_MATCHES
	                                                    : IPOIB_PATH_DIFFERS;
}
