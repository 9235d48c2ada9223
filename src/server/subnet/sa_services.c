/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ServiceRecord (InfiniBand specification volume 1, section 15.2.5.14): a directory of services. A
 * port registers a service for the time of a lease; others look it up.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/util.h"
#include "subnet/sa_query.h"

#define MAX_SERVICES (1u << 16)
#define FOR_EVER     0xFFFFFFFF
#define DROPPED      16 /* of those whose leases have run out, by each request */

struct sa_service {
	struct base_hash_node node;
	uint32_t id;  /* in by_id */
	uint32_t due; /* its place in the heap */
	struct wire_service_record rec;
	uint64_t until_s; /* UINT64_MAX: for ever */
};

struct sa_services {
	struct base_hash by_key;
	struct base_idtable by_id; /* for those who list them in slices */
	/* a binary heap: none of a service's two children ends before it */
	struct sa_service **due;
	uint32_t n, room;
};

/* ---- leases ---- */

static void put(struct sa_services *all, uint32_t i, struct sa_service *s)
{
	all->due[i] = s;
	s->due = i;
}

/* Moves a service to its place in the heap. */
static void settle(struct sa_services *all, struct sa_service *s)
{
	uint32_t i = s->due, child;

	for (; i && all->due[(i - 1) / 2]->until_s > s->until_s; i = (i - 1) / 2)
		put(all, i, all->due[(i - 1) / 2]);
	for (; (child = 2 * i + 1) < all->n; i = child) {
		if (child + 1 < all->n && all->due[child + 1]->until_s < all->due[child]->until_s)
			child++;
		if (all->due[child]->until_s >= s->until_s)
			break;
		put(all, i, all->due[child]);
	}
	put(all, i, s);
}

/* ---- the services ---- */

/* ServiceID, ServiceGID and ServiceP_Key identify a record. */
static uint64_t key_hash(const struct wire_service_record *rec)
{
	return base_hash_of(&rec->gid, sizeof(rec->gid), rec->id ^ (uint64_t)rec->pkey << 48);
}

static struct sa_service *find(const struct sa *sa, const struct wire_service_record *rec)
{
	struct base_hash_node *n = base_hash_first(&sa->services->by_key, key_hash(rec));

	for (; n; n = base_hash_next(n)) {
		struct sa_service *s = container_of(n, struct sa_service, node);

		if (s->rec.id == rec->id && s->rec.pkey == rec->pkey &&
		    ib_gid_equal(&s->rec.gid, &rec->gid))
			return s;
	}
	return NULL;
}

/* One of @rec, which is for ever. NULL: there are too many, or there is no memory. */
static struct sa_service *service_new(struct sa *sa, const struct wire_service_record *rec)
{
	struct sa_services *all = sa->services;
	struct sa_service *s;

	if (base_array_reserve(&all->due, &all->room, (size_t)all->n + 1))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->rec = *rec;
	s->until_s = UINT64_MAX;
	if (base_idtable_add(&all->by_id, s, &s->id))
		goto err_free;
	if (base_hash_add(&all->by_key, &s->node, key_hash(rec)))
		goto err_remove;
	put(all, all->n++, s);
	return s;

err_remove:
	base_idtable_remove(&all->by_id, s->id);
err_free:
	free(s);
	return NULL;
}

static void service_free(struct sa *sa, struct sa_service *s)
{
	struct sa_services *all = sa->services;
	struct sa_service *last = all->due[--all->n];

	if (last != s) {
		put(all, s->due, last);
		settle(all, last);
	}
	base_hash_remove(&all->by_key, &s->node);
	base_idtable_remove(&all->by_id, s->id);
	free(s);
}

int sa_services_init(struct sa *sa)
{
	sa->services = calloc(1, sizeof(*sa->services));
	if (!sa->services)
		return -ENOMEM;
	base_idtable_init(&sa->services->by_id, MAX_SERVICES);
	return 0;
}

void sa_services_fini(struct sa *sa)
{
	struct sa_services *all = sa->services;

	if (!all)
		return;
	while (all->n)
		service_free(sa, all->due[all->n - 1]);
	free(all->due);
	base_hash_fini(&all->by_key);
	base_idtable_fini(&all->by_id);
	free(all);
	sa->services = NULL;
}

