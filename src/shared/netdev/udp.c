/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UDP sockets for RoCEv2: see udp.h.
 *
 * The ICRC covers the IPv4 identification, which a sender must therefore know. The kernel sets it
 * to 0 if the datagram must not be fragmented and its socket is not connected. So destination and
 * source go with each message, and no socket is ever connected.
 */
#define _GNU_SOURCE /* sendmmsg(), struct in6_pktinfo */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/in6.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/signals.h"
#include "base/util.h"
#include "netdev/holder.h"
#include "netdev/udp.h"

#define BUFFER_BYTES  (8 << 20) /* net.core.rmem_max may allow less */
#define CONTROL_BYTES 192       /* enough for all control messages that we request */
#define FLOW_LABEL    0xFFFFF

/* Where the C library's header comes first, older kernels' headers leave it out. */
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif

/* ---- making sockets ---- */

/* A socket option whose value is an int. */
struct option {
	int level, name, value;
};

static int complain(int error, char *why, size_t len, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* Writes the message to @why; returns @error. */
static int complain(int error, char *why, size_t len, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, len, format, args);
	va_end(args);
	return error;
}

static int set_options(int fd, const struct option *option, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (setsockopt(fd, option[i].level, option[i].name, &option[i].value,
		               sizeof(option[i].value)))
			return -errno;
	return 0;
}

/* Makes the buffer as large as allowed; it is no error if it stays small. */
static void enlarge(int fd, int name, int name_force)
{
	int bytes = BUFFER_BYTES;

	if (setsockopt(fd, SOL_SOCKET, name_force, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, name, &bytes, sizeof(bytes));
}

static int bind_to_port(int fd, int family, uint16_t port)
{
	const struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	const struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int ret = family == AF_INET ? bind(fd, (const struct sockaddr *)&in, sizeof(in))
	                            : bind(fd, (const struct sockaddr *)&in6, sizeof(in6));

	return ret ? -errno : 0;
}

/* A socket on the device @at with these options, not bound yet. */
static int open_socket(int family, const struct netdev_site *at, const struct option *option,
                       size_t n)
{
	int fd = netdev_network_socket(at->network, family, SOCK_DGRAM, 0), ret = 0;

	if (fd < 0)
		return fd;
	if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, at->device, strlen(at->device) + 1))
		ret = -errno;
	if (!ret)
		ret = set_options(fd, option, n);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

static const char *family_name(int family)
{
	return family == AF_INET ? "IPv4" : "IPv6";
}

/*
 * IP_RECVORIGDSTADDR shows the destination; IP_PKTINFO would make the kernel look up a route, too.
 */
static const struct option receive_ipv4[] = {
	{ IPPROTO_IP, IP_RECVORIGDSTADDR, 1 }, { IPPROTO_IP, IP_RECVTTL, 1 },
	{ IPPROTO_IP, IP_RECVTOS, 1 },         { SOL_SOCKET, SO_RXQ_OVFL, 1 },
	{ IPPROTO_IP, IP_MULTICAST_ALL, 1 },
};

/* Linux's rdma_rxe leaves out the UDP checksum, over IPv6 too. */
static const struct option receive_ipv6[] = {
	{ IPPROTO_IPV6, IPV6_V6ONLY, 1 },        { IPPROTO_IPV6, IPV6_RECVPKTINFO, 1 },
	{ IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1 },  { IPPROTO_IPV6, IPV6_RECVTCLASS, 1 },
	{ IPPROTO_IPV6, IPV6_FLOWINFO, 1 },      { SOL_SOCKET, SO_RXQ_OVFL, 1 },
	{ IPPROTO_IPV6, IPV6_MULTICAST_ALL, 1 }, { IPPROTO_UDP, UDP_NO_CHECK6_RX, 1 },
};

static int reuse_address(int fd, int yes)
{
	return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ? -errno : 0;
}

static int drop_all(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog filter = { .len = 1, .filter = &drop };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ? -errno : 0;
}

void netdev_udp_retire(int fd)
{
	drop_all(fd);
	reuse_address(fd, 1);
}

