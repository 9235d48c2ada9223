/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files about RoCE share: the network devices that are the fabric's Ethernet
 * ports, and the manager's part in receiving from them (hca/wire.h).
 */
#ifndef DAEMON_ROCE_H
#define DAEMON_ROCE_H

#include <net/if.h>

#include "daemon/state.h"
#include "hca/wire.h"
#include "link/mcast.h"
#include "link/netdev.h"

struct daemon_roce_port {
	struct daemon_roce *roce;
	char device[IFNAMSIZ];
	int ifindex; /* 0: the device is gone */
	struct fabric_port *port;
	struct link_gid_table gids;
	uint8_t round;     /* of the sockets */
	int receive_fd[2]; /* IPv4, IPv6; -1: there is none */
	int wake_fd;       /* written by who wants us to look at them again */
	sd_event_source *receive_source[2], *wake_source, *away_timer;
	uint64_t away_us; /* when we look next whether somebody polls */
	struct hca_wire *wire;
	struct link_mcast *mcast;
};

struct daemon_roce {
	struct daemon *d;
	struct link_watch *watch;
	sd_event_source *watch_source;
	struct daemon_roce_port *port;
	unsigned n_ports;
	/* the manager as a process of its own fabric */
	struct daemon_client *self;
	struct control_client *control;
	struct hca_process *process;
};

/* ---- roce_wire.c ---- */

/* The manager opens its own HCAs, to receive when nobody else does. 0 or -errno. */
int roce_wire_init(struct daemon_roce *r);

/* Before the clients go, of whom it is one. */
void roce_wire_fini(struct daemon_roce *r);

/* Opens the port's sockets, for the first time or anew. 0, or -errno with @why. */
int roce_wire_open(struct daemon_roce_port *p, char *why, size_t len);

/* Begins to receive by them. 0 or -errno. */
int roce_wire_start(struct daemon_roce_port *p);
void roce_wire_stop(struct daemon_roce_port *p);

/* ---- roce_mad.c ---- */

/* From now on MADs go by the wires. */
void roce_mad_init(struct daemon_roce *r);
void roce_mad_fini(struct daemon_roce *r);

/* ---- roce_groups.c ---- */

/* 0 or -errno. */
int roce_groups_init(struct daemon_roce *r);
void roce_groups_fini(struct daemon_roce *r);

/* The device is back, a new one maybe. */
void roce_groups_renew(struct daemon_roce_port *p);

#endif
