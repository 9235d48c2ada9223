/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UDP sockets for RoCEv2, without privileges: sockets that receive on port 4791 of one network
 * device, sockets that send through it from a port of the caller's choice, and batches of datagrams
 * to and from them, with one system call for each batch. Nothing blocks, except netdev_udp_send()
 * on a full socket.
 *
 * IPv4 and IPv6 need a socket each. struct wire_ip has the fields of the IP header that sockets can
 * read or set. There is no state outside of the kernel: any number of processes may use duplicates
 * of a socket, and any thread may call.
 */
#ifndef NETDEV_UDP_H
#define NETDEV_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "netdev/network.h"
#include "wire/ip.h"

#define NETDEV_UDP_BATCH        64 /* datagrams for each system call */
#define NETDEV_UDP_WAIT_SECONDS 1  /* the longest wait for room in a socket */

/*
 * Sockets are opened with this hop limit, which rdma_cm uses for groups, and traffic class 0. Other
 * values are set with each message, which costs a few percent. A hop limit of 0 is sent as 1.
 */
#define NETDEV_UDP_HOP_LIMIT 64

/* Source ports that RoCEv2 uses: the upper two bits are set (annex A17.3.1.2). */
#define NETDEV_UDP_SOURCE_FIRST 0xC000
#define NETDEV_UDP_SOURCE_LAST  0xFFFF

/*
 * Opens a socket that receives datagrams of @family, AF_INET or AF_INET6, to port 4791 of the
 * device @at: to its addresses, and to every group that any process has joined on it (mcast.h).
 * Returns a descriptor, which the caller closes; or -errno with a message in @why, @len bytes;
 * -EADDRINUSE: another process has the port, and @why names it if possible.
 */
int netdev_udp_open_receive(int family, const struct netdev_site *at, char *why, size_t len);

/*
 * The device of @fd, a socket of netdev_udp_open_receive(), is gone. It and all its duplicates
 * receive nothing from now on, except what they have received; and they are not in the way of
 * netdev_udp_reopen_receive() on a device of the same index.
 */
void netdev_udp_retire(int fd);

/* As netdev_udp_open_receive(), if there may still be duplicates of sockets that are retired. */
int netdev_udp_reopen_receive(int family, const struct netdev_site *at, char *why, size_t len);

/*
 * Opens a socket that sends through the device @at from port *@port. If another socket has that
 * port exclusively, chooses another one from NETDEV_UDP_SOURCE_FIRST to _LAST and writes it to
 * *@port; several processes may share one. Datagrams are never fragmented, none comes back to this
 * host, and the socket receives nothing. Returns a descriptor, which the caller closes; or -errno
 * with @why.
 */
int netdev_udp_open_send(int family, const struct netdev_site *at, uint16_t *port, char *why,
                         size_t len);

/* A datagram to receive. @in: the caller sets it; @out: the call does. */
struct netdev_udp_datagram {
	struct iovec
	        iov[2]; /* in: where its beginning goes, and where the rest; may be of length 0 */
	struct wire_ip ip; /* out; always id 0 and DF set, as sockets do not show them */
	uint32_t bytes;    /* out: received */
	bool truncated;    /* out: the datagram was longer */
	/* out: the kernel has joined several datagrams with the same headers (UDP_GRO); each has
	 * this many bytes, the last may be shorter. 0: it is one datagram */
	uint16_t each;
};

#define NETDEV_UDP_MAX_BYTES 65535 /* the most that joined datagrams have */

/*
 * Receives up to @n datagrams, at most NETDEV_UDP_BATCH, without waiting; joined ones count as one.
 * Returns how many; 0: none; or -errno. *@lost, unless @lost is NULL: how many datagrams the socket
 * has dropped since it was opened because it was full (modulo 2^32; joined ones count as one), as
 * of the last datagram of the batch; not written if there was none. If the device is down or gone,
 * there is no error and nothing is received.
 */
int netdev_udp_receive(int fd, struct netdev_udp_datagram *datagram, unsigned n, uint32_t *lost);

/*
 * A message to send. A message that follows has the same headers as the one before it and the same
 * length; the last one may be shorter. Such messages leave as one piece of at most
 * NETDEV_UDP_PIECE_BYTES, which the device, or the kernel right before it, cuts into datagrams
 * (UDP_SEGMENT). One such piece costs a fifth of as many single datagrams. Over IPv4 the
 * identifications of a piece's datagrams count up from 0.
 */
struct netdev_udp_message {
	const struct wire_ip *ip; /* udp_source and ipv4_id are ignored: the socket sets them */
	struct iovec iov[3];
	uint8_t n_iov; /* entries of iov in use */
	bool follows;
	int error; /* out: 0: the kernel has accepted it; or -errno */
};

#define NETDEV_UDP_PIECE_BYTES 65000 /* of UDP payload */

/*
 * Sends @n messages, in order, in as few system calls as possible. If one fails, or a piece, the
 * later ones are still sent. Waits while the socket is full, at most NETDEV_UDP_WAIT_SECONDS for
 * each system call. Returns how many the kernel accepted; the others have an error: -EMSGSIZE
 * (larger than the device's MTU), -ENETUNREACH (no route, or the device is down; IPv4: or sgid is
 * no address of this host), -EINVAL (IPv6: sgid is no address of this host), -EHOSTUNREACH,
 * -ENETDOWN, -ENODEV, -EPERM (a filter), -EAGAIN (no room for NETDEV_UDP_WAIT_SECONDS), ... A piece
 * of several can fail where one message would not: -EIO or -EINVAL (the device or the kernel cannot
 * cut it), -EMSGSIZE.
 */
unsigned netdev_udp_send(int fd, struct netdev_udp_message *message, unsigned n);

#endif