/*
 * Binds beside sockets that allow it, as retired ones do. Of sockets bound alike, the one that was
 * bound last receives what is sent to an address; all receive what is sent to a group. Once it is
 * bound, the socket is as exclusive as if it were alone.
 */
static int bind_beside(int fd, int family)
{
	int ret = reuse_address(fd, 1);

	if (!ret)
		ret = bind_to_port(fd, family, WIRE_ROCE_UDP_PORT);
	return ret ? ret : reuse_address(fd, 0);
}

static int explain_bind(int family, const char *device, int error, char *why, size_t len)
{
	char holder[128];

	if (error != -EADDRINUSE)
		return complain(error, why, len, "%s: cannot receive %s on UDP port %d: %s", device,
		                family_name(family), WIRE_ROCE_UDP_PORT, strerror(-error));
	netdev_holder_describe(WIRE_ROCE_UDP_PORT, holder, sizeof(holder));
	return complain(error, why, len, "%s: UDP port %d (%s) is taken by %s", device,
	                WIRE_ROCE_UDP_PORT, family_name(family), holder);
}

static int open_receive(int family, const struct netdev_site *at, bool beside, char *why,
                        size_t len)
{
	bool v4 = family == AF_INET;
	int fd = open_socket(family, at, v4 ? receive_ipv4 : receive_ipv6,
	                     v4 ? ARRAY_SIZE(receive_ipv4) : ARRAY_SIZE(receive_ipv6));
	int join = 1, ret;

	if (fd < 0)
		return complain(fd, why, len, "%s: no %s socket to receive with: %s", at->device,
		                family_name(family), strerror(-fd));
	enlarge(fd, SO_RCVBUF, SO_RCVBUFFORCE);
	setsockopt(fd, IPPROTO_UDP, UDP_GRO, &join, sizeof(join)); /* old kernels cannot */
	ret = bind_to_port(fd, family, WIRE_ROCE_UDP_PORT);
	if (ret == -EADDRINUSE && beside)
		ret = bind_beside(fd, family);
	if (!ret)
		return fd;
	close(fd);
	return explain_bind(family, at->device, ret, why, len);
}

int netdev_udp_open_receive(int family, const struct netdev_site *at, char *why, size_t len)
{
	return open_receive(family, at, false, why, len);
}

int netdev_udp_reopen_receive(int family, const struct netdev_site *at, char *why, size_t len)
{
	return open_receive(family, at, true, why, len);
}

static const struct option send_ipv4[] = {
	{ SOL_SOCKET, SO_REUSEADDR, 1 },
	{ IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE },
	{ IPPROTO_IP, IP_MULTICAST_LOOP, 0 },
	{ IPPROTO_IP, IP_TTL, NETDEV_UDP_HOP_LIMIT },
	{ IPPROTO_IP, IP_MULTICAST_TTL, NETDEV_UDP_HOP_LIMIT },
};

static const struct option send_ipv6[] = {
	{ SOL_SOCKET, SO_REUSEADDR, 1 },
	{ IPPROTO_IPV6, IPV6_V6ONLY, 1 },
	{ IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE },
	{ IPPROTO_IPV6, IPV6_DONTFRAG, 1 },
	{ IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0 },
	{ IPPROTO_IPV6, IPV6_UNICAST_HOPS, NETDEV_UDP_HOP_LIMIT },
	{ IPPROTO_IPV6, IPV6_MULTICAST_HOPS, NETDEV_UDP_HOP_LIMIT },
	{ IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0 },
};

/* Makes a socket that only sends drop what it receives, and limits its waiting for room. */
static int make_send_only(int fd)
{
	const struct timeval wait = { .tv_sec = NETDEV_UDP_WAIT_SECONDS };
	int ret = drop_all(fd);

	if (ret)
		return ret;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)))
		return -errno;
	enlarge(fd, SO_SNDBUF, SO_SNDBUFFORCE);
	return 0;
}

/* Binds to *@port, or to the next that is free. */
static int bind_to_source(int fd, int family, uint16_t *port)
{
	const unsigned n = NETDEV_UDP_SOURCE_LAST - NETDEV_UDP_SOURCE_FIRST + 1;
	uint16_t first = *port;
	int ret = bind_to_port(fd, family, first);

	for (unsigned i = 1; i < n && ret == -EADDRINUSE; i++) {
		*port = (uint16_t)(NETDEV_UDP_SOURCE_FIRST + (first + i) % n);
		ret = bind_to_port(fd, family, *port);
	}
	return ret;
}

