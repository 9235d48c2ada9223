/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire: how its packets are made and leave, and how payloads get from memory and into it. See
 * packet_connection.h.
 */
#include <stdlib.h>
#include <string.h>

#include "hca/link/detour.h"
#include "hca/transport/packet_connection.h"

/* ---- packets ---- */

struct wire_bth hca_wire_bth(const struct hca_wire *w, enum wire_operation operation, uint32_t psn)
{
	unsigned transport = w->end.qp.type == IBV_QPT_UC ? WIRE_TRANSPORT_UC : WIRE_TRANSPORT_RC;

	return (struct wire_bth){ .opcode = (uint8_t)WIRE_OPCODE(transport, operation),
		                  .migrated = true,
		                  .pkey = w->end.qp.pkey,
		                  .dest_qpn = w->end.qp.connection.dest_qpn,
		                  .psn = psn };
}

/* A connection has the address that its port had when it was made, at whatever place of the port's
 * table it is now: if another address comes in its place, the peer would not know that one. */
void hca_wire_find_source(struct hca_wire *w)
{
	const struct shm_port *port = shm_port_at(&w->end.process->region, w->end.qp.port);
	unsigned i = 0;

	/* acquire: the GIDs read below are no older than this */
	w->gids_seq = atomic_load_explicit((_Atomic uint32_t *)&port->seq, memory_order_acquire);
	while (i < SHM_GIDS && !ib_gid_equal(&port->gid[i], &w->path.sgid))
		i++;
	w->has_source = i < SHM_GIDS;
	if (w->has_source)
		w->route.sgid_index = (uint8_t)i;
}

/* Whether the port has its address. Else the packet is lost. */
static inline bool has_source(struct hca_wire *w)
{
	const struct shm_port *port = shm_port_at(&w->end.process->region, w->end.qp.port);

	if (base_unlikely(atomic_load_explicit((_Atomic uint32_t *)&port->seq,
	                                       memory_order_acquire) != w->gids_seq))
		hca_wire_find_source(w);
	if (base_likely(w->has_source))
		return true;
	HCA_COUNT(w->end.process, w->end.qp.port, xmit_discards);
	return false;
}

uint8_t *hca_wire_begin(struct hca_wire *w, uint32_t bytes)
{
	if (base_likely(!w->path.detours))
		return has_source(w) ? hca_roce_begin(w->sender, &w->route, bytes) : NULL;
	if (w->path.detours == SHM_WIRE_AWAY && !has_source(w))
		return NULL;
	if (!w->payload)
		w->payload = malloc(WIRE_ROCE_MAX_PAYLOAD);
	w->payload_bytes = bytes;
	return w->payload;
}

/* Sends the packet that was begun to the daemon. */
static void end_detour(struct hca_wire *w, const struct wire_headers *h)
{
	const struct control_detour d = { .src_qpn = w->qpn,
		                          .flow = w->path.flow,
		                          .payload_bytes = w->payload_bytes,
		                          .class_flow = w->route.class_flow,
		                          .h = *h,
		                          .hop_limit = w->path.hop_limit,
		                          .sgid_index = w->route.sgid_index,
		                          .dgid = w->path.dgid };

	if (!hca_detour_send(w->end.process, &d, w->payload))
		HCA_COUNT(w->end.process, w->end.qp.port, xmit_discards);
}

void hca_wire_end(struct hca_wire *w, const struct wire_headers *h)
{
	if (base_likely(!w->path.detours))
		hca_roce_end(w->sender, h);
	else
		end_detour(w, h);
}

/* ---- memory ---- */

