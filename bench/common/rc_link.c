/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The links that are RC queue pairs (rc.h): SEND and RECV, and RDMA WRITE to a slot that the other
 * side looks at. As in the raw ring, a slot written to ends with the message's number.
 */
#include "common/rc.h"
#include "common/endpoint.h"
#include "common/link.h"
#include "common/util.h"

#define INLINE 64
#define LINE   64

struct rc_link {
	struct bench_rc rc;
	uint32_t bytes, depth;
	uint32_t sent, done, received, posted; /* messages; done: sends completed */
	char *slots, *from;                    /* depth messages to come, and as many to send */
	struct ibv_sge send_sge[BENCH_LIST], recv_sge[BENCH_LIST];
	struct ibv_send_wr send_wr[BENCH_LIST];
	struct ibv_recv_wr recv_wr[BENCH_LIST];
};

static void *rc_prepare(const struct bench_spec *spec)
{
	(void)spec;
	return bench_alloc(sizeof(struct bench_rc_told), 1);
}

static void prepare_lists(struct rc_link *l, enum ibv_wr_opcode opcode)
{
	for (unsigned i = 0; i < BENCH_LIST; i++) {
		struct ibv_send_wr *wr = &l->send_wr[i];

		l->send_sge[i].length = l->bytes;
		l->send_sge[i].lkey = l->rc.mr->lkey;
		wr->sg_list = &l->send_sge[i];
		wr->num_sge = 1;
		wr->opcode = opcode;
		wr->wr.rdma.rkey = l->rc.peer->rkey;
		l->recv_sge[i].length = l->bytes;
		l->recv_sge[i].lkey = l->rc.mr->lkey;
		l->recv_wr[i].sg_list = &l->recv_sge[i];
		l->recv_wr[i].num_sge = 1;
	}
}

static struct rc_link *open_link(void *shared, const struct bench_spec *spec, int side,
                                 enum ibv_wr_opcode opcode)
{
	struct rc_link *l = bench_alloc(sizeof(*l), 0);

	l->bytes = spec->bytes;
	l->depth = spec->depth;
	bench_rc_open(&l->rc, shared, side,
	              &(struct bench_rc_plan){ .bytes = (size_t)l->bytes * l->depth * 2,
	                                       .depth = l->depth,
	                                       .has_srq = spec->has_srq,
	                                       .ip = spec->device ? spec->address[side] : NULL });
	bench_rc_connect(&l->rc);
	l->slots = l->rc.memory;
	l->from = l->slots + (size_t)l->bytes * l->depth;
	prepare_lists(l, opcode);
	return l;
}

static size_t slot_of(const struct rc_link *l, uint32_t position)
{
	return (size_t)(position & (l->depth - 1)) * l->bytes;
}

static void reap(struct rc_link *l)
{
	while (l->sent - l->done > l->depth / 2)
		l->done += (uint32_t)bench_rc_poll(l->rc.send_cq, 4) * BENCH_LIST;
}

static void post(struct rc_link *l, unsigned n)
{
	const unsigned flags = l->bytes <= INLINE ? IBV_SEND_INLINE : 0;
	struct ibv_send_wr *bad;

	for (unsigned i = 0; i < n; i++) {
		/* on a network it is read until its completion is there */
		l->send_sge[i].addr = (uintptr_t)l->from + slot_of(l, l->sent);
		l->send_wr[i].send_flags = flags | (++l->sent % BENCH_LIST ? 0 : IBV_SEND_SIGNALED);
		l->send_wr[i].next = i + 1 < n ? &l->send_wr[i + 1] : NULL;
	}
	errno = ibv_post_send(l->rc.qp, l->send_wr, &bad);
	bench_must(!errno, "ibv_post_send");
	reap(l);
}

/* On a network the queue pair goes on while its program polls: what has come is taken, and
 * acknowledged. */