int netdev_udp_open_send(int family, const struct netdev_site *at, uint16_t *port, char *why,
                         size_t len)
{
	bool v4 = family == AF_INET;
	int fd = open_socket(family, at, v4 ? send_ipv4 : send_ipv6,
	                     v4 ? ARRAY_SIZE(send_ipv4) : ARRAY_SIZE(send_ipv6));
	int ret;

	if (fd < 0)
		return complain(fd, why, len, "%s: no %s socket to send with: %s", at->device,
		                family_name(family), strerror(-fd));
	ret = make_send_only(fd);
	if (!ret)
		ret = bind_to_source(fd, family, port);
	if (!ret)
		return fd;
	close(fd);
	return complain(ret, why, len, "%s: cannot send %s from UDP port %u: %s", at->device,
	                family_name(family), *port, strerror(-ret));
}

/* ---- control messages beside a datagram ---- */

union address {
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

union control {
	struct cmsghdr align;
	char bytes[CONTROL_BYTES];
};

static int get_int(const struct cmsghdr *c)
{
	int value = 0;

	memcpy(&value, CMSG_DATA(c), sizeof(value));
	return value;
}

static void read_control_ipv4(const struct cmsghdr *c, struct wire_ip *ip)
{
	struct sockaddr_in to;

	switch (c->cmsg_type) {
	case IP_ORIGDSTADDR:
		memcpy(&to, CMSG_DATA(c), sizeof(to));
		ip->dgid = wire_gid_from_ipv4(to.sin_addr.s_addr);
		break;
	case IP_TTL:
		ip->hop_limit = (uint8_t)get_int(c);
		break;
	case IP_TOS:
		ip->traffic_class = *CMSG_DATA(c);
		break;
	}
}

static void read_control_ipv6(const struct cmsghdr *c, struct wire_ip *ip)
{
	struct in6_pktinfo info;

	switch (c->cmsg_type) {
	case IPV6_PKTINFO:
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		memcpy(&ip->dgid, &info.ipi6_addr, sizeof(ip->dgid));
		break;
	case IPV6_HOPLIMIT:
		ip->hop_limit = (uint8_t)get_int(c);
		break;
	case IPV6_TCLASS:
		ip->traffic_class = (uint8_t)get_int(c);
		break;
	case IPV6_FLOWINFO:
		ip->flow_label = ntohl((uint32_t)get_int(c)) & FLOW_LABEL;
		break;
	}
}

static void read_source(const union address *from, struct wire_ip *ip)
{
	if (from->in.sin_family == AF_INET) {
		ip->sgid = wire_gid_from_ipv4(from->in.sin_addr.s_addr);
		ip->udp_source = ntohs(from->in.sin_port);
	} else {
		memcpy(&ip->sgid, &from->in6.sin6_addr, sizeof(ip->sgid));
		ip->udp_source = ntohs(from->in6.sin6_port);
	}
}

/* Appends a control message to @m; msg_controllen is the length in use. */
static void put(struct msghdr *m, int level, int type, const void *data, size_t bytes)
{
	struct cmsghdr *c = (struct cmsghdr *)((char *)m->msg_control + m->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(c), data, bytes);
	m->msg_controllen += CMSG_SPACE(bytes);
}

static void put_int(struct msghdr *m, int level, int type, int value)
{
	put(m, level, type, &value, sizeof(value));
}

/* Tells the kernel to cut the message into datagrams of @bytes. */
static void put_segment(struct msghdr *m, uint16_t bytes)
{
	put(m, SOL_UDP, UDP_SEGMENT, &bytes, sizeof(bytes));
}

/* Values that the socket has anyway are left out: each costs the kernel 50 ns. */
static void write_ipv4(const struct wire_ip *ip, union address *to, struct msghdr *m)
{
	const struct in_pktinfo info = { .ipi_spec_dst.s_addr = wire_gid_to_ipv4(&ip->sgid) };

	to->in = (struct sockaddr_in){ .sin_family = AF_INET,
		                       .sin_port = htons(WIRE_ROCE_UDP_PORT),
		                       .sin_addr.s_addr = wire_gid_to_ipv4(&ip->dgid) };
	m->msg_namelen = sizeof(to->in);
	put(m, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	if (ip->hop_limit != NETDEV_UDP_HOP_LIMIT)
		put_int(m, IPPROTO_IP, IP_TTL, ip->hop_limit ? ip->hop_limit : 1);
	if (ip->traffic_class)
		put_int(m, IPPROTO_IP, IP_TOS, ip->traffic_class);
}

static void write_ipv6(const struct wire_ip *ip, union address *to, struct msghdr *m)
{
	struct in6_pktinfo info = { .ipi6_ifindex = 0 };

	to->in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
		                         .sin6_port = htons(WIRE_ROCE_UDP_PORT) };
	memcpy(&to->in6.sin6_addr, &ip->dgid, sizeof(ip->dgid));
	memcpy(&info.ipi6_addr, &ip->sgid, sizeof(ip->sgid));
	m->msg_namelen = sizeof(to->in6);
	put(m, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	if (ip->hop_limit != NETDEV_UDP_HOP_LIMIT)
		put_int(m, IPPROTO_IPV6, IPV6_HOPLIMIT, ip->hop_limit ? ip->hop_limit : 1);
	if (ip->traffic_class)
		put_int(m, IPPROTO_IPV6, IPV6_TCLASS, ip->traffic_class);
	if (ip->flow_label & FLOW_LABEL)
		put_int(m, IPPROTO_IPV6, IPV6_FLOWINFO, (int)htonl(ip->flow_label & FLOW_LABEL));
}

/* ---- receiving ---- */

static void parse_control(struct msghdr *m, struct netdev_udp_datagram *d, uint32_t *lost)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IP)
			read_control_ipv4(c, &d->ip);
		else if (c->cmsg_level == IPPROTO_IPV6)
			read_control_ipv6(c, &d->ip);
		else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL && lost)
			*lost = (uint32_t)get_int(c);
		else if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
			d->each = (uint16_t)get_int(c);
	}
}

