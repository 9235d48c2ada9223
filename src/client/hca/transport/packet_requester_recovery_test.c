/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The requester's numbers as packets are acknowledged and get lost: what is sent again, how many
 * packets may be under way, and when silence counts as a loss. Nothing is sent. The whole is tested
 * by packets: tests/roce/requester_cases.py.
 */
#include <harness.h>

#include "base/util.h"
#include "hca/transport/packet_requester.h"

#define PSNS   (1u << WIRE_PSN_BITS)
#define HEAD   7 /* position of the first request under way */
#define MS     1000000ull
#define LAPSED (10000 * MS)

static struct shm_wire shm;
static struct shm_connection connection;
static struct hca_process process;
static struct hca_sender sender;
static struct hca_wire w;

/* A request of many packets is under way from PSN @acked on, of which @sent have left. */
static void send_from(uint32_t acked, uint32_t sent)
{
	shm.acked = acked;
	shm.psn = shm.beyond = wire_psn_add(acked, sent);
	shm.offset = sent;
	shm.next = HEAD;
	shm_wire_head(&shm, HEAD)->psn = acked;
}

static int begin(void **state)
{
	(void)state;
	if (!process.region.control)
		assert_int_equal(shm_region_create(&process.region, 1, 1), 0);
	process.region.control->settings.roce_adp_retrans = true;
	process.region.control->settings.roce_selective_repeat = true;
	atomic_store(&process.region.data->ticking, true); /* nobody is to be called */
	memset(&shm, 0, sizeof(shm));
	memset(&w, 0, sizeof(w));
	atomic_store(&connection.head, HEAD);
	w.shm = &shm;
	w.connection = &connection;
	w.sender = &sender;
	w.end.process = &process;
	w.end.qp.type = IBV_QPT_RC;
	w.path.timeout = 14; /* 67 ms */
	w.path.retry_cnt = 3;
	w.path.mtu_shift = 10;
	shm.window = 64;
	return 0;
}

/* ---- acknowledgements ---- */

static void what_is_acknowledged_is_not_sent_again(void **state)
{
	(void)state;
	send_from(100, 20);
	hca_wire_move_acked(&w, 110);
	assert_int_equal(shm.acked, 110);
	assert_int_equal(hca_wire_under_way(&w), 10);
	hca_wire_move_acked(&w, 105); /* one that came late */
	assert_int_equal(shm.acked, 110);
	hca_wire_go_back(&w);
	assert_int_equal(shm.psn, 110);
	assert_int_equal(shm.offset, 10); /* of the request's packets */
	assert_int_equal(shm.next, HEAD);
}

static void psns_come_around(void **state)
{
	(void)state;
	send_from(PSNS - 2, 10);
	assert_int_equal(shm.psn, 8);
	assert_int_equal(hca_wire_under_way(&w), 10);
	hca_wire_move_acked(&w, 3);
	assert_int_equal(shm.acked, 3);
	assert_int_equal(shm.acked_rounds, 1);
	hca_wire_go_back(&w);
	assert_int_equal(shm.psn, 3);
	assert_int_equal(shm.offset, 5);
}

/* The peer had kept them, or the acknowledgement was only late. */
static void what_was_to_be_sent_again_is_acknowledged_after_all(void **state)
{
	(void)state;
	send_from(100, 20);
	hca_wire_go_back(&w);
	assert_int_equal(shm.psn, 100);
	hca_wire_move_acked(&w, 115);
	assert_int_equal(shm.psn, 115);
	assert_int_equal(shm.offset, 15);
}

/* ---- how many packets may be under way ---- */

static void the_window_grows_by_what_it_lets_go(void **state)
{
	(void)state;
	send_from(0, 64);
	hca_wire_move_acked(&w, 63);
	assert_int_equal(shm.window, 64);
	hca_wire_move_acked(&w, 64);
	assert_int_equal(shm.window, 80);
	shm.window = HCA_WIRE_WINDOW_MOST;
	send_from(1000, HCA_WIRE_WINDOW_MOST);
	hca_wire_move_acked(&w, 1000 + HCA_WIRE_WINDOW_MOST);
	assert_int_equal(shm.window, HCA_WIRE_WINDOW_MOST);
}

static void losses_halve_the_window_down_to_a_least(void **state)
{
	static const uint32_t then[] = { 32, 16, 8, 8 };

	(void)state;
	for (size_t i = 0; EACH_ROW(i, then); i++) {
		hca_wire_shrink(&w);
		assert_int_equal(shm.window, then[i]);
	}
}

/* Any program of the fabric can write there. */
static void a_window_that_is_nonsense_is_bounded(void **state)
{
	(void)state;
	shm.window = UINT32_MAX;
	assert_int_equal(hca_wire_window(&w), HCA_WIRE_WINDOW_MOST);
}

/* ---- losses ---- */

static void one_loss_that_is_told_twice_uses_up_one_retry(void **state)
{
	(void)state;
	send_from(100, 20);
	hca_wire_take_loss(&w, "a test");
	assert_int_equal(shm.retries, 1);
	assert_int_equal(shm.psn, 100);
	hca_wire_take_loss(&w, "a test");
	hca_wire_miss_response(&w);
	assert_int_equal(shm.retries, 1);
	/* until something is acknowledged */
	send_from(100, 20);
	hca_wire_move_acked(&w, 101);
	assert_int_equal(shm.retries, 0);
	hca_wire_take_loss(&w, "a test");
	assert_int_equal(shm.retries, 1);
}

