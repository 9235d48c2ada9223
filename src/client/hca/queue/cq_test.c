/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A completion queue that has been used for so long that its counters go round, of sizes that are
 * no powers of two; and when polls look at a network. There is no daemon, and nothing arrives:
 * completions are this process's own.
 */
#include <harness.h>

#include "base/util.h"
#include "hca/process/link.h"
#include "hca/queue/cq.h"
#include "hca/queue/qp.h"

struct lab {
	struct shm_control control;
	struct hca_process process;
	struct hca_context context;
	struct shm_cq shm;
	struct hca_cq cq;
	struct hca_qp qp;
};

/* A queue of @cqe that has had @polled completions. */
static struct lab *make(uint32_t cqe, uint32_t polled)
{
	struct lab *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	l->process.region.control = &l->control;
	l->context.process = &l->process;
	l->cq.ctx = &l->context;
	l->cq.shm = &l->shm;
	hca_cq_use_ring(&l->cq, hca_cq_alloc_ring(cqe), cqe);
	assert_non_null(l->cq.ring);
	l->cq.head = l->cq.tail = polled;
	return l;
}

static void unmake(struct lab *l)
{
	free(l->cq.ring);
	free(l);
}

/* Fills and empties a queue of @cqe, from just before its counters go round on. */
static void check_size(uint32_t cqe)
{
	struct lab *l = make(cqe, 0u - 2 * cqe - 1);
	uint64_t pushed = 0, polled = 0;

	for (unsigned round = 0; round < 5; round++) {
		for (uint32_t i = 0; i < cqe; i++)
			hca_cq_push(&l->cq, &(struct hca_cqe){ .wr_id = pushed++, .qp = &l->qp });
		for (uint32_t i = 0; i < cqe; i++) {
			struct ibv_wc wc;

			assert_int_equal(hca_cq_poll(&l->cq, 1, &wc), 1);
			assert_int_equal(wc.wr_id, polled++);
		}
	}
	assert_int_equal(l->cq.head, l->cq.tail);
	assert_int_equal(atomic_load(&l->shm.overrun), 0);
	unmake(l);
}

CASE(no_completion_is_lost_when_the_counters_go_round)
{
	const uint32_t sizes[] = { 1, 2, 3, 5, 257, 1000, 1024 };

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		check_size(sizes[i]);
}

CASE(purging_keeps_the_others_when_the_counters_go_round)
{
	struct lab *l = make(7, 0u - 3);
	struct ibv_wc wc[7];
	struct hca_qp other = { 0 };
	struct hca_rq elsewhere = { 0 };

	other.rq = &elsewhere;
	for (uint64_t i = 0; i < 7; i++)
		hca_cq_push(&l->cq, &(struct hca_cqe){ .wr_id = i, .qp = i % 2 ? &other : &l->qp });
	hca_cq_purge(&l->cq, &other);
	assert_int_equal(hca_cq_poll(&l->cq, 7, wc), 4);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(wc[i].wr_id, 2 * i);
	unmake(l);
}

/* ---- a network ---- */

struct net {
	struct hca_link link;
	enum hca_attention attention;
	unsigned looks, promises; /* of these, by who will look again */
};

static bool look(struct hca_link *link, bool again)
{
	struct net *net = container_of(link, struct net, link);

	net->looks++;
	net->promises += again;
	if (again)
		net->attention = HCA_ATTENDED;
	return false;
}

static enum hca_attention attention(const struct hca_link *link, uint64_t now)
{
	assert_true(now);
	return container_of(link, struct net, link)->attention;
}

static const struct hca_link_ops ops = { .progress = look, .attention = attention };

/* Polls so often for @n completions that each finds one. */
static void find(struct lab *l, unsigned polls, int n)
{
	struct ibv_wc wc[2];

	for (unsigned i = 0; i < polls; i++) {
		hca_cq_push(&l->cq, &(struct hca_cqe){ .wr_id = i, .qp = &l->qp });
		assert_int_equal(hca_cq_poll(&l->cq, n, wc), 1);
		assert_int_equal(wc[0].wr_id, i);
	}
}

CASE(polls_that_find_nothing_look_at_the_network)
{
	struct net net = { .link.ops = &ops };
	struct lab *l = make(16, 0);
	struct ibv_wc wc;

	l->cq.network = &net.link;
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(hca_cq_poll(&l->cq, 1, &wc), 0);
		assert_int_equal(net.looks, i);
	}
	assert_int_equal(net.promises, 3);
	unmake(l);
}

CASE(others_look_at_a_network_that_is_neglected)
{
	struct net net = { .link.ops = &ops };
	struct lab *l = make(16, 0);

	l->cq.network = &net.link;
	find(l, 1000, 2);
	assert_int_equal(net.looks, 0);
	net.attention = HCA_NEGLECTED;
	find(l, 1000, 1); /* there may be more: it has not posted the receives of these yet */
	assert_int_equal(net.looks, 0);
	find(l, 1000, 2);
	assert_int_equal(net.looks, 1);
	net.attention = HCA_RESTING; /* another thread sleeps, or this one did */
	find(l, 1000, 2);
	assert_int_equal(net.looks, 2);
	assert_int_equal(net.promises, 2);
	unmake(l);
}

/* It may sleep as soon as it has this completion. */
CASE(a_program_that_has_armed_the_queue_does_not_promise_to_look_again)
{
	struct net net = { .link.ops = &ops, .attention = HCA_NEGLECTED };
	struct lab *l = make(16, 0);

	l->cq.network = &net.link;
	l->shm.arm = SHM_CQ_ARMED;
	find(l, 100, 2);
	assert_true(net.looks > 0);
	assert_int_equal(net.promises, 0);
	unmake(l);
}
