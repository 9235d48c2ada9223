// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * gateway forward GROUP ADDRESS ADDRESS...: forwards the group from each of these ports to the
 * others. gateway ask GROUP ADDRESS COUNT: sends so many numbered questions to the group, some
 * ahead of their answers, which must come in sequence. gateway answer GROUP ADDRESS COUNT: answers
 * so many, which must come in sequence.
 *
 * gateway member GROUP ADDRESS COUNT NUMBER MEMBERS: one of so many members, with numbers from 0.
 * Member 0 sends so many numbered messages, each when all others have sent theirs of the number
 * before; they send one for each of its. So everybody hears everybody: each message must come once,
 * in the sequence of its sender. Does not end by itself, so what comes twice is noticed later, too.
 *
 * The ports are InfiniBand's or Ethernet's, as their addresses say; udp:ADDRESS is no port, but a
 * UDP socket on the network device that has the address. All are full members of the group. But for
 * members, which may be on devices that cannot do that, they do not hear themselves.
 */
#include "must.h"

#include <rdma/rdma_cma.h>

#define RECEIVES  64
#define SENDS     64
#define GRH       40
#define BYTES     2000 /* of a message */
#define AHEAD     8    /* questions without an answer, few enough for a socket's buffer */
#define AGAIN_MS  50   /* the first question is asked again: its group may not lead there yet */
#define EVENTS_MS 5000
#define UDP_PORT  7000
#define MEMBERS   32
#define OF_MEMBER 1000 /* bytes of a member's message: less than the smallest MTU of a network */
#define PORTS     8

struct message {
	uint64_t number;
	bool is_answer;
	char rest[BYTES - 2 * sizeof(uint64_t)];
};

/* A member's. */
struct word {
	uint64_t number; /* 0: hello, which may come again */
	uint32_t from;
	uint32_t heard; /* hello: bits of the members that it has heard say all of that */
	char rest[OF_MEMBER - 2 * sizeof(uint64_t)];
};

struct port {
	int socket; /* -1: none, but what follows */
	struct sockaddr_in group;
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_ah *ah;
	uint32_t qpn, qkey;
	uint64_t sent;
	char receive[RECEIVES][GRH + BYTES], send[SENDS][BYTES];
};

/* The next event, which must be this; it is the caller's to acknowledge. */
static struct rdma_cm_event *wait_event(struct port *p, enum rdma_cm_event_type type)
{
	struct pollfd fd = { .fd = p->events->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	must(poll(&fd, 1, EVENTS_MS) == 1, "no %s", rdma_event_str(type));
	check(!rdma_get_cm_event(p->events, &event), "rdma_get_cm_event");
	must(event->event == type, "%s, status %d, not %s", rdma_event_str(event->event),
	     event->status, rdma_event_str(type));
	return event;
}

static struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	must(inet_pton(AF_INET, text, &a.sin_addr) == 1, "'%s' is no address", text);
	return a;
}

static void post(struct port *p, uint64_t i)
{
	struct ibv_sge sge = { (uintptr_t)p->receive[i], GRH + BYTES, p->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	check(!ibv_post_recv(p->id->qp, &wr, &bad), "ibv_post_recv");
}

static void open_queue_pair(struct port *p, bool hears_itself)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_UD,
		                            .cap = { SENDS, RECEIVES, 1, 1, 0 },
		                            .comp_mask = IBV_QP_INIT_ATTR_PD };

	if (!hears_itself) {
		init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		init.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	}
	MUST(p->pd = ibv_alloc_pd(p->id->verbs));
	MUST(p->mr = ibv_reg_mr(p->pd, p, sizeof(*p), IBV_ACCESS_LOCAL_WRITE));
	MUST(p->channel = ibv_create_comp_channel(p->id->verbs));
	MUST(p->cq = ibv_create_cq(p->id->verbs, RECEIVES + SENDS, NULL, p->channel, 0));
	init.pd = p->pd;
	init.send_cq = init.recv_cq = p->cq;
	check(!rdma_create_qp_ex(p->id, &init), "rdma_create_qp_ex");
	for (uint64_t i = 0; i < RECEIVES; i++)
		post(p, i);
}

