/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The differences on Ethernet: addresses are GIDs, the host's routes say which device and source
 * address lead to a destination, groups are IP groups, and there is no subnet administrator. Used
 * by all of cm/.
 */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "cm/state.h"
#include "wire/ip.h"

#define HOP_LIMIT 64 /* of groups, as Linux has it */
#define PATH_LIFE 18 /* about a second */

bool cm_roce_connects(const struct cm *cm, struct fabric_port *port, const struct ib_gid *peer)
{
	return !port->ethernet || fabric_ethernet_find_anywhere(cm->f, port, peer);
}

/* ---- source and destination ---- */

/* Only the address: the port number stays. */
static void copy_address(union control_cm_addr *to, const union control_cm_addr *from)
{
	if (to->sa.sa_family == AF_INET)
		to->in.sin_addr = from->in.sin_addr;
	else if (to->sa.sa_family == AF_INET6)
		to->in6.sin6_addr = from->in6.sin6_addr;
	else
		memcpy(to->ib.sib_addr.sib_raw, from->ib.sib_addr.sib_raw,
		       sizeof(to->ib.sib_addr.sib_raw));
}

/*
 * Whether id->dst is reached by the host's routes. GIDs, the host itself and link-local addresses
 * are not, nor is a group if the source is known.
 */
static bool needs_route(const struct cm_id *id)
{
	if (cm_addr_is_any(&id->dst) || cm_addr_is_link_local(&id->dst) ||
	    id->dst.sa.sa_family == AF_IB)
		return false;
	return !id->port || !cm_addr_is_mcast(&id->dst);
}

int cm_roce_find_route(const struct cm_id *id, union control_cm_addr *from)
{
	const struct cm *cm = id->client->cm;
	int host = id->port ? cm_port_host(cm, id->port) : id->client->host;

	memset(from, 0, sizeof(*from));
	from->sa.sa_family = id->dst.sa.sa_family;
	if (!needs_route(id) || !cm->ops.route)
		return 0;
	if (id->port && !cm_addr_is_link_local(&id->src))
		copy_address(from, &id->src);
	return cm->ops.route(cm->ops.arg, host, &id->dst, from);
}

/* Whether the client's host has ports on Ethernet, or of InfiniBand. */
static bool has_ports(const struct cm_client *client, bool ethernet)
{
	const struct cm *cm = client->cm;
	unsigned first = ethernet ? cm->f->n_ib_ports : 0;
	unsigned last = ethernet ? cm->f->n_hca_ports : cm->f->n_ib_ports;

	for (unsigned i = first; i < last; i++)
		if (client->host == CM_ALL_HOSTS ||
		    client->host == cm_port_host(cm, cm->f->hca_port[i]))
			return true;
	return false;
}

bool cm_roce(const struct cm_id *id)
{
	const struct cm_client *client = id->client;
	const struct fabric_port *port = id->port;
	union control_cm_addr from;

	if (port)
		return port->ethernet;
	if (!has_ports(client, true))
		return false;
	if (!has_ports(client, false))
		return true;
	if (cm_addr_is_any(&id->dst))
		return false;
	port = cm_addr_find(client->cm, CM_ALL_HOSTS, &id->dst);
	if (!port && !cm_roce_find_route(id, &from) && !cm_addr_is_zero(&from))
		port = cm_addr_find(client->cm, client->host, &from);
	return port && port->ethernet;
}

/* The device that has the address @from; if that is zero any device. */
static int choose_device(struct cm_id *id, union control_cm_addr *from)
{
	struct cm *cm = id->client->cm;
	struct fabric_port *port;

	if (cm_addr_is_zero(from)) {
		port = cm_addr_default_port(cm, id->client->host, true);
		if (port)
			cm_addr_from_port(cm, port, cm_addr_is_link_local(&id->dst), from);
	} else {
		port = cm_addr_find(cm, id->client->host, from);
	}
	if (!port)
		return -ENODEV;
	if (id->ps == RDMA_PS_IPOIB)
		return -EINVAL;
	cm_id_use_port(id, port);
	if (cm_addr_is_loopback(&id->dst))
		cm_addr_source(cm, port, &id->dst, &id->src);
	else
		copy_address(&id->src, from);
	return 0;
}

void cm_roce_use_source(struct cm_id *id)
{
	union control_cm_addr src = id->src;
	struct ib_gid gid;

	if (!id->port || !id->port->ethernet)
		return;
	if (cm_addr_is_loopback(&src)) /* packets have an address that the port has */
		cm_addr_from_port(id->client->cm, id->port, false, &src);
	if (cm_addr_is_any(&src))
		return;
	cm_roce_gid(&src, &gid);
	cm_id_set_source(id, id->port, &gid);
}

int cm_roce_resolve(struct cm_id *id, union control_cm_addr *from)
{
	int ret = 0;

	if (!id->port)
		ret = choose_device(id, from);
	if (ret)
		return ret;
	if (id->port->state != IB_PORT_ACTIVE)
		return -ENETUNREACH;
	cm_roce_use_source(id);
	if (cm_addr_is_any(&id->dst))
		id->dgid = id->sgid;
	else
		cm_roce_gid(&id->dst, &id->dgid);
	return 0;
}

int cm_roce_route(struct cm_id *id)
{
	if (id->dst.sa.sa_family == AF_IB && !cm_addr_is_mcast(&id->dst))
		return -ENODEV; /* as Linux: a GID does not say which network device leads there */
	if (id->port->state != IB_PORT_ACTIVE)
		return -ENETUNREACH;
	id->path = (struct control_cm_path){ .sgid = id->sgid,
		                             .dgid = id->dgid,
		                             .pkey = id->pkey,
		                             .mtu = id->port->mtu,
		                             .rate = IBV_RATE_10_GBPS,
		                             .life = PATH_LIFE,
		                             .traffic_class = id->tos,
		                             .hop_limit = HOP_LIMIT };
	id->has_path = true;
	id->state = CM_ROUTE_RESOLVED;
	return cm_event_send(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

/* ---- groups ---- */

int cm_roce_record(struct cm_id *id, const struct control_cm_join *request,
                   struct wire_mcmember *rec)
{
	int ret = cm_id_default_qkey(id);

	if (ret)
		return ret;
	if (!cm_addr_is_mcast(&request->addr))
		return -EINVAL;
	*rec = (struct wire_mcmember){ .port_gid = id->sgid,
		                       .qkey = id->qkey,
		                       .pkey = IB_PKEY_DEFAULT,
		                       .mtu = id->port->mtu,
		                       .rate = IBV_RATE_10_GBPS,
		                       .tclass = id->tos,
		                       .hop_limit = HOP_LIMIT };
	cm_roce_gid(&request->addr, &rec->mgid);
	return 0;
}

int cm_roce_join(struct cm_port *p, const struct wire_mcmember *rec)
{
	const struct cm_ops *ops = &p->cm->ops;

	/* a send-only member does not join on the network */
	if (!(rec->join_state & IB_JOIN_FULL) || !ops->join)
		return 0;
	return ops->join(ops->arg, p->port, &rec->mgid);
}

void cm_roce_leave(struct cm_port *p, const struct ib_gid *mgid, uint8_t states)
{
	const struct cm_ops *ops = &p->cm->ops;

	if ((states & IB_JOIN_FULL) && ops->leave)
		ops->leave(ops->arg, p->port, mgid);
}