/* The pieces of @parts from @offset on. @iov: HCA_MAX_SGE. */
static unsigned pieces(const struct hca_parts *parts, uint64_t offset, struct iovec *iov)
{
	unsigned n = 0;

	for (unsigned i = 0; i < parts->n; i++) {
		struct iovec v = parts->iov[i];
		size_t part = offset < v.iov_len ? offset : v.iov_len;

		offset -= part;
		if (v.iov_base != HCA_MEMORY_NULL)
			v.iov_base = (char *)v.iov_base + part;
		v.iov_len -= part;
		if (v.iov_len)
			iov[n++] = v;
	}
	return n;
}

/* As hca_parts_span(), of these pieces. */
static struct hca_span span_of(const struct hca_end *end, const struct hca_parts *parts,
                               struct iovec *iov, unsigned n)
{
	if (!parts->here)
		hca_memory_ask_by(end->memory, &end->qp);
	return (struct hca_span){ .memory = parts->here ? NULL : end->memory, .iov = iov, .n = n };
}

int hca_wire_gather(const struct hca_end *end, struct hca_parts *parts, uint64_t offset,
                    uint64_t bytes, uint8_t *room)
{
	struct iovec iov[HCA_MAX_SGE], here = { room, bytes };
	struct hca_span to = { .iov = &here, .n = 1 }, from;

	if (!bytes)
		return 0;
	from = span_of(end, parts, iov, pieces(parts, offset, iov));
	return hca_memory_copy(&to, &from, bytes);
}

/* How much is gathered at one time, if a packet of @bytes is to be. */
static uint64_t how_much(const struct hca_wire *w, const struct hca_wire_gathering *g,
                         uint64_t offset, uint32_t bytes)
{
	const uint64_t left = g->length - offset;
	unsigned behind;

	if (g->parts->here || w->path.detours || bytes != 1u << w->path.mtu_shift)
		return bytes;
	behind = hca_roce_behind(w->sender);
	if (behind >= g->packets)
		behind = g->packets - 1;
	return left < (uint64_t)(behind + 1) << w->path.mtu_shift
	               ? left
	               : (uint64_t)(behind + 1) << w->path.mtu_shift;
}

int hca_wire_gather_next(const struct hca_wire *w, struct hca_wire_gathering *g, uint64_t offset,
                         uint32_t bytes, uint8_t *room)
{
	uint64_t n;
	int ret;

	if (g->left < bytes || g->next != offset) {
		n = how_much(w, g, offset, bytes);
		ret = hca_wire_gather(g->end, g->parts, offset, n, room);
		if (ret && n > bytes) { /* what is behind it may not be there */
			n = bytes;
			ret = hca_wire_gather(g->end, g->parts, offset, bytes, room);
		}
		if (ret)
			return ret;
		g->at = room;
		g->left = n;
	} else if (bytes && g->at != room) { /* a short one has its place elsewhere */
		memmove(room, g->at, bytes);
	}
	g->at += bytes;
	g->left -= bytes;
	g->next = offset + bytes;
	return 0;
}

struct hca_span hca_wire_payloads(const struct hca_wire_run *run, struct iovec *iov)
{
	unsigned n = 0;

	for (unsigned i = 0; i < run->n; i++)
		if (run->packets[i].payload_bytes)
			iov[n++] = (struct iovec){ (void *)run->packets[i].payload,
				                   run->packets[i].payload_bytes };
	return (struct hca_span){ .iov = iov, .n = n };
}

int hca_wire_scatter(const struct hca_end *end, struct hca_parts *parts, uint64_t offset,
                     struct hca_span *from, uint32_t bytes)
{
	struct iovec iov[HCA_MAX_SGE];
	struct hca_span to;
	unsigned n;

	if (!bytes)
		return 0;
	n = pieces(parts, offset, iov);
	if (n && parts->here && from->n == 1 && iov[0].iov_len >= bytes &&
	    iov[0].iov_base != HCA_MEMORY_NULL) {
		hca_memory_copy_here(iov[0].iov_base, from->iov[0].iov_base, bytes);
		return 0;
	}
	to = span_of(end, parts, iov, n);
	return hca_memory_copy(&to, from, bytes);
}
