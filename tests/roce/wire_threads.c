// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * wire_threads MESSAGES [ADDRESS]: two processes send each other messages over one RC connection:
 * the server, and with ADDRESS, which is the server's, the client. In each several threads post to
 * the one queue pair, and one waits for events, so that the daemon sends for it, too; signals
 * interrupt all of them, a thousand times a second. Each message is whole, and those of a thread
 * come in their order, as do the completions of its sends.
 */
#include "must.h"

#include <rdma/rdma_cma.h>
#include <semaphore.h>

#define PORT     "18516"
#define LANES    3  /* threads that post */
#define DEPTH    8  /* messages of each under way */
#define RECEIVES 16 /* few: now and then a message finds none */
#define WORDS    700

struct message {
	uint64_t lane, number;
	uint64_t word[WORDS];
};

struct lane {
	uint64_t number;
	struct message message[DEPTH];
	sem_t room; /* messages that may be posted */
	uint64_t sent, received;
	pthread_t thread;
};

static struct memory {
	struct lane lane[LANES];
	struct message receive[RECEIVES];
} memory;

static uint64_t messages;
static bool is_client;
static struct rdma_cm_id *id;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_mr *mr;

/* ---- signals ---- */

static void on_signal(int unused)
{
	(void)unused;
}

/* Of this thread. */
static void begin_signals(void)
{
	const struct itimerspec often = { { 0, 1000000 }, { 0, 1000000 } };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM };
	timer_t timer;

	event._sigev_un._tid = gettid();
	check(!timer_create(CLOCK_MONOTONIC, &event, &timer), "timer_create");
	check(!timer_settime(timer, 0, &often, NULL), "timer_settime");
}

/* ---- messages ---- */

static unsigned words_of(uint64_t lane, uint64_t number)
{
	return (unsigned)((number * 131 + lane * 17) % 8 ? (number + lane) % 16
	                                                 : number * 37 % (WORDS + 1));
}

static uint32_t bytes_of(uint64_t lane, uint64_t number)
{
	return (uint32_t)(offsetof(struct message, word) + 8 * words_of(lane, number));
}

static uint64_t word_of(bool of_client, uint64_t lane, uint64_t number, unsigned at)
{
	return (number << 24 ^ lane << 16 ^ (uint64_t)of_client << 60 ^ at) * 0x9e3779b97f4a7c15;
}

static void post_receive(unsigned i)
{
	struct ibv_sge sge = { (uintptr_t)&memory.receive[i], sizeof(struct message), mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(id->qp, &wr, &bad);
	check(!errno, "ibv_post_recv");
}

static void post_send(struct lane *l, uint64_t number)
{
	struct message *m = &l->message[number % DEPTH];
	struct ibv_sge sge = { (uintptr_t)m, bytes_of(l->number, number), mr->lkey };
	struct ibv_send_wr wr = { .wr_id = RECEIVES + l->number,
		                  .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_SEND,
		                  .send_flags = IBV_SEND_SIGNALED },
	                   *bad;

	m->lane = l->number;
	m->number = number;
	for (unsigned at = 0; at < words_of(l->number, number); at++)
		m->word[at] = word_of(is_client, l->number, number, at);
	errno = ibv_post_send(id->qp, &wr, &bad);
	check(!errno, "ibv_post_send");
}

static void *post_all(void *arg)
{
	struct lane *l = arg;

	begin_signals();
	for (uint64_t i = 0; i < messages; i++) {
		check(!sem_wait(&l->room), "sem_wait");
		post_send(l, i);
	}
	return NULL;
}

static void take_message(const struct message *m, uint32_t bytes)
{
	struct lane *l = &memory.lane[m->lane % LANES];

	must(m->lane < LANES && m->number == l->received, "message %lu of thread %lu, not %lu",
	     m->number, m->lane, l->received);
	must(bytes == bytes_of(m->lane, m->number), "message %lu of thread %lu has %u bytes",
	     m->number, m->lane, bytes);
	for (unsigned at = 0; at < words_of(m->lane, m->number); at++)
		must(m->word[at] == word_of(!is_client, m->lane, m->number, at),
		     "message %lu of thread %lu: word %u is 0x%lx", m->number, m->lane, at,
		     m->word[at]);
	l->received++;
}

static void take(const struct ibv_wc *wc)
{
	must(!wc->status, "a request ends: %s", ibv_wc_status_str(wc->status));
	if (wc->wr_id < RECEIVES) {
		take_message(&memory.receive[wc->wr_id], wc->byte_len);
		post_receive((unsigned)wc->wr_id);
		return;
	}
	memory.lane[wc->wr_id - RECEIVES].sent++;
	check(!sem_post(&memory.lane[wc->wr_id - RECEIVES].room), "sem_post");
}

static bool all_is_done(void)
{
	for (unsigned i = 0; i < LANES; i++)
		if (memory.lane[i].sent < messages || memory.lane[i].received < messages)
			return false;
	return true;
}

static void take_all(void)
{
	struct ibv_wc wc[4];
	struct ibv_cq *which;
	void *context;
	int n;

	while (!all_is_done()) {
		check(!ibv_get_cq_event(channel, &which, &context), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		check(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
		while ((n = ibv_poll_cq(cq, 4, wc)) > 0)
			for (int i = 0; i < n; i++)
				take(&wc[i]);
		check(!n, "ibv_poll_cq");
	}
}

/* ---- the connection ---- */

static void open_queues(void)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
		                         .cap = { LANES * DEPTH, RECEIVES, 1, 1, 0 } };

	MUST(channel = ibv_create_comp_channel(id->verbs));
	cq = ibv_create_cq(id->verbs, LANES * DEPTH + RECEIVES, NULL, channel, 0);
	check(cq && !ibv_req_notify_cq(cq, 0), "ibv_create_cq");
	attr.send_cq = attr.recv_cq = cq;
	check(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
	MUST(mr = ibv_reg_mr(id->pd, &memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE));
	for (unsigned i = 0; i < RECEIVES; i++)
		post_receive(i);
}

static void connect_to(const char *address)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP,
		                       .ai_flags = address ? 0 : RAI_PASSIVE },
	                     *info;
	struct rdma_cm_id *listener;

	check(!rdma_getaddrinfo(address, PORT, &hints, &info), "rdma_getaddrinfo");
	check(!rdma_create_ep(&id, info, NULL, NULL), "rdma_create_ep");
	if (address) {
		open_queues();
		check(!rdma_connect(id, &param), "rdma_connect");
		return;
	}
	listener = id;
	check(!rdma_listen(listener, 1), "rdma_listen");
	puts("listens");
	fflush(stdout);
	check(!rdma_get_request(listener, &id), "rdma_get_request");
	open_queues();
	check(!rdma_accept(id, &param), "rdma_accept");
}

int main(int argc, char **argv)
{
	const struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	must(argc >= 2, "usage: %s MESSAGES [ADDRESS]", argv[0]);
	messages = strtoul(argv[1], NULL, 0);
	is_client = argc > 2;
	check(!sigaction(SIGALRM, &act, NULL), "sigaction");
	connect_to(argv[2]);
	begin_signals();
	for (unsigned i = 0; i < LANES; i++) {
		struct lane *l = &memory.lane[i];

		l->number = i;
		check(!sem_init(&l->room, 0, DEPTH), "sem_init");
		errno = pthread_create(&l->thread, NULL, post_all, l);
		check(!errno, "pthread_create");
	}
	take_all();
	puts("all is well");
	return EXIT_SUCCESS;
}
