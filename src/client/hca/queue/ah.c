/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Address handles: see ah.h.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "hca/process/domain.h"
#include "hca/queue/ah.h"
#include "hca/queue/neighbour.h"
#include "wire/grh.h"
#include "wire/ip.h"
#include "wire/mgid.h"
#include "wire/rate.h"

#define DEFAULT_HOP_LIMIT 64 /* as the kernel's sockets */

/* The bits of an SL that packets have room for; a priority of Ethernet has fewer. */
#define SL_MASK       15
#define PRIORITY_MASK 7

static bool is_ethernet(const struct shm_port *port)
{
	return port->link_layer == IBV_LINK_LAYER_ETHERNET;
}

/* Both GIDs must be of one IP version. A LID means nothing. */
static int check_ethernet(const struct shm_port *port, const struct ibv_ah_attr *attr)
{
	const struct ib_gid *sgid = &port->gid[attr->grh.sgid_index];
	struct ib_gid dgid;

	memcpy(dgid.raw, attr->grh.dgid.raw, sizeof(dgid.raw));
	if (ib_gid_is_zero(&dgid))
		return base_because(-EINVAL, "grh.dgid is zero");
	if (wire_gid_is_ipv4(sgid) != wire_gid_is_ipv4(&dgid))
		return base_because(-EINVAL,
		                    "grh.dgid is an IPv%d address, the GID at sgid_index %u is not",
		                    wire_gid_is_ipv4(&dgid) ? 4 : 6, attr->grh.sgid_index);
	return 0;
}

/* InfiniBand: a local LID will do, but never for a group. */
static int check_lid(const struct ibv_ah_attr *attr)
{
	const bool is_mcast = attr->dlid >= IB_LID_MCAST_FIRST && attr->dlid != IB_LID_PERMISSIVE;

	if (!attr->dlid)
		return base_because(-EINVAL, "dlid is 0: it is the LID of the destination's port, "
		                             "or the MLID of the group");
	if (!attr->is_global && attr->dlid >= IB_LID_MCAST_FIRST)
		return base_because(-EINVAL,
		                    "dlid 0x%04x is multicast, which needs is_global and grh.dgid",
		                    attr->dlid);
	if (is_mcast && attr->grh.dgid.raw[0] != 0xFF)
		return base_because(-EINVAL, "dlid 0x%04x is multicast, grh.dgid is not",
		                    attr->dlid);
	return 0;
}

static int check_attr(const struct shm_port *port, const struct ibv_ah_attr *attr)
{
	if (!attr->is_global && is_ethernet(port))
		return base_because(-EINVAL, "RoCE needs is_global and grh.dgid");
	if (!attr->is_global)
		return check_lid(attr);
	if (attr->grh.sgid_index >= SHM_GIDS || ib_gid_is_zero(&port->gid[attr->grh.sgid_index]))
		return base_because(-EINVAL, "grh.sgid_index is %u: the port has no GID there",
		                    attr->grh.sgid_index);
	return is_ethernet(port) ? check_ethernet(port, attr) : check_lid(attr);
}

/* Memory of a handle, all zero but its serial: the one that was destroyed longest ago, or new. */
static struct hca_ah *allocate(struct hca_process *p)
{
	struct hca_ah *ah;
	uint64_t serial;

	base_lock(&p->ah_lock);
	serial = ++p->ah_serials;
	ah = STAILQ_FIRST(&p->free_ahs);
	if (ah)
		STAILQ_REMOVE_HEAD(&p->free_ahs, free);
	base_unlock(&p->ah_lock);
	if (!ah)
		ah = malloc(sizeof(*ah));
	if (!ah)
		return NULL;
	memset((void *)ah, 0, sizeof(*ah));
	ah->serial = serial;
	return ah;
}

/* A handle that is none any more may be the next one. */
static void put_back(struct hca_ah *ah)
{
	struct hca_process *p = ah->ctx->process;

	ah->alive = 0;
	ah->serial = 0; /* what was found by it is nothing to go by any more */
	base_lock(&p->ah_lock);
	STAILQ_INSERT_TAIL(&p->free_ahs, ah, free);
	base_unlock(&p->ah_lock);
}

/* Ethernet has no LIDs, and no datagram may leave with a hop limit of 0. */
static void become_ethernet(struct hca_ah *ah)
{
	struct ib_gid dgid;

	memcpy(dgid.raw, ah->dest.gid, sizeof(dgid.raw));
	ah->dest.lid = wire_mgid_ethernet_lid(&dgid);
	ah->dest.path_bits = 0;
	ah->dest.sl = 0;
	ah->arrival_flags |= SHM_ARRIVAL_ETHERNET;
	if (!ah->hop_limit)
		ah->hop_limit = DEFAULT_HOP_LIMIT;
}

