// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * crossing DEVICE DEVICE [KEY=VALUE]...: a bad cable. Forwards the frames that come in at either
 * network device to the other. Packets of RoCEv2's connected transports (RC, UC), and no others,
 * are dropped, doubled, damaged, late or out of order, as the keys say; SIGUSR1 makes the cable a
 * good one. At SIGTERM it says what it has done. Nothing of Umbel's is used.
 *
 *   drop, duplicate, reorder, corrupt   percent of the packets
 *   mark                                likewise, of those that say that they may be (ECN)
 *   delay, jitter                       microseconds; jitter leaves the packets in order
 *   seed                                of what is random: the Nth packet has the same fate again
 *
 * Frames keep what the kernel knows of them (struct virtio_net_hdr): a checksum that is yet to be
 * made, or cuts yet to be done (of TCP; of RoCEv2 it wants single packets).
 */
#include "must.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <sys/queue.h>
#include <sys/signalfd.h>

#define ROCE_PORT 4791
/* The first opcode of a transport that is neither RC nor UC. */
#define NOT_CONNECTED 0x40
#define BTH_BYTES     12

#define ETHERNET_BYTES 14
#define MAX_FRAME      (sizeof(struct virtio_net_hdr) + 70000)
#define BUFFER_BYTES   (16 << 20)
#define AT_ONCE        64 /* frames of one direction before the other has its turn */
/* A packet out of order is later than it should be by this, and by up to as much again. */
#define BEHIND_NS 200000

enum key { DROP, DUPLICATE, REORDER, CORRUPT, MARK, DELAY, JITTER, SEED, KEYS };

static const char *const key_name[KEYS] = {
	[DROP] = "drop", [DUPLICATE] = "duplicate", [REORDER] = "reorder", [CORRUPT] = "corrupt",
	[MARK] = "mark", [DELAY] = "delay",         [JITTER] = "jitter",   [SEED] = "seed",
};

struct frame {
	TAILQ_ENTRY(frame) entry;
	uint64_t due_ns;
	size_t bytes;
	uint8_t data[]; /* struct virtio_net_hdr, Ethernet header... */
};

TAILQ_HEAD(frames, frame);

struct direction {
	const char *from, *to;
	int in, out;
	uint64_t random;     /* state */
	uint64_t in_order;   /* when the last packet that is in order is due, ns */
	struct frames later; /* by when they are due */
	unsigned long packets, count[KEYS];
	uint64_t waited_ns; /* the most that a packet waited for this process */
};

struct crossing {
	double value[KEYS];
	struct direction direction[2];
	int signals;
};

