/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part that the files about RoCE share: the network devices that are the fabric's Ethernet
 * ports, and the daemon's part in receiving from them (hca/link/link_roce.h).
 */
#ifndef DAEMON_ROCE_STATE_H
#define DAEMON_ROCE_STATE_H

#include <net/if.h>

#include "base/hash.h"
#include "daemon/clients/objects.h"
#include "daemon/network/self.h"
#include "daemon/network/packet_timers.h"
#include "daemon/subnet/mads.h"
#include "daemon/subnet/ports.h"
#include "hca/link/link_roce.h"
#include "hosts/namespaces.h"
#include "hosts/plan.h"
#include "netdev/mcast.h"
#include "netdev/neighbour.h"
#include "netdev/netdev.h"

/* The parts of the daemon that RoCE needs. */
struct daemon_roce_needs {
	struct fabric *f;
	const struct hosts_namespaces *ns; /* by host; NULL: devices are in the machine's network */
	struct daemon_loop *loop;
	struct daemon_mads *mads;
	struct daemon_ports *ports;
	struct daemon_self *self;
	struct daemon_wires *wires;
	struct daemon_objects *objects;
	struct cm *cm;
};

/* Where devices are: the machine's network, or that of a host that has its own. */
struct daemon_roce_network {
	struct daemon_roce *roce;
	int host;                          /* its index; -1: it is the machine's */
	const struct hosts_namespaces *ns; /* of a host */
	struct netdev_network sockets;     /* makes them there */
	struct netdev_watch *watch;
	struct daemon_source watch_source;
	struct netdev_neighbours neighbours;
	unsigned n_searches; /* for neighbours: that are watched meanwhile */
};

/* Hears a port's datagrams of one IP version. */
struct daemon_roce_ear {
	struct daemon_source source;
	struct daemon_roce_port *port;
};

struct daemon_roce_port {
	struct daemon_roce *roce;
	struct daemon_roce_network *network;
	char device[IFNAMSIZ];
	char *host;   /* where its HCA is; NULL: on the only host */
	bool bridged; /* a port of the hosts' own bridge */
	bool is_host; /* that has nothing else: the host is planned with its first one */
	unsigned nth; /* of those of that host, from 0 */
	int ifindex;  /* 0: the device is gone */
	uint32_t mtu; /* the device's */
	struct fabric_port *port;
	struct netdev_gid_table gids;
	struct base_timer gids_timer; /* an address has no place there: until one is free */
	bool deaf;                    /* there are no sockets; retry_timer tries again */
	uint16_t round;               /* of the sockets */
	int receive_fd[2];            /* IPv4, IPv6; -1: there is none */
	int wake_fd; /* a process writes to it to call the daemon back to the sockets */
	struct daemon_roce_ear ear[2];
	struct daemon_source wake_source;
	struct base_timer away_timer, retry_timer;
	uint64_t away_ns;   /* until the daemon looks again whether somebody polls */
	unsigned vain_left; /* how often the daemon may still find the sockets empty before it
	                       leaves them to who polls */
	struct hca_roce *link;
	struct netdev_mcast *mcast;
	unsigned n_unjoined; /* how often a queue pair was attached without a join */
};

struct daemon_roce {
	struct daemon_roce_needs d;          /* all NULL until it starts */
	bool own_networks;                   /* hosts have their own, and devices are made there */
	unsigned first_host;                 /* of ->port: from there on they are hosts, */
	unsigned hcas;                       /* so many each */
	struct daemon_roce_network *network; /* the machine's alone, or one for each port */
	unsigned n_networks;
	struct base_hash searches;     /* struct cm_search, by hop: roce_neighbours.c */
	struct hosts_device *made;     /* by port: to be made on hosts; NULL: it is there already */
	struct daemon_roce_port *port; /* all ports on Ethernet, in the order of the port table */
	unsigned n_ports;
};

/* The network of its sockets: NULL for the machine's. */
static inline const struct netdev_network *roce_port_network(const struct daemon_roce_port *p)
{
	return p->network->ns ? &p->network->sockets : NULL;
}

/* The port with that index in the port table, which is on Ethernet. */
static inline struct daemon_roce_port *daemon_roce_port(const struct daemon_roce *r, uint32_t index)
{
	return &r->port[index - r->d.f->n_ib_ports];
}

#endif