static void fill(struct hca_ah *ah, struct hca_context *ctx, const struct shm_port *port,
                 const struct ibv_ah_attr *attr)
{
	ah->ctx = ctx;
	ah->dest.lid = attr->dlid;
	ah->dest.port_num = attr->port_num;
	ah->dest.path_bits = attr->src_path_bits & ((1u << port->lmc) - 1);
	ah->dest.is_global = attr->is_global != 0;
	ah->sl = attr->sl & (is_ethernet(port) ? PRIORITY_MASK : SL_MASK);
	ah->dest.sl = ah->sl;
	if (attr->is_global) {
		memcpy(ah->dest.gid, attr->grh.dgid.raw, sizeof(ah->dest.gid));
		ah->class_flow =
		        (uint32_t)attr->grh.traffic_class << 20 | (attr->grh.flow_label & 0xFFFFF);
		ah->hop_limit = attr->grh.hop_limit;
		ah->sgid_index = attr->grh.sgid_index;
		ah->arrival_flags = SHM_ARRIVAL_GRH;
	}
	if (is_ethernet(port))
		become_ethernet(ah);
	ah->is_mcast = ib_lid_is_mcast((uint16_t)ah->dest.lid);
	ah->alive = HCA_AH_ALIVE;
}

/* ---- places in the GID table ---- */

/* On Ethernet the handle keeps the place of its source: the daemon gives it to no other address
 * (struct shm_gid_users). */
static void count_use(const struct hca_ah *ah, uint32_t change)
{
	if (ah->ctx->gid_users)
		atomic_fetch_add_explicit(&ah->ctx->gid_users->n[ah->sgid_index], change,
		                          memory_order_release);
}

/* Counts @ah, and only then looks which GID is there. 0; -EINVAL: not the one of @port any more. */
static int use_gid(const struct hca_ah *ah, const struct shm_port *port)
{
	struct shm_port now;

	if (!ah->ctx->gid_users)
		return 0;
	count_use(ah, 1);
	atomic_thread_fence(memory_order_seq_cst);
	if (!hca_port(ah->ctx, ah->dest.port_num, &now) &&
	    ib_gid_equal(&now.gid[ah->sgid_index], &port->gid[ah->sgid_index]))
		return 0;
	count_use(ah, -1u);
	return base_because(-EINVAL, "grh.sgid_index is %u: the port has no GID there any more",
	                    ah->sgid_index);
}

void hca_ah_release(struct hca_ah *ah)
{
	if (ah->alive != HCA_AH_ALIVE)
		return;
	ah->alive = 0;
	count_use(ah, -1u);
}

/* ---- making them ---- */

/* Waits until somebody has the destination's address, on Ethernet. @attr is right. 0 or -errno. */
static int await(struct hca_context *ctx, const struct shm_port *port,
                 const struct ibv_ah_attr *attr)
{
	struct ib_gid dgid;

	if (!is_ethernet(port))
		return 0;
	memcpy(dgid.raw, attr->grh.dgid.raw, sizeof(dgid.raw));
	return hca_neighbour_await(ctx, &port->gid[attr->grh.sgid_index], &dgid);
}

int hca_ah_await(struct hca_context *ctx, const struct ibv_ah_attr *attr)
{
	struct shm_port port;

	if (hca_port(ctx, attr->port_num, &port) || check_attr(&port, attr))
		return 0;
	return await(ctx, &port, attr);
}

int hca_ah_fill(struct hca_ah *ah, struct hca_context *ctx, struct ibv_ah_attr *attr)
{
	struct shm_port port;
	int ret = hca_port(ctx, attr->port_num, &port);

	if (!ret)
		ret = check_attr(&port, attr);
	if (ret)
		return ret;
	if (attr->static_rate && !wire_rate_to_mbps(attr->static_rate))
		return base_because(-EINVAL, "static_rate %u is none of enum ibv_rate",
		                    attr->static_rate);
	if (!is_ethernet(&port) && attr->dlid >= IB_LID_MCAST_FIRST)
		return base_because(-EINVAL, "dlid 0x%04x is multicast: a connection has one peer",
		                    attr->dlid);
	hca_ah_release(ah);
	fill(ah, ctx, &port, attr);
	attr->sl = ah->sl;
	ret = use_gid(ah, &port);
	if (ret)
		ah->alive = 0;
	return ret;
}

