/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Groups of Ethernet ports: see roce_groups.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "daemon/network/roce_groups.h"
#include "fabric/forwarding/attach.h"
#include "fabric/plan/ethernet.h"

#define WARNED_EACH 4 /* then each time that the number is a power of two, as with failures */

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

/* perftest and others do nothing else. A program that has joined to send only is taken at its word.
 */
static bool joins_by_attaching(const struct daemon_roce *r, enum daemon_roce_joined joined)
{
	return r->d.f->settings.roce_attach_joins && joined != DAEMON_ROCE_SENDS_ONLY;
}

/* That a card in its place would hear nothing. */
static void warn(struct daemon_roce *r, const struct daemon_qp *qp, const struct ib_gid *mgid,
                 enum daemon_roce_joined joined)
{
	unsigned n = ++port_of(r, qp->hca->hca)->n_unjoined;
	char group[INET6_ADDRSTRLEN] = "?";

	if (n > WARNED_EACH && (n & (n - 1)))
		return;
	inet_ntop(AF_INET6, mgid->raw, group, sizeof(group));
	base_log_warning(
	        roce,
	        "QP 0x%06x of %s is attached to %s without a join%s: a card behind a switch "
	        "that snoops would hear nothing%s",
	        qp->qpn, shm_hca_at(r->d.f->region, qp->hca->hca)->name, group,
	        joined == DAEMON_ROCE_SENDS_ONLY ? " but that of a send-only member" : "",
	        joins_by_attaching(r, joined) ? "; here attaching joins (roce_attach_joins)"
	                                      : ", and so does it");
}

int daemon_roce_attach(struct daemon_roce *r, const struct daemon_qp *qp,
                       const struct control_attach *to, enum daemon_roce_joined joined)
{
	struct fabric *f = r->d.f;
	uint32_t hca = qp->hca->hca;
	struct fabric_attached *g = fabric_attach_find(f, hca, &to->mgid);
	struct daemon_roce_port *p = port_of(r, hca);
	bool joins = joins_by_attaching(r, joined) && (!g || !g->joined);
	int ret = joins ? join(p, &to->mgid) : 0;

	if (ret)
		return ret;
	ret = fabric_attach_add(f, hca, qp->qpn, &to->mgid, to->mlid);
	if (ret && joins)
		netdev_mcast_leave(p->mcast, &to->mgid);
	if (ret)
		return ret;
	g = fabric_attach_find(f, hca, &to->mgid);
	if (g)
		g->joined |= joins;
	if (joined != DAEMON_ROCE_IS_MEMBER)
		warn(r, qp, &to->mgid, joined);
	return 0;
}

/* Nobody is attached any more. */
static void on_emptied(void *arg, const struct fabric_attached *g)
{
	struct daemon_roce *r = arg;

	if (g->joined)
		netdev_mcast_leave(port_of(r, g->hca)->mcast, &g->mgid);
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
