/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An IPoIB interface: the device that the host sees, the link, and the tables between them.
 * interface.c opens it and runs it, partition.c finds its P_Key, transmit.c has the way from device
 * to link, receive.c the way back, announce.c tells neighbours of us, status.c answers questions
 * about the interface. One thread.
 */
#ifndef IPOIB_INTERFACE_H
#define IPOIB_INTERFACE_H

#include "ipoib/connections.h"
#include "ipoib/groups.h"
#include "ipoib/link.h"
#include "ipoib/merge.h"
#include "ipoib/neighbours.h"
#include "ipoib/options.h"
#include "ipoib/paths.h"
#include "ipoib/routes.h"
#include "ipoib/tun.h"
#include "wire/ipoib.h"

/* The counters of the status, and the things that each counts. */
#define IPOIB_COUNTERS(X)                                                           \
	X(sent)            /* packets that the link has taken, large ones as one */ \
	X(received)        /* from the link */                                      \
	X(delivered)       /* to the kernel, merged ones as one */                  \
	X(no_slot)         /* the queue was full */                                 \
	X(cannot_send)     /* no IP packet, or segments that cannot be cut */       \
	X(too_large)       /* for the destination: the kernel was told */           \
	X(short_packets)   /* no header, or less than the IP header says */         \
	X(unknown_types)   /* neither IP nor ARP */                                 \
	X(bad_resolutions) /* ARP or neighbour discovery that breaks a rule */      \
	X(spoofed)         /* the sender claimed another port than its own */       \
	X(conflicts)       /* the sender claimed an address of ours */              \
	X(not_delivered)   /* the kernel did not want it: the device is not up */   \
	X(resolved)        /* questions for our addresses that were answered */     \
	X(rejoins)         /* of all groups: the port, its LID or the SM changed */

struct ipoib_counters {
#define DECLARE(name) uint64_t name;
	IPOIB_COUNTERS(DECLARE)
#undef DECLARE
};

/* An address of ours that neighbours have been told, or need not be. */
struct ipoib_told {
	struct ib_gid ip;
	bool seen; /* the kernel has reported it */
};

struct ipoib_interface {
	const struct ipoib_options *options;
	int epoll, signals;
	struct ibv_context *verbs;
	char device[WIRE_IPOIB_DEVICE_ROOM];
	uint8_t port_num;
	struct ipoib_port port;
	uint16_t pkey_index; /* of the queue pair */
	struct ipoib_tun tun;
	struct ipoib_link *link;
	struct ipoib_sa *sa;
	struct netdev_watch *watch;
	struct ipoib_routes *routes;

	struct base_timers timers;
	struct base_timer look; /* for groups that were joined without a report */
	struct ipoib_budget budget;
	struct ipoib_neighbours neighbours;
	struct ipoib_paths paths;
	struct ipoib_groups groups;
	struct ipoib_connections connections; /* in connected mode */
	struct ipoib_merge merge;

	bool members_changed; /* sockets may have joined or left groups */
	bool reported;        /* on the status descriptor */
	bool was_ready;
	bool was_down;           /* set so by the administrator */
	bool armed, armed_sends; /* the completion queues; of sends by connections */
	bool woken;              /* by them: there are events */
	bool tun_has_packets;    /* or may have */
	bool has_slept;          /* since packets moved last */
	struct ipoib_told told[IPOIB_MAX_ADDRESSES + 1]; /* the link-local one is not an option */
	unsigned n_told;
	unsigned mtu; /* of datagrams */
	struct ipoib_counters counters;
};

/* The device's: larger than that of datagrams in connected mode. */
static inline unsigned ipoib_interface_mtu(const struct ipoib_interface *i)
{
	return i->options->connected ? IPOIB_CONNECTED_MTU : i->mtu;
}

/* ---- interface.c ---- */

/* Makes it; one line on standard error says what failed. 0 or -errno; -ECANCELED: a signal asked
 * for the end before there was one. */
