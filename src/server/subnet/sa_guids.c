/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SubnAdmSet and SubnAdmDelete of GUIDInfoRecord (InfiniBand specification volume 1, section
 * 15.2.5.18): a port requests additional GUIDs, which it or the subnet administrator chooses, and
 * removes them. Each becomes a GID of the port. Its own GUID, the first, does not change.
 */
#include "fabric/agents/mads.h"
#include "subnet/sa_query.h"

#define ASSIGNED 0x02756DFE00000000ull /* the GUIDs that the SA chooses begin here */
#define OWN_GUID SA_GIR(table.guid[0])

/* A request about a block of a port, and the present block. */
struct block {
	struct fabric_port *port;
	struct wire_guid_info_record now;
};

static uint16_t find(const struct sa_query *q, struct block *b)
{
	const struct wire_guid_info_record *w = q->wanted;
	uint64_t needed = SA_GIR(lid) | SA_GIR(block);
	uint8_t data[SMP_DATA_BYTES] = { 0 };

	if ((q->mask & needed) != needed)
		return SA_INSUFFICIENT_COMPONENTS;
	b->port = sa_port_by_lid(q->sa, w->lid);
	b->now = (struct wire_guid_info_record){ .lid = w->lid, .block = w->block };
	if (!b->port ||
	    fabric_sma_get(q->sa->f, b->port, SMP_ATTR_GUID_INFO, w->block, data) != MAD_STATUS_OK)
		return SA_NO_RECORDS;
	if (b->port != q->asker && !q->trusted)
		return SA_REQ_DENIED;
	if (!w->block && (q->mask & OWN_GUID))
		return SA_REQ_INVALID;
	wire_guid_info_decode(data, &b->now.table);
	return SA_OK;
}

/* Writes @b to the port and to the response. */
static uint16_t write(struct sa_query *q, const struct block *b)
{
	uint8_t data[SMP_DATA_BYTES] = { 0 };

	wire_guid_info_encode(&b->now.table, data);
	if (fabric_sma_set(q->sa->f, b->port, SMP_ATTR_GUID_INFO, b->now.block, data) !=
	    MAD_STATUS_OK)
		return SA_NO_RESOURCES;
	sa_query_add(q, &b->now);
	return SA_OK;
}

static bool is_in_use(const struct sa *sa, uint64_t guid)
{
	struct ib_gid gid;

	fabric_gid_make(sa->f, guid, &gid);
	return sa_end_by_gid(sa, &gid) != NULL;
}

static uint64_t assign(struct sa *sa)
{
	uint64_t guid;

	do
		guid = ASSIGNED + ++sa->guids_assigned;
	while (is_in_use(sa, guid));
	return guid;
}

static bool is_in(const struct wire_guid_info *table, uint64_t guid)
{
	for (unsigned i = 0; i < GUID_BLOCK; i++)
		if (table->guid[i] == guid)
			return true;
	return false;
}

/*
 * A GUID of 0 requests any GUID: the present one, or a new one. A GUID in use is not set, and the
 * response has the present one.
 */
uint16_t sa_guid_info_set(struct sa_query *q)
{
	const struct wire_guid_info_record *w = q->wanted;
	struct block b;
	uint16_t status = find(q, &b);

	for (unsigned i = 0; status == SA_OK && i < GUID_BLOCK; i++) {
		uint64_t want = w->table.guid[i], *now = &b.now.table.guid[i];

		if (!(q->mask & SA_GIR(table.guid[i])) || (*now && (!want || *now == want)))
			continue;
		if (!want)
			want = assign(q->sa);
		if (!is_in_use(q->sa, want) && !is_in(&b.now.table, want))
			*now = want;
	}
	return status == SA_OK ? write(q, &b) : status;
}

uint16_t sa_guid_info_delete(struct sa_query *q)
{
	struct block b;
	uint16_t status = find(q, &b);

	for (unsigned i = 0; status == SA_OK && i < GUID_BLOCK; i++)
		if (q->mask & SA_GIR(table.guid[i]))
			b.now.table.guid[i] = 0;
	return status == SA_OK ? write(q, &b) : status;
}