/* Where the parts of a RoCEv2 packet are. */
struct packet {
	uint8_t *ip, *udp, *payload;
	uint32_t bytes; /* of the payload */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Receives a frame, as recv(). */
static ssize_t receive_frame(struct direction *d, void *to, size_t room)
{
	union {
		struct cmsghdr header;
		uint8_t room[CMSG_SPACE(sizeof(struct timespec))];
	} control;
	struct iovec iov = { to, room };
	struct msghdr m = { .msg_iov = &iov,
		            .msg_iovlen = 1,
		            .msg_control = &control,
		            .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(d->in, &m, MSG_DONTWAIT);
	struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);
	struct timespec came, now;
	int64_t waited;

	if (!c || c->cmsg_type != SCM_TIMESTAMPNS)
		return n;
	memcpy(&came, CMSG_DATA(c), sizeof(came));
	clock_gettime(CLOCK_REALTIME, &now);
	waited = (now.tv_sec - came.tv_sec) * 1000000000 + (now.tv_nsec - came.tv_nsec);
	if (waited > (int64_t)d->waited_ns)
		d->waited_ns = (uint64_t)waited;
	return n;
}

/* splitmix64 */
static uint64_t next_random(struct direction *d)
{
	uint64_t z = d->random += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Less than @limit; limit 0: 0. */
static uint64_t random_below(struct direction *d, uint64_t limit)
{
	uint64_t r = next_random(d);

	return limit ? r % limit : 0;
}

/* Whether this packet has the fault. It takes a random number if it has or not. */
static bool happens(struct crossing *x, struct direction *d, enum key fault)
{
	bool yes = (double)random_below(d, 1000000) < x->value[fault] * 10000;

	d->count[fault] += yes;
	return yes;
}

/* ---- packets ---- */

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

/* Whether a frame is a packet of a connected transport. */
static bool find_packet(struct frame *f, struct packet *p)
{
	uint8_t *ethernet = f->data + sizeof(struct virtio_net_hdr), *end = f->data + f->bytes;
	uint16_t type = get16(ethernet + 12);
	uint8_t protocol;

	p->ip = ethernet + ETHERNET_BYTES;
	if (type == ETH_P_IP && end - p->ip >= 20) {
		p->udp = p->ip + (p->ip[0] & 15) * 4;
		protocol = p->ip[9];
		if (get16(p->ip + 6) & 0x1fff) /* a later fragment */
			return false;
	} else if (type == ETH_P_IPV6 && end - p->ip >= 40) {
		p->udp = p->ip + 40;
		protocol = p->ip[6];
	} else {
		return false;
	}
	if (protocol != IPPROTO_UDP || end - p->udp < 8 + BTH_BYTES ||
	    get16(p->udp + 2) != ROCE_PORT)
		return false;
	p->payload = p->udp + 8;
	p->bytes = (uint32_t)(end - p->payload);
	if (p->payload[0] >= NOT_CONNECTED)
		return false;
	must(((struct virtio_net_hdr *)f->data)->gso_type == VIRTIO_NET_HDR_GSO_NONE,
	     "a frame has several RoCEv2 packets; see gso_max_segs");
	return true;
}

static uint32_t sum16(uint32_t sum, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i + 1 < length; i += 2)
		sum += get16(bytes + i);
	if (length & 1)
		sum += (uint32_t)bytes[length - 1] << 8;
	return sum;
}

/* Makes the UDP checksum right. */
static void make_checksum(struct frame *f, struct packet *p)
{
	bool is_ipv4 = p->ip[0] >> 4 == 4;
	uint32_t length = get16(p->udp + 4), sum;

	memset(f->data, 0, sizeof(struct virtio_net_hdr)); /* nothing is left to do */
	if (length > 8 + p->bytes)
		length = 8 + p->bytes;
	memset(p->udp + 6, 0, 2);
	sum = sum16(IPPROTO_UDP + length, p->ip + (is_ipv4 ? 12 : 8), is_ipv4 ? 8 : 32);
	sum = sum16(sum, p->udp, length);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	sum = sum == 0xffff ? sum : ~sum & 0xffff; /* 0 would be no checksum */
	p->udp[6] = (uint8_t)(sum >> 8);
	p->udp[7] = (uint8_t)sum;
}

/* Turns one bit around that only the ICRC protects. */
static void corrupt(struct direction *d, struct frame *f, struct packet *p)
{
	uint64_t bit = random_below(d, (uint64_t)p->bytes * 8);

	if (bit / 8 == 4) /* FECN, BECN, reserved: the ICRC leaves this byte out */
		bit += 8;
	p->payload[bit / 8] ^= (uint8_t)(1 << bit % 8);
	make_checksum(f, p);
}

/* Whether the packet's sender reacts to ECN, and nobody has marked it yet. */
static bool can_be_marked(const struct packet *p)
{
	unsigned ecn = p->ip[0] >> 4 == 4 ? p->ip[1] & 3 : p->ip[1] >> 4 & 3;

	return ecn == 1 || ecn == 2;
}

/* Marks it, as a congested router does. */
static void mark(struct packet *p)
{
	uint32_t sum;

	if (p->ip[0] >> 4 != 4) {
		p->ip[1] |= 3 << 4;
		return;
	}
	p->ip[1] |= 3;
	memset(p->ip + 10, 0, 2);
	sum = sum16(0, p->ip, (size_t)(p->ip[0] & 15) * 4);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	p->ip[10] = (uint8_t)(~sum >> 8);
	p->ip[11] = (uint8_t)~sum;
}

/* ---- the cable ---- */

static void forward(struct direction *d, const struct frame *f)
{
	/* a device that is down loses frames, as a cable does */
	if (send(d->out, f->data, f->bytes, 0) < 0 && errno != ENETDOWN && errno != ENXIO &&
	    errno != ENOBUFS && errno != EAGAIN)
		err(EXIT_FAILURE, "%zu bytes to %s", f->bytes, d->to);
}

/* Forwards a copy of the frame when it is due. */
static void forward_at(struct direction *d, const struct frame *f, uint64_t due_ns)
{
	struct frame *copy = malloc(sizeof(*f) + f->bytes), *before;

	check(copy, "malloc");
	memcpy(copy->data, f->data, f->bytes);
	copy->bytes = f->bytes;
	copy->due_ns = due_ns;
	TAILQ_FOREACH_REVERSE(before, &d->later, frames, entry)
	{
		if (before->due_ns <= due_ns)
			break;
	}
	if (before)
		TAILQ_INSERT_AFTER(&d->later, before, copy, entry);
	else
		TAILQ_INSERT_HEAD(&d->later, copy, entry);
}

static void take_packet(struct crossing *x, struct direction *d, struct frame *f, struct packet *p)
{
	uint64_t due = now_ns() + (uint64_t)x->value[DELAY] * 1000 +
	               random_below(d, (uint64_t)x->value[JITTER] * 1000);
	bool drop = happens(x, d, DROP), twice = happens(x, d, DUPLICATE);

	d->packets++;
	if (happens(x, d, CORRUPT))
		corrupt(d, f, p);
	if (can_be_marked(p) && happens(x, d, MARK))
		mark(p);
	if (due < d->in_order)
		due = d->in_order;
	if (happens(x, d, REORDER))
		due += BEHIND_NS + random_below(d, BEHIND_NS);
	else
		d->in_order = due;
	if (!drop)
		forward_at(d, f, due);
	if (!drop && twice)
		forward_at(d, f, due);
}

static void receive(struct crossing *x, struct direction *d)
{
	static union {
		struct frame f;
		uint8_t room[sizeof(struct frame) + MAX_FRAME];
	} u;
	struct packet p;
	ssize_t n;

	for (int i = 0; i < AT_ONCE; i++) {
		n = receive_frame(d, u.f.data, MAX_FRAME);
		if (n < 0 && (errno == EAGAIN || errno == ENETDOWN))
			return;
		if (n < 0)
			err(EXIT_FAILURE, "from %s", d->from);
		u.f.bytes = (size_t)n;
		if (u.f.bytes < sizeof(struct virtio_net_hdr) + ETHERNET_BYTES)
			continue;
		if (find_packet(&u.f, &p))
			take_packet(x, d, &u.f, &p);
		else
			forward(d, &u.f);
	}
}

static void forward_due(struct direction *d)
{
	struct frame *f;

	while ((f = TAILQ_FIRST(&d->later)) != NULL && f->due_ns <= now_ns()) {
		TAILQ_REMOVE(&d->later, f, entry);
		forward(d, f);
		free(f);
	}
}

/* ---- all ---- */

/* A socket for all that comes in at a device, and for what is to leave by it. */
static int open_device(const char *name)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET,
		                       .sll_protocol = htons(ETH_P_ALL),
		                       .sll_ifindex = (int)if_nametoindex(name) };
	struct packet_mreq all = { .mr_ifindex = address.sll_ifindex,
		                   .mr_type = PACKET_MR_PROMISC };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), yes = 1, bytes = BUFFER_BYTES;

	if (!address.sll_ifindex)
		err(EXIT_FAILURE, "%s", name);
	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &yes, sizeof(yes)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) ||
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof(yes)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)))
		err(EXIT_FAILURE, "a socket on %s", name);
	return fd;
}