/* recvmmsg(); for one datagram recvmsg() costs less. No cancellation point: the caller holds locks.
 */
static int receive_headers(int fd, struct mmsghdr *header, unsigned n)
{
	int cancel_state = base_cancel_off(), received;
	ssize_t bytes;

	if (n != 1) {
		received = recvmmsg(fd, header, n, MSG_DONTWAIT, NULL);
		base_cancel_restore(cancel_state);
		return received;
	}
	bytes = recvmsg(fd, &header->msg_hdr, MSG_DONTWAIT);
	base_cancel_restore(cancel_state);
	if (bytes < 0)
		return -1;
	header->msg_len = (unsigned)bytes;
	return 1;
}

int netdev_udp_receive(int fd, struct netdev_udp_datagram *datagram, unsigned n, uint32_t *lost)
{
	struct mmsghdr header[NETDEV_UDP_BATCH];
	union address from[NETDEV_UDP_BATCH];
	union control control[NETDEV_UDP_BATCH];
	int got;

	n = n < NETDEV_UDP_BATCH ? n : NETDEV_UDP_BATCH;
	for (unsigned i = 0; i < n; i++)
		header[i].msg_hdr =
		        (struct msghdr){ .msg_name = &from[i],
			                 .msg_namelen = sizeof(from[i]),
			                 .msg_iov = datagram[i].iov,
			                 .msg_iovlen = datagram[i].iov[1].iov_len ? 2 : 1,
			                 .msg_control = &control[i],
			                 .msg_controllen = CONTROL_BYTES };
	got = receive_headers(fd, header, n);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	for (int i = 0; i < got; i++) {
		struct netdev_udp_datagram *d = &datagram[i];

		d->ip = (struct wire_ip){ 0 };
		d->each = 0;
		d->bytes = header[i].msg_len;
		d->truncated = header[i].msg_hdr.msg_flags & MSG_TRUNC;
		read_source(&from[i], &d->ip);
		parse_control(&header[i].msg_hdr, d, lost);
	}
	return got;
}

/* ---- sending ---- */

