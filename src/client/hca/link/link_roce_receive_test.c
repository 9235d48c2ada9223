/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which process receives from the network, and when the daemon does. The port has no sockets here,
 * so a turn ends at once. tests/roce tests what comes by sockets.
 */
#include <harness.h>
#include <sys/eventfd.h>

#include "base/util.h"
#include "hca/link/link_roce.h"

#define OURS   0x00005 /* QP numbers */
#define OTHERS 0x00006

struct lab {
	struct hca_process process;
	struct shm_roce_port shm;
	struct hca_roce roce;
};

static int setup(void **state)
{
	struct lab *l = aligned_alloc(128, base_align_up(sizeof(*l), 128));

	assert_non_null(l);
	memset((void *)l, 0, sizeof(*l));
	assert_int_equal(shm_region_create(&l->process.region, 1, 1), 0);
	l->roce.process = &l->process;
	l->roce.shm = &l->shm;
	l->roce.sender.qpn = OURS;
	l->roce.receive_fd[0] = l->roce.receive_fd[1] = -1;
	l->roce.wake_fd = eventfd(0, EFD_NONBLOCK);
	assert_true(l->roce.wake_fd >= 0);
	*state = l;
	return 0;
}

static int teardown(void **state)
{
	struct lab *l = *state;

	close(l->roce.wake_fd);
	shm_region_unmap(&l->process.region);
	free(l);
	return 0;
}

/* As if QP @qpn had begun to receive @ms ago. */
static uint64_t hold(struct lab *l, uint32_t qpn, uint64_t ms)
{
	uint64_t word = (base_now_ns() / 1000 - ms * 1000) << 16 | SHM_QP_INDEX(qpn);

	l->shm.holder = word;
	return word;
}

static bool woken(struct lab *l)
{
	uint64_t n;

	return read(l->roce.wake_fd, &n, sizeof(n)) == sizeof(n);
}

CASE_WITH(a_turn_ends_with_nobody_receiving, setup, teardown)
{
	struct lab *l = *state;

	assert_false(hca_roce_receive(&l->roce.link, true));
	assert_int_equal(l->shm.holder, 0);
	assert_int_equal(l->shm.overtakes, 0);
}

CASE_WITH(while_one_receives_no_other_does, setup, teardown)
{
	struct lab *l = *state;
	uint64_t word = hold(l, OTHERS, 0);

	hca_roce_receive(&l->roce.link, true);
	assert_int_equal(l->shm.holder, word);
	assert_int_equal(l->shm.overtakes, 0);
}

/* A thread looked at the clock, and was stopped before it looked at the turn. */
CASE_WITH(one_that_began_a_moment_later_is_not_overtaken, setup, teardown)
{
	struct lab *l = *state;
	uint64_t word = hold(l, OTHERS, (uint64_t)-50);

	hca_roce_receive(&l->roce.link, true);
	assert_int_equal(l->shm.holder, word);
	assert_int_equal(l->shm.overtakes, 0);
	assert_true(hca_roce_is_polled(&l->roce));
}

CASE_WITH(a_receiver_that_stalls_is_overtaken, setup, teardown)
{
	struct lab *l = *state;

	hold(l, OTHERS, 5000);
	hca_roce_receive(&l->roce.link, true);
	assert_int_equal(l->shm.holder, 0);
	assert_int_equal(l->shm.overtakes, 1);
}

CASE_WITH(a_dead_receiver_delays_nobody, setup, teardown)
{
	struct lab *l = *state;
	uint64_t word = hold(l, OTHERS, 0);

	hca_roce_release(&l->shm, SHM_QP_INDEX(OURS));
	assert_int_equal(l->shm.holder, word);
	assert_int_equal(l->shm.overtakes, 0);
	hca_roce_release(&l->shm, SHM_QP_INDEX(OTHERS));
	assert_int_equal(l->shm.holder, 0);
	assert_int_equal(l->shm.overtakes, 1);
}

CASE_WITH(random_values_delay_nobody_for_ever, setup, teardown)
{
	struct lab *l = *state;

	l->shm.holder = UINT64_MAX; /* in the far future */
	hca_roce_receive(&l->roce.link, true);
	assert_int_equal(l->shm.holder, 0);
	l->shm.polled_ns = UINT64_MAX;
	assert_false(hca_roce_is_polled(&l->roce));
}

CASE_WITH(a_poll_keeps_the_daemon_away, setup, teardown)
{
	struct lab *l = *state;

	assert_false(hca_roce_is_polled(&l->roce));
	hca_roce_receive(&l->roce.link, false); /* the daemon itself, or who will sleep */
	assert_false(hca_roce_is_polled(&l->roce));
	hca_roce_receive(&l->roce.link, true);
	assert_true(hca_roce_is_polled(&l->roce));
}

