// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * gateway forward GROUP ADDRESS ADDRESS: forwards the group from each of these ports to the other.
 * gateway ask GROUP ADDRESS COUNT: sends so many numbered questions to the group, some ahead of
 * their answers, which must come in sequence. gateway answer GROUP ADDRESS COUNT: answers so many,
 * which must come in sequence.
 *
 * The ports are InfiniBand's or Ethernet's, as their addresses say. All are full members of the
 * group, and do not hear themselves.
 */
#include <arpa/inet.h>
#include <err.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECEIVES  64
#define SENDS     64
#define GRH       40
#define BYTES     2000 /* of a message */
#define AHEAD     8    /* questions without an answer, few enough for a socket's buffer */
#define AGAIN_MS  50   /* the first question is asked again: its group may not lead there yet */
#define EVENTS_MS 5000

struct message {
	uint64_t number;
	bool is_answer;
	char rest[BYTES - 2 * sizeof(uint64_t)];
};

struct port {
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

static void check(bool ok, const char *what)
{
	if (!ok)
		err(EXIT_FAILURE, "%s", what);
}

/* The next event, which must be this; it is the caller's to acknowledge. */
static struct rdma_cm_event *wait_event(struct port *p, enum rdma_cm_event_type type)
{
	struct pollfd fd = { .fd = p->events->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&fd, 1, EVENTS_MS) != 1)
		errx(EXIT_FAILURE, "no %s", rdma_event_str(type));
	check(!rdma_get_cm_event(p->events, &event), "rdma_get_cm_event");
	if (event->event != type)
		errx(EXIT_FAILURE, "%s, status %d, not %s", rdma_event_str(event->event),
		     event->status, rdma_event_str(type));
	return event;
}

static struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, text, &a.sin_addr) != 1)
		errx(EXIT_FAILURE, "'%s' is no address", text);
	return a;
}

static void post(struct port *p, uint64_t i)
{
	struct ibv_sge sge = { (uintptr_t)p->receive[i], GRH + BYTES, p->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	check(!ibv_post_recv(p->id->qp, &wr, &bad), "ibv_post_recv");
}

static void open_queue_pair(struct port *p)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_UD,
		                            .cap = { SENDS, RECEIVES, 1, 1, 0 },
		                            .comp_mask = IBV_QP_INIT_ATTR_PD |
		                                         IBV_QP_INIT_ATTR_CREATE_FLAGS,
		                            .create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB };

	p->pd = ibv_alloc_pd(p->id->verbs);
	check(p->pd, "ibv_alloc_pd");
	p->mr = ibv_reg_mr(p->pd, p, sizeof(*p), IBV_ACCESS_LOCAL_WRITE);
	check(p->mr, "ibv_reg_mr");
	p->channel = ibv_create_comp_channel(p->id->verbs);
	check(p->channel, "ibv_create_comp_channel");
	p->cq = ibv_create_cq(p->id->verbs, RECEIVES + SENDS, NULL, p->channel, 0);
	check(p->cq, "ibv_create_cq");
	init.pd = p->pd;
	init.send_cq = init.recv_cq = p->cq;
	check(!rdma_create_qp_ex(p->id, &init), "rdma_create_qp_ex");
	for (uint64_t i = 0; i < RECEIVES; i++)
		post(p, i);
}

static struct port *open_port(const char *address, const char *group)
{
	struct sockaddr_in from = address_of(address), to = address_of(group);
	struct port *p = calloc(1, sizeof(*p));
	struct rdma_cm_event *event;

	check(p, "calloc");
	p->events = rdma_create_event_channel();
	check(p->events, "rdma_create_event_channel");
	check(!rdma_create_id(p->events, &p->id, NULL, RDMA_PS_UDP), "rdma_create_id");
	check(!rdma_bind_addr(p->id, (struct sockaddr *)&from), address);
	open_queue_pair(p);
	check(!rdma_resolve_addr(p->id, NULL, (struct sockaddr *)&to, EVENTS_MS),
	      "rdma_resolve_addr");
	rdma_ack_cm_event(wait_event(p, RDMA_CM_EVENT_ADDR_RESOLVED));
	check(!rdma_join_multicast(p->id, (struct sockaddr *)&to, NULL), "rdma_join_multicast");
	event = wait_event(p, RDMA_CM_EVENT_MULTICAST_JOIN);
	p->ah = ibv_create_ah(p->pd, &event->param.ud.ah_attr);
	check(p->ah, "ibv_create_ah");
	p->qpn = event->param.ud.qp_num;
	p->qkey = event->param.ud.qkey;
	rdma_ack_cm_event(event);
	check(!ibv_req_notify_cq(p->cq, 0), "ibv_req_notify_cq");
	return p;
}

