/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ServiceRecord (InfiniBand specification volume 1, section 15.2.5.14): a directory of services. A
 * port registers a service for the time of a lease; others look it up.
 */
#include <stdlib.h>
#include <string.h>

#include "subnet/sa_query.h"

#define MAX_SERVICES (1u << 16)
#define FOR_EVER     0xFFFFFFFF

struct sa_service {
	LIST_ENTRY(sa_service) entry;
	struct wire_service_record rec;
	uint64_t until_s;
};

static void service_free(struct sa *sa, struct sa_service *s)
{
	LIST_REMOVE(s, entry);
	sa->n_services--;
	free(s);
}

void sa_services_free(struct sa *sa)
{
	while (!LIST_EMPTY(&sa->services))
		service_free(sa, LIST_FIRST(&sa->services));
}

static void drop_expired(struct sa *sa, uint64_t now_s)
{
	struct sa_service *s, *next;

	for (s = LIST_FIRST(&sa->services); s; s = next) {
		next = LIST_NEXT(s, entry);
		if (s->rec.lease != FOR_EVER && s->until_s <= now_s)
			service_free(sa, s);
	}
}

/* ServiceID, ServiceGID and ServiceP_Key identify a record. */
static struct sa_service *find(const struct sa *sa, const struct wire_service_record *rec)
{
	struct sa_service *s;

	LIST_FOREACH(s, &sa->services, entry)
	if (s->rec.id == rec->id && s->rec.pkey == rec->pkey &&
	    ib_gid_equal(&s->rec.gid, &rec->gid))
		return s;
	return NULL;
}

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
	if (!s) {
		s = q->sa->n_services < MAX_SERVICES ? calloc(1, sizeof(*s)) : NULL;
		if (!s)
			return SA_NO_RESOURCES;
		LIST_INSERT_HEAD(&q->sa->services, s, entry);
		q->sa->n_services++;
	}
	s->rec = rec;
	s->until_s = q->in->now_s + rec.lease;
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
	if (!s)
		return SA_NO_RECORDS;
	respond(q, &s->rec);
	service_free(q->sa, s);
	return SA_OK;
}

static uint16_t get_services(struct sa_query *q)
{
	struct sa_service *s;

	if (!in_partition(q))
		return SA_REQ_INVALID;
	drop_expired(q->sa, q->in->now_s);
	LIST_FOREACH(s, &q->sa->services, entry)
	{
		struct wire_service_record r = s->rec;

		if ((r.pkey & IB_PKEY_BASE_MASK) && !sa_has_pkey(q->asker, r.pkey))
			continue;
		if (r.lease != FOR_EVER)
			r.lease = (uint32_t)(s->until_s - q->in->now_s);
		if (wire_match(&wire_service_record_layout, q->mask, q->wanted, &r))
			respond(q, &r);
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
