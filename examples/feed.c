/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A market-data feed. The publisher sends messages with sequence numbers to a multicast group, a
 * few a packet, and keeps the last ones in a ring. Datagrams get lost; a subscriber sees that by
 * the numbers, and gets what it misses by RDMA READ from the ring. The publisher's processor has no
 * part in that, and is not slowed down by a slow subscriber.
 *
 * Has a message been overwritten while it was read? Before the publisher writes a message it says
 * in the ring which one: begun. A subscriber READs the messages, and behind them begun. Message n
 * was whole if n + slots, which takes its slot, had not begun then.
 *
 * Numbers are in the byte order of the machines, which is one.
 */
#define _GNU_SOURCE /* ppoll() */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "setup.h"

#define PER_PACKET   4
#define SEND_DEPTH   64
#define MOST_READ    1024 /* messages, by one READ */
#define HEARTBEAT_MS 20

struct message {
	uint64_t sequence; /* from 0 */
	char symbol[8];
	uint64_t price; /* in cents */
	uint64_t quantity;
};

/* One without messages is a heartbeat: it says how far the feed is. */
struct packet {
	uint64_t first;
	uint32_t count;
	uint32_t end; /* of the feed */
	struct message message[PER_PACKET];
};

struct ring {
	_Atomic uint64_t begun;
	struct message slot[];
};

/* The publisher tells this to a subscriber that connects. */
struct offer {
	uint64_t address; /* of the ring */
	uint64_t slots;
	uint32_t rkey;
	uint32_t reserved;
};

struct options {
	uint64_t messages, rate, slots, subscribers, receives;
};

static struct message message_of(uint64_t sequence)
{
	return (struct message){ .sequence = sequence,
		                 .symbol = "UMBEL",
		                 .price = 10000 + sequence % 977,
		                 .quantity = 1 + sequence % 89 };
}

/* ---- the publisher ---- */

struct publisher {
	struct group group;
	struct rdma_event_channel *channel;
	struct ring *ring;
	struct offer offer;
	uint64_t n_sent; /* packets */
	uint64_t connected;
};

static void open_publisher(struct publisher *p, const struct options *o, char **argv)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = { SEND_DEPTH, 1, 1, 1, sizeof(struct packet) },
	};
	size_t size = sizeof(*p->ring) + o->slots * sizeof(*p->ring->slot);
	struct ibv_mr *mr;

	p->group.id = open_port(argv[0]);
	must(!rdma_create_qp(p->group.id, NULL, &init), "rdma_create_qp");
	join(&p->group, argv[1], RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
	mr = allocate(p->group.id->pd, size, IBV_ACCESS_REMOTE_READ);
	p->ring = mr->addr;
	p->offer = (struct offer){ (uintptr_t)p->ring, o->slots, mr->rkey, 0 };
	p->channel = rdma_create_event_channel();
	must(p->channel, "rdma_create_event_channel");
	listen_at(p->channel, argv[0]);
}

/* Subscribers come and go. */
static void handle_event(struct publisher *p)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	must(!rdma_get_cm_event(p->channel, &event), "rdma_get_cm_event");
	type = event->event;
	id = event->id;
	must(!rdma_ack_cm_event(event), "rdma_ack_cm_event");
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		accept_request(id, &init, &p->offer, sizeof(p->offer));
	} else if (type == RDMA_CM_EVENT_ESTABLISHED) {
		p->connected++;
	} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
		p->connected--;
		end_connection(id);
	} else if (type == RDMA_CM_EVENT_CONNECT_ERROR || type == RDMA_CM_EVENT_UNREACHABLE) {
		end_connection(id);
	}
}

/* Asleep until then, but for subscribers. */
static void handle_events_until(struct publisher *p, uint64_t then)
{
	struct pollfd fd = { .fd = p->channel->fd, .events = POLLIN };
	uint64_t now;

	while ((now = now_ns()) < then) {
		uint64_t left = then - now;
		struct timespec timeout = { (time_t)(left / 1000000000),
			                    (long)(left % 1000000000) };

		if (ppoll(&fd, 1, &timeout, NULL) > 0)
			handle_event(p);
	}
}

/* Inline: the packet is ours again at once. A completion for half of the queue makes room in it. */
static void send_packet(struct publisher *p, struct packet *packet)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)packet,
		.length = (uint32_t)(offsetof(struct packet, message) +
		                     packet->count * sizeof(*packet->message)),
	};
	struct ibv_send_wr wr = { .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_SEND,
		                  .send_flags = IBV_SEND_INLINE },
	                   *bad;
	struct ibv_wc wc;
	bool is_half = ++p->n_sent % (SEND_DEPTH / 2) == 0;

	if (is_half)
		wr.send_flags |= IBV_SEND_SIGNALED;
	wr.wr.ud.ah = p->group.ah;
	wr.wr.ud.remote_qpn = p->group.qpn;
	wr.wr.ud.remote_qkey = p->group.qkey;
	must(!(errno = ibv_post_send(p->group.id->qp, &wr, &bad)), "ibv_post_send");
	if (is_half) {
		wait_completions(p->group.id->send_cq, 1, &wc, -1, -1);
		check_completion(&wc);
	}
}