int ipoib_interface_open(struct ipoib_interface *i, const struct ipoib_options *options);
/* Runs until the fabric ends, or a signal asks for it. 0 or -errno. */
int ipoib_interface_run(struct ipoib_interface *i);
void ipoib_interface_close(struct ipoib_interface *i);

/* Writes to the status descriptor, the first time. */
void ipoib_report(struct ipoib_interface *i);

/* The addresses of the device, and whether one of them is @ip, or is on the same link as @ip. */
const struct netdev *ipoib_device(const struct ipoib_interface *i);
bool ipoib_is_ours(const struct ipoib_interface *i, const struct ib_gid *ip);
bool ipoib_is_on_link(const struct ipoib_interface *i, const struct ib_gid *ip);
/* Whether @ip has its prefix in common with @address. */
bool ipoib_same_prefix(const struct netdev_address *address, const struct ib_gid *ip);

/* ---- partition.c ---- */

/* Finds the P_Key in the port's table: ->port.pkey and ->pkey_index. 0; -ENOENT: it has none; -EIO.
 */
int ipoib_partition_find(struct ipoib_interface *i);
/* Whether the port is still in the partition; the queue pair follows the P_Key to its place. */
bool ipoib_partition_follow(struct ipoib_interface *i);
/*
 * Reports that there is nothing to wait for, and waits until the port is in the partition. The
 * device is open, and nothing else. 0; -ECANCELED: by a signal; -ENODEV: the fabric has ended;
 * -errno.
 */
int ipoib_partition_await(struct ipoib_interface *i);

/* ---- transmit.c ---- */

/* Sends what the kernel has, as much as there is room for at once; returns how many packets. */
unsigned ipoib_transmit(struct ipoib_interface *i);

/* A slot, ready for a packet that we make ourselves. False: there is none. */
bool ipoib_own_packet(struct ipoib_interface *i, struct ipoib_packet *p, enum ipoib_type type);
/* Send a packet that is in the slot, as a datagram: to a link-layer address; to a group. */
void ipoib_send_to(struct ipoib_interface *i, const struct ipoib_address *to,
                   struct ipoib_packet *p);
void ipoib_send_to_group(struct ipoib_interface *i, const struct ib_gid *mgid,
                         struct ipoib_packet *p);
/* The group of the link that an IP group, or an IPv4 broadcast address, is mapped to. */
void ipoib_map_group(const struct ipoib_interface *i, const struct ib_gid *ip, struct ib_gid *mgid);

extern const struct ipoib_neighbour_ops ipoib_neighbour_ops;
/* For paths and groups: send packets that have waited. */
void ipoib_send_held(void *arg, struct ibv_ah *ah, uint32_t qpn, const struct ipoib_packet *p);
void ipoib_send_held_to_group(void *arg, struct ibv_ah *ah, const struct ipoib_packet *p);
/* For neighbours and connections: by a connection, if there is one. */
void ipoib_send_resolved(void *arg, const struct ipoib_address *to, const struct ipoib_packet *p);

/* Where others find us. */
struct ipoib_address ipoib_own_address(const struct ipoib_interface *i);

/* ---- announce.c ---- */

/* Tells all neighbours those addresses of ours that they have not been told; the link has to work.
 */
void ipoib_announce(struct ipoib_interface *i);
/* All of them: we may be somewhere else. */
void ipoib_announce_again(struct ipoib_interface *i);
/* They need not be told this one. */
void ipoib_announce_told(struct ipoib_interface *i, const struct ib_gid *ip);

/* ---- receive.c ---- */

/* Takes a packet of the link, or of a connection; it may stay in use until ipoib_merge_flush(). */
void ipoib_receive(struct ipoib_interface *i, const struct ipoib_received *r);
void ipoib_receive_connected(struct ipoib_interface *i, const struct ipoib_rc_received *r);
/* Gives it to the kernel: ipoib_merged. */
void ipoib_deliver(void *arg, const struct virtio_net_hdr *vnet, const struct iovec *piece,
                   unsigned n);

/* ---- status.c ---- */

/* Answers what has come by the control socket. 0, also if its other end is closed. */
int ipoib_status_answer(struct ipoib_interface *i);

#endif
