/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The usual alternative: UDP multicast sockets, polled without blocking, in lists by sendmmsg() and
 * recvmmsg(). Over loopback, in a network namespace of its own if we may make one, so that no
 * firewall and no other traffic is in the way; or between network devices, each side's sockets in
 * the namespace that it is in.
 */
#include "common/util.h"

#include <net/if.h>
#include <sys/ioctl.h>

#include "common/link.h"

#define LIST         32
#define FIRST_PORT   17700
#define BUFFER_BYTES (4 << 20)

struct udp_shared {
	int out[2], in[2]; /* of each side */
};

struct udp {
	int out, in;
	uint32_t mask, received;
	struct mmsghdr send[LIST], receive[LIST];
	struct iovec message, slot[LIST];
	char *buffer;
};

static struct sockaddr_in group_of(const struct bench_spec *spec, int side)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(FIRST_PORT + spec->index * 2 + (unsigned)side)),
		.sin_addr.s_addr = htonl(0xEFFF4D00u + spec->index * 2 + (unsigned)side),
	};
}

/* A namespace with its loopback up, until setns() to the descriptor; -1: we may not. */
static int enter_namespace(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int old = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), sock;

	if (old < 0 || unshare(CLONE_NEWNET))
		return -1;
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bench_must(sock >= 0 && !ioctl(sock, SIOCSIFFLAGS, &lo), "cannot set up loopback");
	close(sock);
	return old;
}

static void make_sockets(struct udp_shared *s, const struct bench_spec *spec, int side)
{
	struct sockaddr_in group = group_of(spec, side), other = group_of(spec, !side);
	const char *device = spec->device ? spec->device : "lo";
	struct ip_mreqn on_device = { .imr_multiaddr = group.sin_addr,
		                      .imr_ifindex = (int)if_nametoindex(device) };
	int bytes = BUFFER_BYTES, yes = 1;

	s->in[side] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	s->out[side] = socket(AF_INET, SOCK_DGRAM, 0);
	bench_must(s->in[side] >= 0 && s->out[side] >= 0, "socket");
	if (setsockopt(s->in[side], SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(s->in[side], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	/* every process that receives has one on this port */
	setsockopt(s->in[side], SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(s->in[side], (struct sockaddr *)&group, sizeof(group)) ||
	    setsockopt(s->in[side], IPPROTO_IP, IP_ADD_MEMBERSHIP, &on_device, sizeof(on_device)))
		bench_fail("cannot join a UDP group");
	on_device.imr_multiaddr = other.sin_addr;
	if (setsockopt(s->out[side], IPPROTO_IP, IP_MULTICAST_IF, &on_device, sizeof(on_device)) ||
	    connect(s->out[side], (struct sockaddr *)&other, sizeof(other)))
		bench_fail("cannot send to a UDP group");
}

static void *udp_prepare(const struct bench_spec *spec)
{
	struct udp_shared *s = bench_alloc(sizeof(*s), 0);
	int old;

	if (spec->device)
		return s; /* made when the side is where it is to be */
	old = enter_namespace();
	make_sockets(s, spec, 0);
	make_sockets(s, spec, 1);
	if (old >= 0 && setns(old, CLONE_NEWNET))
		bench_fail("setns");
	return s;
}

static void *udp_open(void *shared, const struct bench_spec *spec, int side)
{
	struct udp_shared *s = shared;
	struct udp *u = bench_alloc(sizeof(*u), 0);

	if (spec->device)
		make_sockets(s, spec, side);
	u->out = s->out[side];
	u->in = s->in[side];
	u->mask = spec->depth - 1;
	u->buffer = bench_alloc((size_t)spec->bytes * spec->depth, 0);
	u->message =
	        (struct iovec){ .iov_base = bench_alloc(spec->bytes, 0), .iov_len = spec->bytes };
	for (int i = 0; i < LIST; i++) {
		u->slot[i].iov_len = spec->bytes;
		u->send[i].msg_hdr = (struct msghdr){ .msg_iov = &u->message, .msg_iovlen = 1 };
		u->receive[i].msg_hdr = (struct msghdr){ .msg_iov = &u->slot[i], .msg_iovlen = 1 };
	}
	return u;
}

static void udp_send(void *link, unsigned n)
{
	struct udp *u = link;

	while (n) {
		int done = sendmmsg(u->out, u->send, n < LIST ? n : LIST, 0);

		bench_must(done >= 0, "sendmmsg");
		n -= (unsigned)done;
	}
}

static unsigned udp_receive(void *link, unsigned max)
{
	struct udp *u = link;
	int n;

	if (max > LIST)
		max = LIST;
	for (unsigned i = 0; i < max; i++)
		u->slot[i].iov_base =
		        u->buffer + ((u->received + i) & u->mask) * u->slot[i].iov_len;
	n = recvmmsg(u->in, u->receive, max, MSG_DONTWAIT, NULL);
	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			bench_fail("recvmmsg");
		return 0;
	}
	u->received += (uint32_t)n;
	return (unsigned)n;
}

static void udp_settle(void *link)
{
	(void)link;
}

static void udp_close(void *link)
{
	struct udp *u = link;

	close(u->in);
	close(u->out);
}

const struct bench_link_ops bench_udp_ops = {
	.name = "udp",
	.exchanges = 1000,
	.messages = 6000,
	.prepare = udp_prepare,
	.open = udp_open,
	.send = udp_send,
	.receive = udp_receive,
	.settle = udp_settle,
	.close = udp_close,
};
