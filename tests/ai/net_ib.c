/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * net_ib SOCKET receive | send [COMMAND]: two programs that make the calls of NCCL's net_ib in its
 * order. Two HCAs a host are one device to them. The receiver posts receives without memory, and
 * writes into the sender's list where a message goes (inline). The sender, who polls that list,
 * splits each message over the queue pairs of both HCAs, by WRITEs whose last has immediate data;
 * on InfiniBand a long one is a WRITE, and a WRITE with immediate data and no bytes. The receiver
 * flushes arrived messages by a READ from itself to itself. COMMAND is run in the middle, and takes
 * a link down: the messages under way on that HCA are sent again by the other one, and so is the
 * rest. Ends with 0 if every byte of every message came; prints how many each HCA has carried.
 */
#include "posix.h"
#include "base/pause.h"
#include "pair.h"

enum {
	HCAS = 2,
	QPS = 4, /* queue pair i is of HCA i % 2, and i ^ 1 of the other one */
	SLOTS = 8,
	MESSAGES = 60,
	BREAK_AT = 25,
	RECEIVES = 64,
	ALIGNMENT = 128,
	LONG = 8192,
	TIMEOUT = 14,
	OF_LIST = 1 << 20, /* in wr_id: a write into the sender's list */
	ROOM = 1 << 18,
};

static const unsigned sizes[] = { 0, 1, 127, 128, 129, 4096, 8192, 8193, 65536, ROOM - 1 };
#define SIZES (sizeof(sizes) / sizeof(*sizes))

/* Where a message goes. */
struct element {
	uint64_t addr;
	uint32_t rkey[HCAS], bytes;
	uint32_t message; /* + 1: it is there */
};

struct pair {
	struct ai_device hca[AI_MAX_DEVICES];
	struct ibv_qp *qp[QPS];
	int sock;
	unsigned char *data; /* of all messages: a chunk may come twice, when its first
	                        acknowledgement got lost */
	struct ibv_mr *mr[HCAS];
	struct element list[SLOTS], peers_list[SLOTS]; /* ours, and what we write into the peer's */
	struct ibv_mr *list_mr[HCAS], *peers_mr[HCAS];
	struct {
		uint64_t list;
		uint32_t rkey[HCAS];
	} mine, peer;
	unsigned done[MESSAGES]; /* chunks that have come, or are acknowledged, a bit each */
	unsigned bytes[HCAS];
	atomic_int port_errors;
};

static unsigned size_of(unsigned message)
{
	return sizes[message % SIZES];
}

static void *watch(void *arg)
{
	struct pair *p = arg;
	struct ibv_async_event event;

	while (!ibv_get_async_event(p->hca[0].context, &event)) {
		if (event.event_type == IBV_EVENT_PORT_ERR)
			atomic_fetch_add(&p->port_errors, 1);
		ibv_ack_async_event(&event);
	}
	return NULL;
}

static void post_receive(struct pair *p, int q)
{
	struct ibv_recv_wr wr = { .wr_id = (uint64_t)q }, *bad;

	AI_CHECK(!ibv_post_recv(p->qp[q], &wr, &bad));
}

static void connect_all(struct pair *p)
{
	struct ai_end mine[QPS], peers[QPS];

	for (int q = 0; q < QPS; q++) {
		AI_CHECK(p->qp[q] = ai_make_qp(&p->hca[q % HCAS]));
		mine[q] = ai_end_of(p->qp[q], &p->hca[q % HCAS]);
	}
	ai_swap(p->sock, mine, peers, sizeof(mine));
	for (int q = 0; q < QPS; q++) {
		ai_connect_qp(p->qp[q], &p->hca[q % HCAS], &peers[q], TIMEOUT);
		for (int i = 0; i < RECEIVES; i++)
			post_receive(p, q);
	}
	p->mine.list = (uintptr_t)p->list;
	for (int i = 0; i < HCAS; i++)
		p->mine.rkey[i] = p->list_mr[i]->rkey;
	ai_swap(p->sock, &p->mine, &p->peer, sizeof(p->mine));
}

static void register_all(struct pair *p)
{
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	AI_CHECK(p->data = calloc(MESSAGES, ROOM));
	for (int i = 0; i < HCAS; i++) {
		struct ibv_pd *pd = p->hca[i].pd;

		AI_CHECK(p->mr[i] = ibv_reg_mr_iova2(pd, p->data, (size_t)MESSAGES * ROOM,
		                                     (uintptr_t)p->data,
		                                     (unsigned)all | IBV_ACCESS_RELAXED_ORDERING));
		AI_CHECK(p->list_mr[i] = ibv_reg_mr(pd, p->list, sizeof(p->list), all));
		AI_CHECK(p->peers_mr[i] =
		                 ibv_reg_mr(pd, p->peers_list, sizeof(p->peers_list), all));
	}
}

/* Queue pair @q, or the other HCA's if its HCA has failed. */
static int alive(const struct pair *p, int q)
{
	return p->hca[q % HCAS].failed ? q ^ 1 : q;
}