static int open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	check(fd >= 0, "signalfd");
	return fd;
}

static void report(const struct direction *d)
{
	struct tpacket_stats stats = { 0 };
	socklen_t bytes = sizeof(stats);

	getsockopt(d->in, SOL_PACKET, PACKET_STATISTICS, &stats, &bytes);
	printf("%s to %s: packets %lu drop %lu duplicate %lu reorder %lu corrupt %lu mark %lu "
	       "overflow %u waited %lu us\n",
	       d->from, d->to, d->packets, d->count[DROP], d->count[DUPLICATE], d->count[REORDER],
	       d->count[CORRUPT], d->count[MARK], stats.tp_drops, d->waited_ns / 1000);
}

/* Whether it goes on. */
static bool take_signal(struct crossing *x)
{
	struct signalfd_siginfo info;

	check(read(x->signals, &info, sizeof(info)) == sizeof(info), "signalfd");
	if (info.ssi_signo == SIGTERM)
		return false;
	memset(x->value, 0, sizeof(x->value));
	puts("good");
	fflush(stdout);
	return true;
}

static void run(struct crossing *x)
{
	struct direction *d = x->direction;
	struct pollfd fds[] = { { d[0].in, POLLIN, 0 },
		                { d[1].in, POLLIN, 0 },
		                { x->signals, POLLIN, 0 } };

	for (;;) {
		uint64_t now = now_ns(), next = now + 1000000000;
		struct timespec wait;

		for (int i = 0; i < 2; i++) {
			struct frame *f = TAILQ_FIRST(&d[i].later);

			if (f && f->due_ns < next)
				next = f->due_ns < now ? now : f->due_ns;
		}
		wait.tv_sec = (time_t)((next - now) / 1000000000);
		wait.tv_nsec = (long)((next - now) % 1000000000);
		if (ppoll(fds, 3, &wait, NULL) < 0 && errno != EINTR)
			err(EXIT_FAILURE, "ppoll");
		if ((fds[2].revents & POLLIN) && !take_signal(x))
			return;
		for (int i = 0; i < 2; i++) {
			receive(x, &d[i]);
			forward_due(&d[i]);
		}
	}
}

