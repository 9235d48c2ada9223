/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs that lie reserved: from which one on, how many at once, and that each is had once,
 * though the daemon takes back what it wants. The daemon is this program's own.
 */
#include <harness.h>

#include "base/util.h"
#include "control/client.h"
#include "control/socket.h"
#include "hca/process/reserve.h"
#include "shm/region.h"

struct lab {
	struct hca_reserve r;
	struct shm_region region;
	unsigned asked;            /* how often */
	uint32_t n_asked, n_given; /* of the last time; and how many there are at most */
	uint32_t next;             /* index */
	uint64_t ticket;
};

static struct shm_sender *sender(struct lab *l, uint32_t qpn)
{
	return shm_sender_at(&l->region, SHM_QP_INDEX(qpn));
}

static void serve(void *arg, struct control_packet *p)
{
	struct lab *l = arg;
	struct control_reserve_qps req;
	struct control_reserve_qps_reply rep = { .n = 0 };

	assert_int_equal(p->header.type, CONTROL_RESERVE_QPS);
	memcpy(&req, p->body, sizeof(req));
	l->asked++;
	l->n_asked = req.n;
	for (; rep.n < req.n && rep.n < l->n_given; rep.n++) {
		struct control_reserved_qp *q = &rep.of[rep.n];

		q->qp.qpn = ++l->next;
		q->qp.ring_off = req.shape.max_recv_wr; /* by which the test knows the shape */
		q->ticket = ++l->ticket;
		atomic_store(&sender(l, q->qp.qpn)->ticket, q->ticket);
	}
	memcpy(p->body, &rep, sizeof(rep));
	p->header.bytes = sizeof(rep);
}

static int begin(void **state)
{
	struct lab *l = aligned_alloc(128, base_align_up(sizeof(*l), 128));

	assert_non_null(l);
	memset((void *)l, 0, sizeof(*l));
	*state = l;
	l->next = 2;
	l->n_given = CONTROL_MAX_RESERVED;
	assert_int_equal(shm_region_create(&l->region, 1, 2), 0);
	pthread_mutex_init(&l->r.lock, NULL);
	l->r.region = &l->region;
	return control_local(&l->r.control, serve, l);
}

static int end(void **state)
{
	struct lab *l = *state;

	control_close(l->r.control);
	shm_region_unmap(&l->region);
	free(l);
	return 0;
}

/* Its number; 0: it has to be asked for. */
static uint32_t get(struct lab *l, uint32_t max_recv_wr)
{
	const struct control_qp_shape shape = { .max_recv_wr = max_recv_wr, .max_send_wr = 1 };
	struct control_create_qp_reply out = { 0 };

	if (!hca_reserve_get(&l->r, &shape, &out))
		return 0;
	assert_int_equal(out.ring_off, max_recv_wr);
	assert_int_equal(atomic_load(&sender(l, out.qpn)->ticket), 0);
	return out.qpn;
}

CASE_WITH(the_first_ones_are_asked_for_one_by_one, begin, end)
{
	struct lab *l = *state;

	assert_int_equal(get(l, 1), 0);
	assert_int_equal(get(l, 1), 0);
	assert_int_equal(l->asked, 0);
	assert_int_not_equal(get(l, 1), 0);
	assert_int_equal(l->asked, 1);
	assert_int_equal(l->n_asked, 2);
}

CASE_WITH(more_are_asked_for_each_time_and_each_is_had_once, begin, end)
{
	struct lab *l = *state;
	uint32_t last = 2, asked = 0;

	get(l, 1);
	get(l, 1);
	for (unsigned i = 0; i < 20 * CONTROL_MAX_RESERVED; i++) {
		uint32_t qpn = get(l, 1);

		assert_int_equal(qpn, last + 1);
		last = qpn;
		assert_true(l->n_asked >= asked && l->n_asked <= CONTROL_MAX_RESERVED);
		asked = l->n_asked;
	}
	assert_int_equal(asked, CONTROL_MAX_RESERVED);
	assert_in_range(l->asked, 20, 30);
}

CASE_WITH(what_the_daemon_has_taken_back_is_not_had, begin, end)
{
	struct lab *l = *state;
	uint32_t first, n;

	get(l, 1);
	get(l, 1);
	first = get(l, 1);
	for (unsigned i = 0; i < 20; i++)
		first = get(l, 1);
	n = l->next - first; /* that are left */
	assert_true(n > 6);
	for (uint32_t qpn = first + 1; qpn <= l->next; qpn += 2)
		atomic_store(&sender(l, qpn)->ticket, 0);
	assert_int_equal(get(l, 1), first + 2);
	/* and its place is another one's: another ticket */
	atomic_store(&sender(l, first + 4)->ticket, 1000000);
	assert_int_equal(get(l, 1), first + 6);
	assert_int_equal(atomic_load(&sender(l, first + 4)->ticket), 1000000);
}

CASE_WITH(where_there_is_none_it_is_not_asked_for_each_time, begin, end)
{
	struct lab *l = *state;

	l->n_given = 0;
	for (unsigned i = 0; i < 500; i++)
		assert_int_equal(get(l, 1), 0);
	assert_in_range(l->asked, 2, 20);
	l->n_given = CONTROL_MAX_RESERVED;
	for (unsigned i = 0; i < 100 && !get(l, 1); i++)
		;
	assert_int_not_equal(get(l, 1), 0); /* by and by there are some again */
}

CASE_WITH(each_shape_has_its_own, begin, end)
{
	struct lab *l = *state;

	for (uint32_t shape = 1; shape <= HCA_RESERVE_SHAPES; shape++)
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(get(l, shape) != 0, i == 2);
	for (uint32_t shape = 1; shape <= HCA_RESERVE_SHAPES; shape++)
		assert_int_not_equal(get(l, shape), 0);
	assert_int_equal(l->asked, HCA_RESERVE_SHAPES);
	/* one more takes the place of the shape that was used least lately */
	assert_int_equal(get(l, 100), 0);
	assert_int_equal(get(l, 1), 0);
	assert_int_not_equal(get(l, 4), 0);
}