static void post(struct pair *p, int q, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	AI_CHECK(!p->hca[q % HCAS].failed);
	AI_CHECK(!ibv_post_send(p->qp[q], wr, &bad));
}

/* ---- the sender */

/* A chunk of a message, for which it was split over all queue pairs. */
static void send_chunk(struct pair *p, unsigned message, int chunk)
{
	const struct element *to = &p->list[message % SLOTS];
	unsigned part = (size_of(message) + QPS - 1) / QPS, begin, bytes;
	int q = alive(p, chunk), hca = q % HCAS;
	struct ibv_sge sge = { .lkey = p->mr[hca]->lkey };
	struct ibv_send_wr last = { .wr_id = message << 8 | (unsigned)chunk,
		                    .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		                    .send_flags = IBV_SEND_SIGNALED,
		                    .imm_data = htobe32(message << 8 | (unsigned)chunk) },
	                   first = { .opcode = IBV_WR_RDMA_WRITE,
		                     .next = &last,
		                     .sg_list = &sge,
		                     .num_sge = 1 };

	part = (part + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	begin = (unsigned)chunk * part;
	if (begin > size_of(message))
		begin = size_of(message);
	bytes = size_of(message) - begin < part ? size_of(message) - begin : part;
	sge.addr = (uintptr_t)p->data + (size_t)message * ROOM + begin;
	sge.length = bytes;
	last.wr.rdma.remote_addr = first.wr.rdma.remote_addr = to->addr + begin;
	last.wr.rdma.rkey = first.wr.rdma.rkey = to->rkey[hca];
	p->bytes[hca] += bytes;
	if (bytes && size_of(message) > LONG &&
	    p->hca[hca].attr.link_layer == IBV_LINK_LAYER_INFINIBAND) {
		post(p, q, &first);
		return;
	}
	last.sg_list = &sge;
	last.num_sge = bytes ? 1 : 0;
	post(p, q, &last);
}

static void poll_sender(struct pair *p)
{
	struct ibv_wc wc[4];

	for (int i = 0; i < HCAS; i++) {
		int n = ibv_poll_cq(p->hca[i].cq, 4, wc);

		AI_CHECK(n >= 0);
		for (int k = 0; k < n; k++) {
			unsigned message = (unsigned)(wc[k].wr_id >> 8), chunk = wc[k].wr_id & 0xff;

			if (wc[k].status == IBV_WC_WR_FLUSH_ERR && !wc[k].wr_id)
				continue; /* a receive, or a WRITE before its last */
			if (wc[k].status == IBV_WC_SUCCESS) {
				p->done[message] |= 1u << chunk;
				continue;
			}
			AI_CHECK(wc[k].status == IBV_WC_RETRY_EXC_ERR ||
			         wc[k].status == IBV_WC_WR_FLUSH_ERR);
			p->hca[i].failed = true;
			AI_CHECK(!p->hca[!i].failed);
			if (chunk < QPS && message < MESSAGES && !(p->done[message] & 1u << chunk))
				send_chunk(p, message, (int)chunk);
		}
	}
}

static void send_all(struct pair *p, const char *command)
{
	for (size_t i = 0; i < (size_t)MESSAGES * ROOM; i++)
		p->data[i] = ai_byte((unsigned)(i / ROOM), i % ROOM);
	for (unsigned message = 0; message < MESSAGES; message++) {
		volatile struct element *there = &p->list[message % SLOTS];
		struct base_pause pause = { 0 };

		if (command && message == BREAK_AT)
			AI_CHECK(!system(command));
		while (there->message != message + 1) {
			poll_sender(p);
			base_pause(&pause);
		}
		atomic_thread_fence(memory_order_acquire);
		AI_CHECK(there->bytes >= size_of(message));
		for (int chunk = 0; chunk < QPS; chunk++)
			send_chunk(p, message, chunk);
	}
	for (unsigned message = 0; message < MESSAGES; message++) {
		struct base_pause pause = { 0 };

		while (p->done[message] != (1u << QPS) - 1) {
			poll_sender(p);
			base_pause(&pause);
		}
	}
}

/* ---- the receiver */

static void write_element(struct pair *p, unsigned message)
{
	struct element *e = &p->peers_list[message % SLOTS];
	int q = alive(p, (int)(message % QPS)), hca = q % HCAS;
	struct ibv_sge sge = { (uintptr_t)e, sizeof(*e), p->peers_mr[hca]->lkey };
	struct ibv_send_wr wr = { .wr_id = OF_LIST | message,
		                  .opcode = IBV_WR_RDMA_WRITE,
		                  .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
		                  .sg_list = &sge,
		                  .num_sge = 1 };

	*e = (struct element){ .addr = (uintptr_t)p->data + (size_t)message * ROOM,
		               .bytes = size_of(message),
		               .message = message + 1 };
	for (int i = 0; i < HCAS; i++)
		e->rkey[i] = p->mr[i]->rkey;
	wr.wr.rdma.remote_addr = p->peer.list + message % SLOTS * sizeof(*e);
	wr.wr.rdma.rkey = p->peer.rkey[hca];
	post(p, q, &wr);
}

/* One completion on an HCA; @finished: messages before this one are complete. */
static void take(struct pair *p, int hca, const struct ibv_wc *wc, unsigned finished)
{
	if (wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		unsigned imm = be32toh(wc->imm_data), message = imm >> 8, chunk = imm & 0xff;

		AI_CHECK(message < MESSAGES && chunk < QPS);
		p->done[message] |= 1u << chunk;
		post_receive(p, (int)wc->wr_id);
		return;
	}
	if (wc->status == IBV_WC_SUCCESS)
		return;
	AI_CHECK(wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_WR_FLUSH_ERR);
	p->hca[hca].failed = true;
	AI_CHECK(!p->hca[!hca].failed);
	if (wc->wr_id & OF_LIST && (wc->wr_id & ~(uint64_t)OF_LIST) >= finished)
		write_element(p, (unsigned)(wc->wr_id & ~(uint64_t)OF_LIST));
}

static void poll_receiver(struct pair *p, unsigned finished)
{
	struct ibv_wc wc[4];

	for (int i = 0; i < HCAS; i++) {
		int n = ibv_poll_cq(p->hca[i].cq, 4, wc);

		AI_CHECK(n >= 0);
		for (int k = 0; k < n; k++)
			take(p, i, &wc[k], finished);
	}
}

/* The bytes of a READ from the receiver's own memory come behind all that arrived before it. */
struct flush {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	unsigned char byte;
};

static void make_flush(struct flush *f, struct ai_device *d)
{
	struct ai_device on = *d;
	struct ai_end self;

	AI_CHECK(f->cq = on.cq = ibv_create_cq(d->context, 4, NULL, NULL, 0));
	AI_CHECK(f->qp = ai_make_qp(&on));
	self = ai_end_of(f->qp, d);
	ai_connect_qp(f->qp, d, &self, TIMEOUT);
	AI_CHECK(f->mr = ibv_reg_mr(d->pd, &f->byte, 1, IBV_ACCESS_LOCAL_WRITE));
}

static void flush(struct flush *f, const struct ibv_mr *mr, const unsigned char *at)
{
	struct ibv_sge sge = { (uintptr_t)&f->byte, 1, f->mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ,
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .sg_list = &sge,
		                  .num_sge = 1 },
	                   *bad;
	struct base_pause pause = { 0 };
	struct ibv_wc wc;
	int n;

	wr.wr.rdma.remote_addr = (uintptr_t)at;
	wr.wr.rdma.rkey = mr->rkey;
	AI_CHECK(!ibv_post_send(f->qp, &wr, &bad));
	while (!(n = ibv_poll_cq(f->cq, 1, &wc)))
		base_pause(&pause);
	AI_CHECK(n == 1 && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RDMA_READ);
	AI_CHECK(f->byte == *at);
}

static void receive_all(struct pair *p)
{
	struct flush flushes[HCAS];

	for (int i = 0; i < HCAS; i++)
		make_flush(&flushes[i], &p->hca[i]);
	for (unsigned message = 0; message < SLOTS; message++)
		write_element(p, message);
	for (unsigned message = 0; message < MESSAGES; message++) {
		const unsigned char *data = p->data + (size_t)message * ROOM;
		struct base_pause pause = { 0 };

		while (p->done[message] != (1u << QPS) - 1) {
			poll_receiver(p, message);
			base_pause(&pause);
		}
		for (int i = 0; i < HCAS && size_of(message); i++)
			if (!p->hca[i].failed)
				flush(&flushes[i], p->mr[i], data);
		for (size_t i = 0; i < size_of(message); i++)
			AI_CHECK(data[i] == ai_byte(message, i));
		AI_CHECK(size_of(message) == ROOM || !data[size_of(message)]);
		if (message + SLOTS < MESSAGES)
			write_element(p, message + SLOTS);
	}
}

int main(int argc, char **argv)
{
	static struct pair p;
	const char *command = argc > 3 ? argv[3] : NULL;
	pthread_t thread;
	bool sends;
	int done;

	AI_CHECK(argc > 2);
	sends = !strcmp(argv[2], "send");
	AI_CHECK(ai_find_devices(p.hca) == HCAS);
	AI_CHECK(!pthread_create(&thread, NULL, watch, &p));
	p.sock = ai_meet(argv[1], !sends);
	register_all(&p);
	connect_all(&p);
	if (sends)
		send_all(&p, command);
	else
		receive_all(&p);
	ai_swap(p.sock, &done, &done, sizeof(done));
	if (sends)
		printf("%d messages, %u and %u bytes by %s and %s%s%s\n", MESSAGES, p.bytes[0],
		       p.bytes[1], p.hca[0].name, p.hca[1].name,
		       p.hca[0].failed ? ", of which the first failed" : "",
		       atomic_load(&p.port_errors) ? ", port error" : "");
	else
		printf("%d messages are whole\n", MESSAGES);
	return 0;
}