static bool is_over(const struct sa_service *s, uint64_t now_s)
{
	return s->until_s <= now_s;
}

/* Some of them: a request adds one at most, so they do not pile up. The others are not told. */
static void drop_expired(struct sa *sa, uint64_t now_s)
{
	const struct sa_services *all = sa->services;

	for (unsigned i = 0; i < DROPPED && all->n && is_over(all->due[0], now_s); i++)
		service_free(sa, all->due[0]);
}

/* ---- requests ---- */

/* Whether the asker and the service's port are in the record's partition. */
static bool in_partition(const struct sa_query *q)
{
	const struct wire_service_record *w = q->wanted;
	const struct fabric_port *port;

	if (!q->asker)
		return false;
	if (!(q->mask & SA_SR(pkey)))
		return true;
	if (!sa_has_pkey(q->asker, w->pkey))
		return false;
	if (!(q->mask & SA_SR(gid)) || ib_gid_is_mcast(&w->gid))
		return true;
	port = sa_port_by_guid(q->sa->f, &w->gid);
	return port && sa_has_pkey(port, w->pkey);
}

/* Adds the record; only trusted requests see the ServiceKey. */
static void respond(struct sa_query *q, const struct wire_service_record *rec)
{
	struct wire_service_record r = *rec;

	if (!q->trusted)
		memset(r.key, 0, sizeof(r.key));
	sa_query_add(q, &r);
}

static uint16_t offer_service(struct sa_query *q)
{
	struct wire_service_record rec = *(const struct wire_service_record *)q->wanted;
	struct sa_service *s;

	if (!in_partition(q) || (q->mask & (SA_SR(id) | SA_SR(gid))) != (SA_SR(id) | SA_SR(gid)))
		return SA_REQ_INVALID;
	if (!(q->mask & SA_SR(lease)))
		rec.lease = FOR_EVER;
	drop_expired(q->sa, q->in->now_s);
	s = find(q->sa, &rec);
	if (!s)
		s = service_new(q->sa, &rec);
	if (!s)
		return SA_NO_RESOURCES;
	s->rec = rec;
	s->until_s = rec.lease == FOR_EVER ? UINT64_MAX : q->in->now_s + rec.lease;
	settle(q->sa->services, s);
	if (!(q->mask & SA_SR(pkey)))
		rec.pkey = IB_PKEY_DEFAULT;
	respond(q, &rec);
	return SA_OK;
}

static uint16_t withdraw_service(struct sa_query *q)
{
	struct sa_service *s;

	if (!in_partition(q))
		return SA_REQ_INVALID;
	drop_expired(q->sa, q->in->now_s);
	s = find(q->sa, q->wanted);
	if (!s || is_over(s, q->in->now_s))
		return SA_NO_RECORDS;
	respond(q, &s->rec);
	service_free(q->sa, s);
	return SA_OK;
}

static void offer(struct sa_query *q, const struct sa_service *s)
{
	struct wire_service_record r = s->rec;

	sa_query_spend(q, 1);
	if (is_over(s, q->in->now_s) ||
	    ((r.pkey & IB_PKEY_BASE_MASK) && !sa_has_pkey(q->asker, r.pkey)))
		return;
	if (r.lease != FOR_EVER)
		r.lease = (uint32_t)(s->until_s - q->in->now_s);
	if (wire_match(&wire_service_record_layout, q->mask, q->wanted, &r))
		respond(q, &r);
}

static uint16_t get_services(struct sa_query *q)
{
	const struct base_idtable *all = &q->sa->services->by_id;

	if (!in_partition(q))
		return SA_OK; /* no records: those of other partitions are not there for it */
	drop_expired(q->sa, q->in->now_s);
	for (; q->at.outer < all->size; q->at.outer++) {
		const struct sa_service *s = base_idtable_get(all, q->at.outer);

		if (sa_query_stops(q))
			return SA_OK;
		if (s)
			offer(q, s);
	}
	return SA_OK;
}

const struct sa_kind sa_service_kind = {
	.attribute = SA_ATTR_SERVICE,
	.layout = &wire_service_record_layout,
	.get = get_services,
	.set = offer_service,
	.del = withdraw_service,
};