/* Hears what comes by that device only, and what it sends itself not at all. */
static struct port *open_socket(struct port *p, const char *address)
{
	struct ip_mreqn at = { .imr_multiaddr = p->group.sin_addr,
		               .imr_address = address_of(address).sin_addr };
	int off = 0, on = 1;

	p->group.sin_port = htons(UDP_PORT);
	p->socket = socket(AF_INET, SOCK_DGRAM, 0);
	check(p->socket >= 0, "socket");
	check(!setsockopt(p->socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) &&
	              !bind(p->socket, (struct sockaddr *)&p->group, sizeof(p->group)),
	      "bind");
	check(!setsockopt(p->socket, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof(off)) &&
	              !setsockopt(p->socket, IPPROTO_IP, IP_MULTICAST_LOOP, &off, sizeof(off)) &&
	              !setsockopt(p->socket, IPPROTO_IP, IP_MULTICAST_IF, &at, sizeof(at)) &&
	              !setsockopt(p->socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, &at, sizeof(at)),
	      address);
	return p;
}

static struct port *open_port(const char *address, const char *group, bool hears_itself)
{
	struct port *p = calloc(1, sizeof(*p));
	struct sockaddr_in from, to = address_of(group);
	struct rdma_cm_event *event;

	check(p, "calloc");
	p->group = to;
	if (!strncmp(address, "udp:", 4))
		return open_socket(p, address + 4);
	p->socket = -1;
	from = address_of(address);
	MUST(p->events = rdma_create_event_channel());
	check(!rdma_create_id(p->events, &p->id, NULL, RDMA_PS_UDP), "rdma_create_id");
	check(!rdma_bind_addr(p->id, (struct sockaddr *)&from), address);
	open_queue_pair(p, hears_itself);
	check(!rdma_resolve_addr(p->id, NULL, (struct sockaddr *)&to, EVENTS_MS),
	      "rdma_resolve_addr");
	rdma_ack_cm_event(wait_event(p, RDMA_CM_EVENT_ADDR_RESOLVED));
	check(!rdma_join_multicast(p->id, (struct sockaddr *)&to, NULL), "rdma_join_multicast");
	event = wait_event(p, RDMA_CM_EVENT_MULTICAST_JOIN);
	MUST(p->ah = ibv_create_ah(p->pd, &event->param.ud.ah_attr));
	p->qpn = event->param.ud.qp_num;
	p->qkey = event->param.ud.qkey;
	rdma_ack_cm_event(event);
	check(!ibv_req_notify_cq(p->cq, 0), "ibv_req_notify_cq");
	return p;
}

static void send_message(struct port *p, const void *message, uint32_t bytes)
{
	char *slot = p->send[p->sent++ % SENDS];
	struct ibv_sge sge = { (uintptr_t)slot, bytes, p->mr ? p->mr->lkey : 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .sg_list = &sge,
		                  .num_sge = 1,
		                  .wr_id = SENDS + RECEIVES,
		                  .wr.ud = { p->ah, p->qpn, p->qkey } },
	                   *bad;

	if (p->socket >= 0) {
		check(sendto(p->socket, message, bytes, 0, (struct sockaddr *)&p->group,
		             sizeof(p->group)) == bytes,
		      "sendto");
		return;
	}
	memcpy(slot, message, bytes);
	check(!ibv_post_send(p->id->qp, &wr, &bad), "ibv_post_send");
}