struct hca_ah *hca_ah_create(struct hca_context *ctx, struct ibv_pd *pd,
                             const struct ibv_ah_attr *attr, int *error)
{
	struct shm_port port;
	struct hca_ah *ah;

	*error = hca_port(ctx, attr->port_num, &port);
	if (!*error)
		*error = check_attr(&port, attr);
	if (!*error)
		*error = await(ctx, &port, attr);
	if (*error)
		return NULL;
	ah = allocate(ctx->process);
	if (!ah) {
		*error = -ENOMEM;
		return NULL;
	}
	ah->ah.context = pd->context;
	ah->ah.pd = pd;
	ah->domain = hca_pd(pd)->domain;
	fill(ah, ctx, &port, attr);
	*error = use_gid(ah, &port);
	if (*error) {
		put_back(ah);
		return NULL;
	}
	hca_pd_use(pd);
	return ah;
}

int hca_ah_destroy(struct hca_ah *ah)
{
	if (ah->alive != HCA_AH_ALIVE)
		return base_because(-EINVAL, "it was destroyed before");
	hca_ah_release(ah);
	hca_pd_unuse(ah->ah.pd);
	put_back(ah);
	return 0;
}

void hca_ah_copy(struct hca_ah *to, const struct hca_ah *from)
{
	to->ah = from->ah;
	to->domain = from->domain;
	to->ctx = from->ctx;
	to->dest = from->dest;
	atomic_store_explicit(&to->flow, NULL, memory_order_relaxed);
	to->class_flow = from->class_flow;
	to->sl = from->sl;
	to->hop_limit = from->hop_limit;
	to->sgid_index = from->sgid_index;
	to->arrival_flags = from->arrival_flags;
	to->is_mcast = from->is_mcast;
	to->alive = from->alive;
	to->serial = 0;
	if (to->alive == HCA_AH_ALIVE)
		count_use(to, 1);
}

/* The index of @gid in the port's table, or -1. */
static int gid_index(const struct shm_port *port, const struct ib_gid *gid)
{
	for (int i = 0; i < port->n_gids; i++)
		if (ib_gid_equal(&port->gid[i], gid))
			return i;
	return -1;
}

/* The ones' complement sum of a header of 20 bytes that has its checksum in it. */
static bool checksum_holds(const uint8_t header[static WIRE_IPV4_BYTES])
{
	uint32_t sum = 0;

	for (int i = 0; i < WIRE_IPV4_BYTES; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return sum == 0xFFFF;
}

/* Decodes the header before a message on Ethernet: see wire_ip_grh(). False: it is none. */
static bool decode_ip(const uint8_t in[static IB_GRH_BYTES], struct wire_grh *h)
{
	const uint8_t *v4 = in + IB_GRH_BYTES - WIRE_IPV4_BYTES;
	in_addr_t addr;

	if (in[0] >> 4 == IB_GRH_VERSION) {
		wire_grh_decode(in, h);
		return true;
	}
	if (v4[0] != 0x45 || !checksum_holds(v4))
		return false;
	*h = (struct wire_grh){ .traffic_class = v4[1], .hop_limit = v4[8] };
	memcpy(&addr, v4 + 12, sizeof(addr));
	h->sgid = wire_gid_from_ipv4(addr);
	memcpy(&addr, v4 + 16, sizeof(addr));
	h->dgid = wire_gid_from_ipv4(addr);
	return true;
}

int hca_ah_init_from_wc(struct hca_context *ctx, unsigned port_num, const struct ibv_wc *wc,
                        const struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct wire_grh h;
	struct shm_port port;
	int index;

	if (hca_port(ctx, port_num, &port))
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = (uint8_t)port_num;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	if (!is_ethernet(&port))
		wire_grh_decode((const uint8_t *)grh, &h);
	else if (!decode_ip((const uint8_t *)grh, &h))
		return base_because(-EINVAL,
		                    "grh has no IP header: is it the begin of the receive?");
	/* a reply comes from the GID to which the message was sent; a group's cannot be a source */
	index = gid_index(&port, &h.dgid);
	if (ib_gid_is_mcast(&h.dgid))
		return base_because(-EINVAL, "the message was sent to a group, which cannot be the "
		                             "source of a reply: make the handle of the sender's "
		                             "address (ibv_create_ah())");
	if (index < 0)
		return base_because(-EINVAL, "the message's grh.dgid is no GID of port %u",
		                    port_num);
	attr->is_global = 1;
	memcpy(attr->grh.dgid.raw, h.sgid.raw, sizeof(h.sgid.raw));
	attr->grh.sgid_index = (uint8_t)index;
	attr->grh.flow_label = h.flow_label;
	attr->grh.traffic_class = h.traffic_class;
	attr->grh.hop_limit = h.hop_limit;
	return 0;
}