/* Messages that leave in one piece. */
struct piece {
	unsigned first, n;
};

/* sendmmsg() of one message, but cheaper. */
static int send_one(int fd, const struct msghdr *m)
{
	return sendmsg(fd, m, 0) < 0 ? -1 : 1;
}

/* No cancellation point: the caller holds locks. Returns how many were sent, or -1. */
static int send_some(int fd, struct mmsghdr *header, unsigned n)
{
	int cancel_state = base_cancel_off();
	int sent = n > 1 ? sendmmsg(fd, header, n, 0) : send_one(fd, &header->msg_hdr);

	base_cancel_restore(cancel_state);
	return sent;
}

/* Sends @n pieces, whose headers are complete. Returns how many messages the kernel accepted. */
static unsigned send_headers(int fd, struct mmsghdr *header, struct netdev_udp_message *message,
                             const struct piece *piece, unsigned n)
{
	unsigned at = 0, n_sent = 0;

	while (at < n) {
		int sent = send_some(fd, header + at, n - at);

		if (sent < 0 && errno == EINTR)
			continue;
		for (unsigned end = at + (sent < 0 ? 1 : (unsigned)sent); at < end; at++) {
			for (unsigned i = 0; i < piece[at].n; i++)
				message[piece[at].first + i].error = sent < 0 ? -errno : 0;
			n_sent += sent < 0 ? 0 : piece[at].n;
		}
	}
	return n_sent;
}

static size_t bytes_of(const struct netdev_udp_message *m)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < m->n_iov; i++)
		bytes += m->iov[i].iov_len;
	return bytes;
}

/* Groups @n messages into pieces. Returns how many pieces. */
static unsigned find_pieces(const struct netdev_udp_message *message, unsigned n,
                            struct piece *piece)
{
	unsigned pieces = 0;

	for (unsigned i = 0; i < n; i++) {
		if (i && message[i].follows)
			piece[pieces - 1].n++;
		else
			piece[pieces++] = (struct piece){ .first = i, .n = 1 };
	}
	return pieces;
}

/* Appends the iov of all messages of @piece to @iov. Returns how many entries. */
static size_t put_iov(const struct netdev_udp_message *message, const struct piece *piece,
                      struct iovec *iov)
{
	size_t n = 0;

	for (unsigned i = piece->first; i < piece->first + piece->n; i++)
		for (unsigned k = 0; k < message[i].n_iov; k++)
			iov[n++] = message[i].iov[k];
	return n;
}

static unsigned send_batch(int fd, struct netdev_udp_message *message, unsigned n)
{
	struct mmsghdr header[NETDEV_UDP_BATCH];
	union address to[NETDEV_UDP_BATCH];
	union control control[NETDEV_UDP_BATCH];
	struct iovec iov[NETDEV_UDP_BATCH * ARRAY_SIZE(message->iov)], *end = iov;
	struct piece piece[NETDEV_UDP_BATCH];
	unsigned pieces = find_pieces(message, n, piece);

	for (unsigned i = 0; i < pieces; i++) {
		struct msghdr *m =
		        &header[i].msg_hdr; // cppcheck-suppress uninitvar ; only its address
		const struct netdev_udp_message *first = &message[piece[i].first];

		*m = (struct msghdr){ .msg_name = &to[i],
			              .msg_iov = end,
			              .msg_iovlen = put_iov(message, &piece[i], end),
			              .msg_control = &control[i] };
		end += m->msg_iovlen;
		if (wire_gid_is_ipv4(&first->ip->dgid))
			write_ipv4(first->ip, &to[i], m);
		else
			write_ipv6(first->ip, &to[i], m);
		if (piece[i].n > 1)
			put_segment(m, (uint16_t)bytes_of(first));
	}
	return send_headers(fd, header, message, piece, pieces);
}

unsigned netdev_udp_send(int fd, struct netdev_udp_message *message, unsigned n)
{
	unsigned n_sent = 0;

	for (unsigned at = 0; at < n; at += NETDEV_UDP_BATCH)
		n_sent += send_batch(fd, message + at,
		                     n - at < NETDEV_UDP_BATCH ? n - at : NETDEV_UDP_BATCH);
	return n_sent;
}