/* The next message that has come, of up to BYTES. How long it is; 0: there is none. */
static uint32_t next_message(struct port *p, void *copy)
{
	struct ibv_wc wc;

	if (p->socket >= 0) {
		ssize_t n = recv(p->socket, copy, BYTES, MSG_DONTWAIT | MSG_TRUNC);

		check(n > 0 || errno == EAGAIN, "recv");
		return n > 0 ? (uint32_t)n : 0;
	}
	while (ibv_poll_cq(p->cq, 1, &wc) > 0) {
		must(!wc.status, "%s", ibv_wc_status_str(wc.status));
		if (!(wc.opcode & IBV_WC_RECV))
			continue; /* sent */
		memcpy(copy, p->receive[wc.wr_id] + GRH, wc.byte_len - GRH);
		post(p, wc.wr_id);
		return wc.byte_len - GRH;
	}
	return 0;
}

/* Until one of the @n ports has something: true; or so long. */
static bool wait_any(struct port **p, unsigned n, int ms)
{
	struct pollfd fd[PORTS];
	struct ibv_cq *cq;
	void *context;

	for (unsigned i = 0; i < n; i++)
		fd[i] = (struct pollfd){ .fd = p[i]->socket >= 0 ? p[i]->socket : p[i]->channel->fd,
			                 .events = POLLIN };
	if (!poll(fd, n, ms))
		return false;
	for (unsigned i = 0; i < n; i++) {
		if (!fd[i].revents || p[i]->socket >= 0)
			continue;
		check(!ibv_get_cq_event(p[i]->channel, &cq, &context), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		check(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	}
	return true;
}

static _Noreturn void forward(struct port **p, unsigned n)
{
	char message[BYTES];

	for (;;) {
		bool any = false;

		/* in turn, as what a port has sent is done when it is polled, too */
		for (unsigned i = 0; i < n; i++) {
			uint32_t bytes = next_message(p[i], message);

			for (unsigned k = 0; k < n && bytes; k++)
				if (k != i)
					send_message(p[k], message, bytes);
			any |= bytes;
		}
		if (!any)
			wait_any(p, n, -1);
	}
}

/* The next question, or answer, has come. True: it is the one that must. */
static bool is_next(const struct message *m, bool answers, uint64_t next)
{
	if (m->is_answer != answers || (!m->number && next == 1)) /* the first, once more */
		return false;
	must(m->number == next, "number %llu has come, not %llu", (unsigned long long)m->number,
	     (unsigned long long)next);
	return true;
}

static bool next_of(struct port *p, struct message *came)
{
	uint32_t bytes = next_message(p, came);

	if (bytes && bytes != BYTES)
		errx(EXIT_FAILURE, "%u bytes", bytes);
	return bytes;
}

static void ask(struct port *p, uint64_t count)
{
	struct message question = { 0 }, came;
	uint64_t answered = 0, asked = 1;

	send_message(p, &question, BYTES);
	while (answered < count) {
		for (; answered && asked < count && asked < answered + AHEAD; asked++) {
			question.number = asked;
			send_message(p, &question, BYTES);
		}
		if (!wait_any(&p, 1, answered ? -1 : AGAIN_MS))
			send_message(p, &question, BYTES);
		while (next_of(p, &came))
			answered += is_next(&came, true, answered);
	}
}

static void answer(struct port *p, uint64_t count)
{
	struct message answer = { .is_answer = true }, came;

	for (uint64_t next = 0; next < count;) {
		wait_any(&p, 1, -1);
		while (next_of(p, &came)) {
			bool again = !came.is_answer && !came.number;

			next += is_next(&came, false, next);
			answer.number = came.number;
			if (!came.is_answer && (again || came.number + 1 == next))
				send_message(p, &answer, BYTES);
		}
	}
}

/* ---- members, each of which hears all others */

struct member {
	struct port *port;
	uint32_t own, all;        /* its number; bits of the others */
	uint32_t heard, complete; /* bits of members: heard here; that have heard all others */
	uint64_t count, sent;
	uint64_t last[MEMBERS]; /* numbers that have come */
};

static void say(struct member *m, uint64_t number)
{
	struct word w = { .number = number, .from = m->own, .heard = m->heard };

	memset(w.rest, (char)number, sizeof(w.rest));
	send_message(m->port, &w, sizeof(w));
	m->sent = number;
}

static void hear(struct member *m, const struct word *w, uint32_t bytes)
{
	if (bytes != sizeof(*w) || w->from >= MEMBERS || w->rest[0] != (char)w->number ||
	    memcmp(w->rest, w->rest + 1, sizeof(w->rest) - 1))
		errx(EXIT_FAILURE, "%u bytes, which no member has sent", bytes);
	if (w->number != m->last[w->from] + 1 && (w->number || m->last[w->from]))
		errx(EXIT_FAILURE, "number %llu of member %u has come after %llu",
		     (unsigned long long)w->number, w->from, (unsigned long long)m->last[w->from]);
	m->last[w->from] = w->number;
	if (w->from == m->own)
		return;
	m->heard |= 1u << w->from;
	if ((w->heard | 1u << w->from) == (m->all | 1u << m->own))
		m->complete |= 1u << w->from;
	if (!w->from)
		say(m, w->number); /* hello as well, until all have heard all */
}

/* The lowest number of which all others have sent theirs. */
static uint64_t heard_of_all(const struct member *m)
{
	uint64_t lowest = UINT64_MAX;

	for (uint32_t i = 0; i < MEMBERS; i++)
		if ((m->all >> i & 1) && m->last[i] < lowest)
			lowest = m->last[i];
	return lowest;
}

static _Noreturn void be_member(struct member *m)
{
	bool done = false;
	struct word w[BYTES / sizeof(struct word) + 1];
	uint32_t bytes;

	for (;;) {
		while ((bytes = next_message(m->port, w)))
			hear(m, w, bytes);
		if (!m->own && m->complete == m->all && m->sent < m->count &&
		    heard_of_all(m) == m->sent) {
			say(m, m->sent + 1);
			continue;
		}
		if (!done && m->sent == m->count && heard_of_all(m) == m->count) {
			printf("all in sequence\n");
			done = true;
		}
		if (!wait_any(&m->port, 1, !m->own && !m->sent ? AGAIN_MS : -1))
			say(m, 0);
	}
}

static _Noreturn void forward_all(char **argv, int n)
{
	struct port *p[PORTS];

	must(n <= PORTS, "at most %d ports", PORTS);
	for (int i = 0; i < n; i++)
		p[i] = open_port(argv[3 + i], argv[2], false);
	printf("ready\n");
	forward(p, (unsigned)n);
}

int main(int argc, char **argv)
{
	const bool is_member = argc == 7 && !strcmp(argv[1], "member");
	struct member m = { 0 };
	struct port *p;

	if (!is_member && !(argc > 4 && !strcmp(argv[1], "forward")) && argc != 5)
		errx(2, "usage: gateway forward GROUP ADDRESS...; ask|answer GROUP ADDRESS COUNT; "
		        "member GROUP ADDRESS COUNT NUMBER MEMBERS");
	setlinebuf(stdout);
	if (!strcmp(argv[1], "forward"))
		forward_all(argv, argc - 3);
	p = open_port(argv[3], argv[2], is_member);
	printf("ready\n");
	if (is_member) {
		m.port = p;
		m.count = strtoull(argv[4], NULL, 10);
		m.own = (uint32_t)atoi(argv[5]) % MEMBERS;
		m.all = ((1u << atoi(argv[6]) % MEMBERS) - 1) & ~(1u << m.own);
		be_member(&m);
	}
	if (!strcmp(argv[1], "ask"))
		ask(p, strtoull(argv[4], NULL, 10));
	else
		answer(p, strtoull(argv[4], NULL, 10));
	printf("all in sequence\n");
	return EXIT_SUCCESS;
}
