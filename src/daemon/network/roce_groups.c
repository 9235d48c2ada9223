/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Groups of Ethernet ports: see roce_groups.h.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "daemon/network/roce_groups.h"
#include "fabric/forwarding/attach.h"
#include "fabric/plan/ethernet.h"

static int join(struct daemon_roce_port *p, const struct ib_gid *mgid)
{
	char why[256] = "";
	int ret = netdev_mcast_join(p->mcast, mgid, why, sizeof(why));

	if (ret)
		base_log_warning(roce, "%s", why);
	return ret;
}

static struct daemon_roce_port *port_of(struct daemon_roce *r, uint32_t hca)
{
	return daemon_roce_port(r, shm_hca_at(r->d.f->region, hca)->first_port);
}

int daemon_roce_attach(struct daemon_roce *r, const struct daemon_qp *qp, const struct ib_gid *mgid,
                       uint16_t mlid)
{
	struct fabric *f = r->d.f;
	uint32_t hca = qp->hca->hca;
	bool first = !fabric_attach_find(f, hca, mgid);
	struct daemon_roce_port *p = port_of(r, hca);
	int ret = 0;

	if (first && f->settings.roce_attach_joins)
		ret = join(p, mgid);
	if (ret)
		return ret;
	ret = fabric_attach_add(f, hca, qp->qpn, mgid, mlid);
	if (ret && first && f->settings.roce_attach_joins)
		netdev_mcast_leave(p->mcast, mgid);
	return ret;
}

/* Nobody is attached any more. */
static void on_emptied(void *arg, uint32_t hca, const struct ib_gid *mgid)
{
	struct daemon_roce *r = arg;

	if (r->d.f->settings.roce_attach_joins && fabric_hca_is_ethernet(r->d.f, hca))
		netdev_mcast_leave(port_of(r, hca)->mcast, mgid);
}

int daemon_roce_join(struct daemon_roce *r, struct fabric_port *port, const struct ib_gid *mgid)
{
	return join(daemon_roce_port(r, port->index), mgid);
}

void daemon_roce_leave(struct daemon_roce *r, struct fabric_port *port, const struct ib_gid *mgid)
{
	netdev_mcast_leave(daemon_roce_port(r, port->index)->mcast, mgid);
}

/* ---- life ---- */

int roce_groups_init(struct daemon_roce *r)
{
	int ret = 0;

	for (unsigned i = 0; i < r->n_ports && !ret; i++)
		ret = netdev_mcast_new(&r->port[i].mcast, roce_port_network(&r->port[i]),
		                       r->port[i].ifindex);
	r->d.f->attach->emptied = on_emptied;
	r->d.f->attach->emptied_arg = r;
	return ret;
}

void roce_groups_renew(struct daemon_roce_port *p)
{
	char why[256] = "";

	if (netdev_mcast_renew(p->mcast, p->ifindex, why, sizeof(why)))
		base_log_warning(roce, "%s", why);
}