static void a_loss_of_before_a_wait_uses_up_no_retry(void **state)
{
	(void)state;
	send_from(100, 20);
	shm.recovers = SHM_WIRE_HAS_WAITED;
	hca_wire_take_loss(&w, "a test");
	assert_int_equal(shm.retries, 0);
	assert_int_equal(shm.psn, 100);
}

/* A probe is sent at first; the peer acknowledges what it has kept behind it. */
static void one_lost_packet_hardly_shrinks_the_window(void **state)
{
	(void)state;
	send_from(100, 20);
	shm.in_vain = 1;
	hca_wire_take_loss(&w, "a test");
	assert_true(shm.probes);
	assert_int_equal(shm.window, 64);
	hca_wire_move_acked(&w, 120);
	hca_wire_end_probe(&w, 100);
	assert_false(shm.probes);
	assert_int_equal(shm.in_vain, 0);
	assert_int_equal(shm.window, 56);
}

static void a_peer_that_keeps_nothing_is_hardly_asked_again(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		send_from(100, 20);
		shm.recovers = SHM_WIRE_GOES_ON;
		shm.window = 64;
		hca_wire_take_loss(&w, "a test");
		assert_true(shm.probes);
		hca_wire_move_acked(&w, 101);
		hca_wire_end_probe(&w, 100);
		assert_int_equal(shm.in_vain, i + 1);
		assert_int_equal(shm.window, 32);
	}
	send_from(100, 20);
	hca_wire_take_loss(&w, "a test");
	assert_false(shm.probes);
	assert_int_equal(shm.window, 16);
}

static void without_selective_repeat_nothing_is_probed(void **state)
{
	(void)state;
	process.region.control->settings.roce_selective_repeat = false;
	send_from(100, 20);
	hca_wire_take_loss(&w, "a test");
	assert_false(shm.probes);
	assert_int_equal(shm.window, 32);
}

/* ---- time ---- */

static uint64_t deadline(void)
{
	return atomic_load(&shm.deadline_ns);
}

static void without_packets_under_way_or_a_timeout_there_is_no_deadline(void **state)
{
	(void)state;
	send_from(100, 0);
	hca_wire_set_deadline(&w);
	assert_int_equal(deadline(), 0);
	send_from(100, 1);
	hca_wire_set_deadline(&w);
	assert_true(deadline() > base_now_ns());
	w.path.timeout = 0; /* it waits for ever */
	hca_wire_set_deadline(&w);
	assert_int_equal(deadline(), 0);
}

/* Much longer than usual: packets go again, and the next wait is twice as long. */
static void silence_is_a_loss_before_the_timeout_is_over(void **state)
{
	uint64_t wait, next;

	(void)state;
	send_from(100, 20);
	shm.round_ns = MS;
	hca_wire_set_deadline(&w);
	wait = deadline() - shm.waits_since_ns;
	assert_true(wait < 4096ull << 14);
	hca_wire_look_at_time(&w, deadline() - 1);
	assert_int_equal(shm.psn, 120);
	hca_wire_look_at_time(&w, deadline());
	assert_int_equal(shm.psn, 100);
	assert_int_equal(shm.retries, 0);
	next = deadline() - shm.waits_since_ns;
	hca_wire_look_at_time(&w, deadline());
	assert_int_equal(deadline() - shm.waits_since_ns, 2 * next);
	assert_int_equal(shm.retries, 0);
}

static void a_timeout_uses_up_a_retry(void **state)
{
	(void)state;
	process.region.control->settings.roce_adp_retrans = false;
	send_from(100, 20);
	hca_wire_set_deadline(&w);
	assert_int_equal(deadline() - shm.waits_since_ns, 4096ull << 14);
	hca_wire_look_at_time(&w, deadline());
	assert_int_equal(shm.retries, 1);
	assert_int_equal(shm.psn, 100);
	assert_int_equal(deadline(), 0); /* the next packet sets it */
}

static void packets_that_wait_in_queues_have_four_timeouts_at_most(void **state)
{
	(void)state;
	process.region.control->settings.roce_adp_retrans = false;
	send_from(100, 20);
	shm.round_ns = LAPSED;
	hca_wire_set_deadline(&w);
	hca_wire_look_at_time(&w, shm.waits_since_ns + 4 * (4096ull << 14) - 1);
	assert_int_equal(shm.retries, 0);
	hca_wire_look_at_time(&w, shm.waits_since_ns + 4 * (4096ull << 14));
	assert_int_equal(shm.retries, 1);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_acknowledged_is_not_sent_again),
		TEST(psns_come_around),
		TEST(what_was_to_be_sent_again_is_acknowledged_after_all),
		TEST(the_window_grows_by_what_it_lets_go),
		TEST(losses_halve_the_window_down_to_a_least),
		TEST(a_window_that_is_nonsense_is_bounded),
		TEST(one_loss_that_is_told_twice_uses_up_one_retry),
		TEST(a_loss_of_before_a_wait_uses_up_no_retry),
		TEST(one_lost_packet_hardly_shrinks_the_window),
		TEST(a_peer_that_keeps_nothing_is_hardly_asked_again),
		TEST(without_selective_repeat_nothing_is_probed),
		TEST(without_packets_under_way_or_a_timeout_there_is_no_deadline),
		TEST(silence_is_a_loss_before_the_timeout_is_over),
		TEST(a_timeout_uses_up_a_retry),
		TEST(packets_that_wait_in_queues_have_four_timeouts_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