static void rc_wait(void *link)
{
	struct rc_link *l = link;

	if (l->rc.ip)
		l->done += (uint32_t)bench_rc_poll(l->rc.send_cq, 4) * BENCH_LIST;
}

static void rc_close(void *link)
{
	struct rc_link *l = link;

	bench_rc_close(&l->rc);
	bench_free(l, sizeof(*l));
}

/* ---- SEND ---- */

static void send_settle(void *link)
{
	struct rc_link *l = link;
	struct ibv_recv_wr *bad;

	while (l->posted - l->received < l->depth) {
		unsigned n = 0;

		for (; n < BENCH_LIST && l->posted - l->received < l->depth; n++, l->posted++) {
			l->recv_sge[n].addr = (uintptr_t)l->slots + slot_of(l, l->posted);
			l->recv_wr[n].next = &l->recv_wr[n + 1];
		}
		l->recv_wr[n - 1].next = NULL;
		errno = l->rc.srq ? ibv_post_srq_recv(l->rc.srq, l->recv_wr, &bad)
		                  : ibv_post_recv(l->rc.qp, l->recv_wr, &bad);
		bench_must(!errno, "ibv_post_recv");
	}
}

static void *send_open(void *shared, const struct bench_spec *spec, int side)
{
	struct rc_link *l = open_link(shared, spec, side, IBV_WR_SEND);

	send_settle(l);
	return l;
}

static void send_send(void *link, unsigned n)
{
	post(link, n);
}

/* Looks at each line of the next @n messages, as programs do: their sender has written there. */
static void look_at(const struct rc_link *l, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const char *message = l->slots + slot_of(l, l->received + i);

		for (uint32_t at = 0; at < l->bytes; at += LINE)
			(void)*(const volatile char *)(message + at);
	}
}

static unsigned send_receive(void *link, unsigned max)
{
	struct rc_link *l = link;
	unsigned n = (unsigned)bench_rc_poll(l->rc.recv_cq, (int)max);

	look_at(l, n);
	l->received += n;
	return n;
}

/* ---- RDMA WRITE ---- */

static void *write_open(void *shared, const struct bench_spec *spec, int side)
{
	return open_link(shared, spec, side, IBV_WR_RDMA_WRITE);
}

/* Where a message at @message has its number. */
static _Atomic uint32_t *number_of(const struct rc_link *l, char *message)
{
	return (_Atomic uint32_t *)(message + l->bytes) - 1;
}

static void write_send(void *link, unsigned n)
{
	struct rc_link *l = link;

	for (unsigned i = 0; i < n; i++) {
		atomic_store_explicit(number_of(l, l->from + slot_of(l, l->sent + i)),
		                      l->sent + i + 1, memory_order_relaxed);
		l->send_wr[i].wr.rdma.remote_addr = l->rc.peer->memory + slot_of(l, l->sent + i);
	}
	post(l, n);
}

static unsigned write_receive(void *link, unsigned max)
{
	struct rc_link *l = link;
	unsigned n = 0;

	for (; n < max; n++, l->received++)
		/* acquire: what was written before the number is there */
		if (atomic_load_explicit(number_of(l, l->slots + slot_of(l, l->received)),
		                         memory_order_acquire) != l->received + 1)
			break;
	if (!n)
		rc_wait(l);
	return n;
}

static void write_settle(void *link)
{
	(void)link;
}

const struct bench_link_ops bench_rc_send_ops = {
	.name = "rc-send",
	.exchanges = 10000,
	.messages = 200000,
	.prepare = rc_prepare,
	.open = send_open,
	.send = send_send,
	.wait = rc_wait,
	.receive = send_receive,
	.settle = send_settle,
	.close = rc_close,
};

const struct bench_link_ops bench_rc_write_ops = {
	.name = "rc-write",
	.exchanges = 10000,
	.messages = 200000,
	.prepare = rc_prepare,
	.open = write_open,
	.send = write_send,
	.wait = rc_wait,
	.receive = write_receive,
	.settle = write_settle,
	.close = rc_close,
};
