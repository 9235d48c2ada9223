/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UDP sockets as RoCEv2 wants them, without any privilege: those that receive on port 4791 of
 * one network device, those that send from a port of the caller's choice through it, and
 * batches of datagrams to and from them, one system call a batch. Nothing here blocks but
 * link_udp_send() on a full socket.
 *
 * IPv4 and IPv6 have a socket each. All that a datagram's IP header says and sockets can show
 * or set is in struct wire_ip. A socket is the kernel's, so any number of processes may use
 * duplicates of one; there is no state here, and any thread may call.
 */
#ifndef LINK_UDP_H
#define LINK_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/ip.h"

#define LINK_UDP_BATCH        32 /* datagrams a system call */
#define LINK_UDP_WAIT_SECONDS 1  /* at most, for room in a socket */

/*
 * Sockets are opened for this hop limit and traffic class 0; others go with each message, which
 * costs a few percent. It is that of rdma_cm's groups. A hop limit of 0 is sent as 1.
 */
#define LINK_UDP_HOP_LIMIT 64

/* Source ports that RoCEv2 uses: the upper two bits are set (annex A17.3.1.2). */
#define LINK_UDP_SOURCE_FIRST 0xC000
#define LINK_UDP_SOURCE_LAST  0xFFFF

/*
 * A socket that receives what comes in on device @ifname to port 4791 by @family, AF_INET or
 * AF_INET6: to its addresses, and to every group that anybody has joined on it (mcast.h).
 * Returns a descriptor, or -errno with @why, @len bytes, saying what was tried
 * and what is in the way; -EADDRINUSE: somebody else has the port, @why says who if that can
 * be told.
 */
int link_udp_open_receive(int family, const char *ifname, char *why, size_t len);

/*
 * A socket that sends through device @ifname from port *@port, or if that is taken from
 * another between LINK_UDP_SOURCE_FIRST and _LAST, and then *@port says which. Several
 * processes may have the same. Datagrams are never fragmented, none comes back to this host,
 * and the socket receives nothing. Returns a descriptor or -errno with @why.
 */
int link_udp_open_send(int family, const char *ifname, uint16_t *port, char *why, size_t len);

/* One to receive. */
struct link_udp_datagram {
	struct iovec iov[2]; /* in: where its beginning, and where the rest goes, if anywhere */
	struct wire_ip ip;   /* out; id 0 and DF set, whatever it had */
	uint32_t bytes;      /* out: that were put there */
	bool truncated;      /* out: there were more */
	/* out: the kernel has joined several with the same headers (UDP_GRO), each of so many
	 * bytes, the last one may be shorter; 0: it is one */
	uint16_t each;
};

#define LINK_UDP_MAX_BYTES 65535 /* of what comes joined */

/*
 * Receives up to @n datagrams, at most LINK_UDP_BATCH, without waiting; joined ones are one.
 * Returns how many, 0 if there are none, or -errno. *@lost, unless NULL: datagrams that the
 * socket had no room for since it was opened (modulo 2^32; joined ones were one), as the last of
 * the batch says; untouched if there were none. A device that is down or gone makes no error:
 * nothing comes.
 */
int link_udp_receive(int fd, struct link_udp_datagram *datagram, unsigned n, uint32_t *lost);

/*
 * One to send. One that follows goes by the same headers as the one before, and is as long, or
 * shorter and the last that follows: they leave in one piece of at most LINK_UDP_PIECE_BYTES,
 * which the device, or the kernel right before it, cuts into datagrams (UDP_SEGMENT). That is
 * a fifth of the work. Over IPv4 the identification of a piece's datagrams counts up from 0.
 */
struct link_udp_message {
	const struct wire_ip *ip; /* udp_source and ipv4_id are not looked at: the socket's */
	struct iovec iov[3];
	uint8_t n_iov; /* of these */
	bool follows;
	int error; /* out: 0: the kernel has taken it; or -errno */
};

#define LINK_UDP_PIECE_BYTES 65000 /* of UDP payload */

/*
 * Sends @n messages, in order, in as few system calls as can be; one that fails, or piece of
 * several, does not keep back those behind it. Waits while the socket is full. Returns how many
 * were taken; of the others their error says why: -EMSGSIZE (larger than the device's MTU),
 * -ENETUNREACH (no route, or the device is down; IPv4: or sgid is no address of this host), -EINVAL
 * (IPv6: sgid is no address of this host), -EHOSTUNREACH, -ENETDOWN, -ENODEV, -EPERM (a filter),
 * -EAGAIN (no room for LINK_UDP_WAIT_SECONDS), ... A piece of several can fail where one message
 * would not: -EIO or -EINVAL (the device or the kernel cannot cut it), -EMSGSIZE.
 */
unsigned link_udp_send(int fd, struct link_udp_message *message, unsigned n);

#endif