/* A thread, as locks are there for those. Returns NULL if something is wrong. */
static void *poll_while_another_receives(void *arg)
{
	struct lab *l = arg;
	bool polled;

	if (!base_trylock(&l->roce.receive_lock) || hca_roce_receive(&l->roce.link, true))
		return NULL;
	polled = hca_roce_is_polled(&l->roce);
	base_unlock(&l->roce.receive_lock);
	return polled ? NULL : l;
}

/* In a child that was forked while a thread received, it seems to do so for ever. */
CASE_WITH(a_poll_that_cannot_receive_promises_nothing, setup, teardown)
{
	pthread_t thread;
	void *ok;

	assert_int_equal(pthread_create(&thread, NULL, poll_while_another_receives, *state), 0);
	assert_int_equal(pthread_join(thread, &ok), 0);
	assert_ptr_equal(ok, *state);
}

CASE_WITH(a_port_is_neglected_soon_after_the_last_poll, setup, teardown)
{
	struct lab *l = *state;
	uint64_t now;

	hca_roce_receive(&l->roce.link, true);
	now = l->shm.polled_ns;
	/* without connections there is nothing that cannot wait */
	assert_int_equal(hca_roce_attention(&l->roce.link, now + HCA_ROCE_POLL_NS), HCA_ATTENDED);
	l->shm.has_wires = true;
	assert_int_equal(hca_roce_attention(&l->roce.link, now), HCA_ATTENDED);
	assert_int_equal(hca_roce_attention(&l->roce.link, now + HCA_ROCE_POLL_NS / 4),
	                 HCA_ATTENDED);
	assert_int_equal(hca_roce_attention(&l->roce.link, now + HCA_ROCE_POLL_NS), HCA_NEGLECTED);
	assert_int_equal(hca_roce_attention(&l->roce.link, now - 1), HCA_ATTENDED);
	/* a program that does not poll any more, and one that sleeps */
	assert_int_equal(hca_roce_attention(&l->roce.link, now + 100 * HCA_ROCE_POLL_NS),
	                 HCA_RESTING);
	hca_roce_rest(&l->roce.link);
	assert_int_equal(hca_roce_attention(&l->roce.link, now), HCA_RESTING);
}

CASE_WITH(a_poll_long_ago_does_not, setup, teardown)
{
	struct lab *l = *state;

	l->shm.polled_ns = base_now_ns() - 2 * HCA_ROCE_POLL_NS;
	assert_false(hca_roce_is_polled(&l->roce));
}

CASE_WITH(a_poll_a_moment_later_keeps_the_daemon_away, setup, teardown)
{
	struct lab *l = *state;

	l->shm.polled_ns = base_now_ns() + HCA_ROCE_POLL_NS / 2;
	assert_true(hca_roce_is_polled(&l->roce));
}

CASE_WITH(a_receiver_keeps_the_daemon_away, setup, teardown)
{
	struct lab *l = *state;

	hold(l, OTHERS, 0);
	assert_true(hca_roce_is_polled(&l->roce));
	hold(l, OTHERS, 5000);
	assert_false(hca_roce_is_polled(&l->roce));
}

CASE_WITH(going_to_sleep_calls_the_daemon_back, setup, teardown)
{
	struct lab *l = *state;

	hca_roce_receive(&l->roce.link, true);
	hca_roce_rest(&l->roce.link);
	assert_false(hca_roce_is_polled(&l->roce));
	assert_false(woken(l));
	l->shm.daemon_away = 1;
	hca_roce_rest(&l->roce.link);
	assert_true(woken(l));
	assert_int_equal(l->shm.daemon_away, 0);
	hca_roce_rest(&l->roce.link); /* it was called already */
	assert_false(woken(l));
}

CASE_WITH(an_old_count_of_drops_adds_nothing, setup, teardown)
{
	struct lab *l = *state;

	hca_roce_note_lost(&l->roce, 0, 7);
	hca_roce_note_lost(&l->roce, 0, 5); /* of one that was overtaken */
	assert_int_equal(l->shm.overflow, 7);
	hca_roce_note_lost(&l->roce, 0, 8);
	hca_roce_note_lost(&l->roce, 1, 2); /* the other socket's */
	assert_int_equal(l->shm.overflow, 10);
}

CASE_WITH(counts_of_drops_wrap, setup, teardown)
{
	struct lab *l = *state;

	l->shm.lost[0] = UINT32_MAX - 1;
	hca_roce_note_lost(&l->roce, 0, 3);
	assert_int_equal(l->shm.overflow, 5);
	hca_roce_note_lost(&l->roce, 0, UINT32_MAX);
	assert_int_equal(l->shm.overflow, 5);
}