static void send_message(struct port *p, const void *message)
{
	char *slot = p->send[p->sent++ % SENDS];
	struct ibv_sge sge = { (uintptr_t)slot, BYTES, p->mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .sg_list = &sge,
		                  .num_sge = 1,
		                  .wr_id = SENDS + RECEIVES,
		                  .wr.ud = { p->ah, p->qpn, p->qkey } },
	                   *bad;

	memcpy(slot, message, BYTES);
	check(!ibv_post_send(p->id->qp, &wr, &bad), "ibv_post_send");
}

/* The next message that has come; NULL: none. Valid until the next call. */
static const struct message *next_message(struct port *p, struct message *copy)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(p->cq, 1, &wc) > 0) {
		if (wc.status)
			errx(EXIT_FAILURE, "%s", ibv_wc_status_str(wc.status));
		if (!(wc.opcode & IBV_WC_RECV))
			continue; /* sent */
		if (wc.byte_len != GRH + BYTES)
			errx(EXIT_FAILURE, "%u bytes", wc.byte_len);
		memcpy(copy, p->receive[wc.wr_id] + GRH, sizeof(*copy));
		post(p, wc.wr_id);
		return copy;
	}
	return NULL;
}

/* Until one of the @n ports has something: true; or so long. */
static bool wait_any(struct port **p, unsigned n, int ms)
{
	struct pollfd fd[2];
	struct ibv_cq *cq;
	void *context;

	for (unsigned i = 0; i < n; i++)
		fd[i] = (struct pollfd){ .fd = p[i]->channel->fd, .events = POLLIN };
	if (!poll(fd, n, ms))
		return false;
	for (unsigned i = 0; i < n; i++) {
		if (!fd[i].revents)
			continue;
		check(!ibv_get_cq_event(p[i]->channel, &cq, &context), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		check(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	}
	return true;
}

static _Noreturn void forward(struct port *p[2])
{
	struct message copy;

	for (;;) {
		bool any = false;

		/* in turn, as what a port has sent is done when it is polled, too */
		for (unsigned i = 0; i < 2; i++) {
			if (!next_message(p[i], &copy))
				continue;
			send_message(p[!i], &copy);
			any = true;
		}
		if (!any)
			wait_any(p, 2, -1);
	}
}

/* The next question, or answer, has come. True: it is the one that must. */
static bool is_next(const struct message *m, bool answers, uint64_t next)
{
	if (m->is_answer != answers || (!m->number && next == 1)) /* the first, once more */
		return false;
	if (m->number != next)
		errx(EXIT_FAILURE, "number %llu has come, not %llu", (unsigned long long)m->number,
		     (unsigned long long)next);
	return true;
}

static void ask(struct port *p, uint64_t count)
{
	struct message question = { 0 }, came;
	uint64_t answered = 0, asked = 1;
	const struct message *m;

	send_message(p, &question);
	while (answered < count) {
		for (; answered && asked < count && asked < answered + AHEAD; asked++) {
			question.number = asked;
			send_message(p, &question);
		}
		if (!wait_any(&p, 1, answered ? -1 : AGAIN_MS))
			send_message(p, &question);
		while ((m = next_message(p, &came)))
			answered += is_next(m, true, answered);
	}
}

static void answer(struct port *p, uint64_t count)
{
	struct message answer = { .is_answer = true }, came;
	const struct message *m;

	for (uint64_t next = 0; next < count;) {
		wait_any(&p, 1, -1);
		while ((m = next_message(p, &came))) {
			bool again = !m->is_answer && !m->number;

			next += is_next(m, false, next);
			answer.number = m->number;
			if (!m->is_answer && (again || m->number + 1 == next))
				send_message(p, &answer);
		}
	}
}

int main(int argc, char **argv)
{
	struct port *p[2];

	if (argc != 5)
		errx(EXIT_FAILURE, "usage: gateway forward|ask|answer GROUP ADDRESS ADDRESS|COUNT");
	setlinebuf(stdout);
	p[0] = open_port(argv[3], argv[2]);
	if (!strcmp(argv[1], "forward"))
		p[1] = open_port(argv[4], argv[2]);
	printf("ready\n");
	if (!strcmp(argv[1], "forward"))
		forward(p);
	if (!strcmp(argv[1], "ask"))
		ask(p[0], strtoull(argv[4], NULL, 10));
	else
		answer(p[0], strtoull(argv[4], NULL, 10));
	printf("all in sequence\n");
	return EXIT_SUCCESS;
}
