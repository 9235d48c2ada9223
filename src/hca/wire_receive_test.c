/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who receives from the wire: taking turns, and the manager's place in it. The port has no
 * sockets here, so a turn ends at once; what comes by sockets, tests/roce shows.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/util.h"
#include "hca/wire.h"

#define OURS   0x00005 /* QP numbers */
#define OTHERS 0x00006

struct lab {
	struct hca_process process;
	struct shm_control control;
	struct shm_port port[1];
	struct shm_wire shm;
	struct hca_wire wire;
};

static int setup(void **state)
{
	struct lab *l = aligned_alloc(128, base_align_up(sizeof(*l), 128));

	assert_non_null(l);
	memset((void *)l, 0, sizeof(*l));
	l->process.region.control = &l->control;
	l->process.region.ports = l->port;
	l->wire.process = &l->process;
	l->wire.shm = &l->shm;
	l->wire.qp.ex.qp_base.qp_num = OURS;
	l->wire.receive_fd[0] = l->wire.receive_fd[1] = -1;
	l->wire.wake_fd = eventfd(0, EFD_NONBLOCK);
	assert_true(l->wire.wake_fd >= 0);
	*state = l;
	return 0;
}

static int teardown(void **state)
{
	struct lab *l = *state;

	close(l->wire.wake_fd);
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

	return read(l->wire.wake_fd, &n, sizeof(n)) == sizeof(n);
}

static void a_turn_ends_with_nobody_receiving(void **state)
{
	struct lab *l = *state;

	assert_false(hca_wire_receive(&l->wire, true));
	assert_int_equal(l->shm.holder, 0);
	assert_int_equal(l->shm.overtakes, 0);
}

static void nobody_comes_between_who_is_receiving(void **state)
{
	struct lab *l = *state;
	uint64_t word = hold(l, OTHERS, 0);

	hca_wire_receive(&l->wire, true);
	assert_int_equal(l->shm.holder, word);
	assert_int_equal(l->shm.overtakes, 0);
}

static void who_has_stalled_is_overtaken(void **state)
{
	struct lab *l = *state;

	hold(l, OTHERS, 5000);
	hca_wire_receive(&l->wire, true);
	assert_int_equal(l->shm.holder, 0);
	assert_int_equal(l->shm.overtakes, 1);
}

static void the_dead_hold_nobody_up(void **state)
{
	struct lab *l = *state;
	uint64_t word = hold(l, OTHERS, 0);

	hca_wire_release(&l->shm, SHM_QP_INDEX(OURS));
	assert_int_equal(l->shm.holder, word);
	hca_wire_release(&l->shm, SHM_QP_INDEX(OTHERS));
	assert_int_equal(l->shm.holder, 0);
}

static void whatever_is_scribbled_there_holds_nobody_up_for_ever(void **state)
{
	struct lab *l = *state;

	l->shm.holder = UINT64_MAX; /* in the far future */
	hca_wire_receive(&l->wire, true);
	assert_int_equal(l->shm.holder, 0);
	l->shm.polled_ns = UINT64_MAX;
	assert_false(hca_wire_is_polled(&l->wire));
}

static void a_poll_keeps_the_manager_away(void **state)
{
	struct lab *l = *state;

	assert_false(hca_wire_is_polled(&l->wire));
	hca_wire_receive(&l->wire, false); /* the manager itself, or who will sleep */
	assert_false(hca_wire_is_polled(&l->wire));
	hca_wire_receive(&l->wire, true);
	assert_true(hca_wire_is_polled(&l->wire));
}

static void who_polled_long_ago_does_not(void **state)
{
	struct lab *l = *state;

	l->shm.polled_ns = base_now_ns() - 2 * HCA_WIRE_POLL_NS;
	assert_false(hca_wire_is_polled(&l->wire));
}

static void who_is_receiving_keeps_the_manager_away(void **state)
{
	struct lab *l = *state;

	hold(l, OTHERS, 0);
	assert_true(hca_wire_is_polled(&l->wire));
	hold(l, OTHERS, 5000);
	assert_false(hca_wire_is_polled(&l->wire));
}

static void who_goes_to_sleep_calls_the_manager_back_if_it_is_away(void **state)
{
	struct lab *l = *state;

	hca_wire_receive(&l->wire, true);
	hca_wire_rest(&l->wire);
	assert_false(hca_wire_is_polled(&l->wire));
	assert_false(woken(l));
	l->shm.manager_away = 1;
	hca_wire_rest(&l->wire);
	assert_true(woken(l));
	assert_int_equal(l->shm.manager_away, 0);
	hca_wire_rest(&l->wire); /* it is on its way */
	assert_false(woken(l));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(a_turn_ends_with_nobody_receiving),
		TEST(nobody_comes_between_who_is_receiving),
		TEST(who_has_stalled_is_overtaken),
		TEST(the_dead_hold_nobody_up),
		TEST(whatever_is_scribbled_there_holds_nobody_up_for_ever),
		TEST(a_poll_keeps_the_manager_away),
		TEST(who_polled_long_ago_does_not),
		TEST(who_is_receiving_keeps_the_manager_away),
		TEST(who_goes_to_sleep_calls_the_manager_back_if_it_is_away),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