static void write_message(struct publisher *p, const struct message *m)
{
	atomic_store_explicit(&p->ring->begun, m->sequence, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); /* it is seen before the slot changes */
	p->ring->slot[m->sequence % p->offer.slots] = *m;
}

static void publish(struct publisher *p, const struct options *o)
{
	uint64_t start = now_ns();

	for (uint64_t next = 0; next < o->messages;) {
		struct packet packet = { .first = next };

		while (packet.count < PER_PACKET && next < o->messages) {
			struct message *m = &packet.message[packet.count++];

			*m = message_of(next++);
			write_message(p, m);
		}
		atomic_thread_fence(memory_order_release); /* it may be READ from now on */
		send_packet(p, &packet);
		handle_events_until(p, start + next * 1000000000 / o->rate);
	}
}

static int run_publisher(const struct options *o, char **argv)
{
	struct packet end = { .first = o->messages, .end = 1 };
	struct publisher p = { 0 };

	open_publisher(&p, o, argv);
	printf("listens\n");
	while (p.connected < o->subscribers)
		handle_event(&p);
	publish(&p, o);
	printf("published %llu\n", (unsigned long long)o->messages);
	while (p.connected) {
		send_packet(&p, &end); /* may get lost as well */
		handle_events_until(&p, now_ns() + HEARTBEAT_MS * 1000000ull);
	}
	return 0;
}

/* ---- a subscriber ---- */

struct arrival {
	char grh[GRH_BYTES];
	struct packet packet;
};

/* The bytes that are READ come here. */
struct copy {
	uint64_t begun;
	struct message message[MOST_READ];
};

struct subscriber {
	struct group group;
	struct rdma_cm_id *peer;
	struct offer offer;
	struct ibv_mr *arrivals, *copy;
	uint64_t next; /* expected */
	uint64_t received, gaps, recovered, too_late, damaged;
};

static void post_receive(struct subscriber *s, struct arrival *a)
{
	struct ibv_sge sge = { (uintptr_t)a, sizeof(*a), s->arrivals->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)a, .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!(errno = ibv_post_recv(s->group.id->qp, &wr, &bad)), "ibv_post_recv");
}

/* All receives are posted before messages may come, and it has joined before the publisher knows of
 * it. */
static void open_subscriber(struct subscriber *s, const struct options *o, char **argv)
{
	struct ibv_qp_init_attr ud = { .qp_type = IBV_QPT_UD,
		                       .cap = { 1, (uint32_t)o->receives, 1, 1, 0 } };
	struct ibv_qp_init_attr rc = { .qp_type = IBV_QPT_RC, .cap = { 2, 1, 1, 1, 0 } };
	struct arrival *a;

	s->group.id = open_port(argv[0]);
	must(!rdma_create_qp(s->group.id, NULL, &ud), "rdma_create_qp");
	s->arrivals = allocate(s->group.id->pd, o->receives * sizeof(struct arrival),
	                       IBV_ACCESS_LOCAL_WRITE);
	s->copy = allocate(s->group.id->pd, sizeof(struct copy), IBV_ACCESS_LOCAL_WRITE);
	a = s->arrivals->addr;
	for (uint64_t i = 0; i < o->receives; i++)
		post_receive(s, &a[i]);
	join(&s->group, argv[1], RDMA_MC_JOIN_FLAG_FULLMEMBER);
	s->peer = connect_to(argv[0], argv[2], &rc, &s->offer, sizeof(s->offer));
}

static void deliver(struct subscriber *s, const struct message *m)
{
	struct message right = message_of(s->next);

	s->damaged += memcmp(m, &right, sizeof(right)) != 0;
	s->next++;
}

/* READs @n messages from the expected one on, which have neighbouring slots, and behind them how
 * far the publisher is: the fence makes the second READ wait for the first. */