static void parse_key(struct crossing *x, const char *argument)
{
	size_t length = strcspn(argument, "=");
	char *end;

	for (unsigned i = 0; i < KEYS; i++)
		if (strlen(key_name[i]) == length && !strncmp(argument, key_name[i], length)) {
			x->value[i] = strtod(argument + length + 1, &end);
			if (!*end && end != argument + length + 1 && x->value[i] >= 0)
				return;
		}
	errx(EXIT_FAILURE, "'%s' is not understood", argument);
}

int main(int argc, char **argv)
{
	struct crossing x = { .value = { 0 } };

	must(argc >= 3, "usage: crossing DEVICE DEVICE [KEY=VALUE]...");
	for (int i = 3; i < argc; i++)
		parse_key(&x, argv[i]);
	for (int i = 0; i < 2; i++) {
		struct direction *d = &x.direction[i];

		d->from = argv[1 + i];
		d->to = argv[2 - i];
		d->in = open_device(d->from);
		d->random = ((uint64_t)x.value[SEED] << 1 | (unsigned)i) * 0x2545f4914f6cdd1d;
		TAILQ_INIT(&d->later);
	}
	x.direction[0].out = x.direction[1].in;
	x.direction[1].out = x.direction[0].in;
	x.signals = open_signals();
	puts("ready");
	fflush(stdout);
	run(&x);
	report(&x.direction[0]);
	report(&x.direction[1]);
	return EXIT_SUCCESS;
}
