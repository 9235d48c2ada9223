/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files about RoCE share: the network devices that are the fabric's Ethernet ports, and
 * the daemon's part in receiving from them (hca/link_roce.h).
 */
#ifndef DAEMON_ROCE_STATE_H
#define DAEMON_ROCE_STATE_H

#include <net/if.h>

#include "daemon/client.h"
#include "daemon/mads.h"
#include "daemon/ports.h"
#include "hca/link_roce.h"
#include "netdev/mcast.h"
#include "netdev/netdev.h"

/* What RoCE needs of the daemon. */
struct daemon_roce_needs {
	struct fabric *f;
	struct daemon_loop *loop;
	struct daemon_mads *mads;
	struct daemon_ports *ports;
	struct daemon_clients *clients;
};

struct daemon_roce_port {
	struct daemon_roce *roce;
	char device[IFNAMSIZ];
	char *host;   /* where its HCA is; NULL: on the only host */
	int ifindex;  /* 0: the device is gone */
	uint32_t mtu; /* the device's */
	struct fabric_port *port;
	struct netdev_gid_table gids;
	bool deaf;         /* there are no sockets; retry_timer tries again */
	uint16_t round;    /* of the sockets */
	int receive_fd[2]; /* IPv4, IPv6; -1: there is none */
	int wake_fd;       /* a process writes to it to call the daemon back to the sockets */
	sd_event_source *receive_source[2], *wake_source;
	struct base_timer away_timer, retry_timer;
	uint64_t away_ns; /* until the daemon looks again whether somebody polls */
	struct hca_roce *link;
	struct netdev_mcast *mcast;
};

struct daemon_roce {
	struct daemon_roce_needs d; /* all NULL until it starts */
	struct netdev_watch *watch;
	sd_event_source *watch_source;
	struct daemon_roce_port *port; /* all ports on Ethernet, in the order of the port table */
	unsigned n_ports;
	/* the daemon as a process that uses its own fabric */
	struct daemon_client *self;
	struct control_client *control;
	struct hca_process *process;
};

/* The port with that index in the port table, which is on Ethernet. */
static inline struct daemon_roce_port *daemon_roce_port(const struct daemon_roce *r, uint32_t index)
{
	return &r->port[index - r->d.f->n_ib_ports];
}

#endif