static void read_ring(struct subscriber *s, uint64_t n)
{
	struct copy *copy = s->copy->addr;
	uint64_t offset =
	        offsetof(struct ring, slot) + s->next % s->offer.slots * sizeof(struct message);
	struct ibv_sge sge[2] = {
		{ (uintptr_t)copy->message, (uint32_t)(n * sizeof(struct message)), s->copy->lkey },
		{ (uintptr_t)&copy->begun, sizeof(copy->begun), s->copy->lkey },
	};
	struct ibv_send_wr wr[2] = {
		{ .next = &wr[1],
		  .sg_list = &sge[0],
		  .num_sge = 1,
		  .opcode = IBV_WR_RDMA_READ,
		  .wr.rdma = { s->offer.address + offset, s->offer.rkey } },
		{ .sg_list = &sge[1],
		  .num_sge = 1,
		  .opcode = IBV_WR_RDMA_READ,
		  .send_flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED,
		  .wr.rdma = { s->offer.address + offsetof(struct ring, begun), s->offer.rkey } },
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	must(!(errno = ibv_post_send(s->peer->qp, wr, &bad)), "ibv_post_send: READ");
	wait_completions(s->peer->send_cq, 1, &wc, -1, -1);
	check_completion(&wc);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Gets the messages from the expected one to @end, without that. */
static void recover(struct subscriber *s, uint64_t end)
{
	const struct copy *copy = s->copy->addr;

	s->gaps++;
	while (s->next < end) {
		uint64_t to_wrap = s->offer.slots - s->next % s->offer.slots, late, i = 0;
		uint64_t n = least(least(end - s->next, to_wrap), MOST_READ);

		read_ring(s, n);
		/* those before the oldest one that had not begun to be overwritten */
		late = copy->begun < s->next + s->offer.slots
		               ? 0
		               : least(copy->begun - s->offer.slots + 1, end) - s->next;
		s->too_late += late;
		s->next += late;
		for (i = late; i < n; i++, s->recovered++)
			deliver(s, &copy->message[i]);
	}
}

/* A message that comes twice, or was recovered meanwhile, is not expected any more. */
static void take_packet(struct subscriber *s, const struct packet *p)
{
	if (p->first > s->next)
		recover(s, p->first);
	for (uint32_t i = 0; i < p->count; i++)
		if (p->first + i == s->next) {
			deliver(s, &p->message[i]);
			s->received++;
		}
}

static void follow(struct subscriber *s)
{
	struct ibv_wc wc;
	bool end = false;

	while (!end) {
		struct arrival *a;

		/* its own channel has what becomes of the connection */
		if (!wait_completions(s->group.id->recv_cq, 1, &wc, s->peer->channel->fd, -1))
			errx(1, "the publisher has gone");
		check_completion(&wc);
		a = (struct arrival *)(uintptr_t)wc.wr_id;
		take_packet(s, &a->packet);
		end = a->packet.end;
		post_receive(s, a);
	}
}

static int run_subscriber(const struct options *o, char **argv)
{
	struct subscriber s = { 0 };

	open_subscriber(&s, o, argv);
	printf("follows\n");
	follow(&s);
	must(!rdma_disconnect(s.peer), "rdma_disconnect");
	printf("received %llu, gaps %llu, recovered %llu, too late %llu\n",
	       (unsigned long long)s.received, (unsigned long long)s.gaps,
	       (unsigned long long)s.recovered, (unsigned long long)s.too_late);
	if (s.damaged)
		errx(1, "%llu messages are damaged", (unsigned long long)s.damaged);
	return 0;
}

/* ---- */

static void usage(int status)
{
	fprintf(status ? stderr : stdout,
	        "usage: feed [OPTION]... ADDRESS GROUP              publishes\n"
	        "       feed [-q RECEIVES] ADDRESS GROUP PUBLISHER  subscribes\n"
	        "ADDRESS is that of the port, PUBLISHER the one that the publisher has.\n"
	        "  -n MESSAGES     how many (default: 100000)\n"
	        "  -r RATE         messages a second (default: 100000)\n"
	        "  -k SLOTS        messages that the ring keeps (default: 65536)\n"
	        "  -s SUBSCRIBERS  begins when so many are there (default: 1)\n"
	        "  -q RECEIVES     packets that may wait for the subscriber (default: 256)\n");
	exit(status);
}

int main(int argc, char **argv)
{
	struct options o = { 100000, 100000, 65536, 1, 256 };
	int option;

	while ((option = getopt(argc, argv, "n:r:k:s:q:h")) != -1)
		switch (option) {
		case 'n':
			o.messages = number(optarg, 1, UINT64_MAX / 1000000000);
			break;
		case 'r':
			o.rate = number(optarg, 1, 1000000000);
			break;
		case 'k':
			o.slots = number(optarg, 1, 1 << 24);
			break;
		case 's':
			o.subscribers = number(optarg, 0, 1000);
			break;
		case 'q':
			o.receives = number(optarg, 1, 16384);
			break;
		default:
			usage(option == 'h' ? 0 : 2);
		}
	setlinebuf(stdout);
	if (argc - optind == 2)
		return run_publisher(&o, argv + optind);
	if (argc - optind == 3)
		return run_subscriber(&o, argv + optind);
	usage(2);
}
