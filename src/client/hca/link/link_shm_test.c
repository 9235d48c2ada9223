/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One packet to one queue pair: which packets the receiving HCA accepts, and what it counts, above
 * all with several P_Keys. There is no daemon: the shared memory is this program's own.
 */
#include <harness.h>

#include "base/util.h"
#include "hca/link/link_shm.h"
#include "shm/ring.h"

#define QPN    0x30005 /* of the receiver: index 5 */
#define SENDER 0x10006
#define PORT   1
#define QKEY   0x1234
#define SHIFT  2
#define GEN    9

struct lab {
	struct hca_process process;
	struct shm_qp *qp;
	struct shm_sender *sender;
	struct shm_port_count *count;
	struct shm_ring *ring;
	uint32_t posted, consumed;
};

static int setup(void **state)
{
	struct lab *l = aligned_alloc(128, base_align_up(sizeof(*l), 128));
	struct shm_region *r;
	uint64_t ring_off;

	assert_non_null(l);
	memset((void *)l, 0, sizeof(*l));
	r = &l->process.region;
	assert_int_equal(shm_region_create(r, 1, 2), 0);
	ring_off = r->control->rings_off;
	l->ring = shm_data_map(r, ring_off, shm_ring_bytes(SHIFT));
	assert_non_null(l->ring);
	shm_ring_init(l->ring, GEN, QPN, false);
	l->qp = shm_qp_at(r, 0);
	l->sender = shm_sender_at(r, 0);
	l->count = shm_port_count_at(r, 0);
	l->qp[SHM_QP_INDEX(QPN)] = (struct shm_qp){ .qpn = QPN,
		                                    .type = IBV_QPT_UD,
		                                    .qkey = QKEY,
		                                    .pkey = 0xFFFF,
		                                    .flags = SHM_QP_LIVE | SHM_QP_RECEIVES,
		                                    .port_num = 1,
		                                    .port = PORT,
		                                    .ring_off = ring_off,
		                                    .ring_gen = GEN,
		                                    .ring_shift = SHIFT,
		                                    .ready_bit = SHM_NO_READY_BIT };
	shm_ring_post(l->ring, SHIFT, GEN, 0, 1u << SHIFT);
	l->posted = 1u << SHIFT;
	*state = l;
	return 0;
}

static int teardown(void **state)
{
	struct lab *l = *state;

	shm_region_unmap(&l->process.region);
	free(l);
	return 0;
}

static struct shm_qp *receiver(struct lab *l)
{
	return &l->qp[SHM_QP_INDEX(QPN)];
}

static struct hca_packet packet(void)
{
	return (struct hca_packet){
		.a = { .src_qpn = SENDER, .pkey = 0xFFFF, .length = 7, .data = "message" },
		.qkey = QKEY
	};
}

static void deliver(struct lab *l, struct hca_packet *pkt)
{
	pkt->sender = &l->sender[SHM_QP_INDEX(SENDER)];
	hca_deliver(&l->process, pkt, QPN, PORT);
}

/* Whether a message has arrived. Consumes it. */
static bool arrived(struct lab *l)
{
	if (shm_ring_peek(l->ring, SHIFT, l->consumed) != SHM_SLOT_DONE)
		return false;
	assert_memory_equal(shm_ring_slot(l->ring, SHIFT, l->consumed)->data, "message", 7);
	shm_ring_consume(l->ring, ++l->consumed);
	shm_ring_post(l->ring, SHIFT, GEN, l->posted++, 1);
	return true;
}

CASE_WITH(a_packet_arrives, setup, teardown)
{
	static const struct shm_port_count none;
	struct hca_packet pkt = packet();
	struct lab *l = *state;

	deliver(l, &pkt);
	assert_true(arrived(l));
	assert_false(arrived(l));
	assert_memory_equal(&l->count[PORT], &none, sizeof(none));
}

CASE_WITH(pkeys_match_by_base_if_one_is_of_a_full_member, setup, teardown)
{
	static const struct {
		uint16_t sender, receiver;
		bool match;
	} cases[] = {
		{ 0xFFFF, 0xFFFF, true },  { 0x7FFF, 0xFFFF, true },  { 0xFFFF, 0x7FFF, true },
		{ 0x7FFF, 0x7FFF, false }, { 0x8001, 0x8001, true },  { 0x0001, 0x8001, true },
		{ 0x8001, 0x0001, true },  { 0x0001, 0x0001, false }, { 0x8001, 0x8002, false },
		{ 0x8001, 0xFFFF, false }, { 0xFFFF, 0x8001, false }, { 0x0001, 0x8002, false },
	};
	struct hca_packet pkt = packet();
	struct lab *l = *state;
	uint64_t bad = 0;

	for (size_t i = 0; EACH_ROW(i, cases); i++) {
		receiver(l)->pkey = cases[i].receiver;
		pkt.a.pkey = cases[i].sender;
		deliver(l, &pkt);
		assert_int_equal(arrived(l), cases[i].match);
		bad += !cases[i].match;
		assert_int_equal(l->count[PORT].bad_pkey, bad);
	}
}

/* A packet that does not match the P_Key is no violation of the Q_Key as well. */
CASE_WITH(a_bad_pkey_is_counted_before_the_qkey_is_looked_at, setup, teardown)
{
	struct hca_packet pkt = packet();
	struct lab *l = *state;

	pkt.a.pkey = 0x8001;
	pkt.qkey = 0;
	deliver(l, &pkt);
	assert_false(arrived(l));
	assert_int_equal(l->count[PORT].bad_pkey, 1);
	assert_int_equal(l->count[PORT].bad_qkey, 0);
}

CASE_WITH(a_bad_qkey_is_dropped_and_counted, setup, teardown)
{
	struct hca_packet pkt = packet();
	struct lab *l = *state;

	pkt.qkey = QKEY + 1;
	deliver(l, &pkt);
	assert_false(arrived(l));
	assert_int_equal(l->count[PORT].bad_qkey, 1);
}

CASE_WITH(the_record_of_a_connected_queue_pair_lets_no_datagram_in, setup, teardown)
{
	struct hca_packet pkt = packet();
	struct lab *l = *state;

	receiver(l)->type = IBV_QPT_RC;
	receiver(l)->qkey = pkt.qkey = 0;
	deliver(l, &pkt);
	assert_false(arrived(l));
}

CASE_WITH(without_a_receive_it_is_dropped_and_counted, setup, teardown)
{
	struct hca_packet pkt = packet();
	struct lab *l = *state;

	for (unsigned i = 0; i < (1u << SHIFT) + 3; i++)
		deliver(l, &pkt);
	for (unsigned i = 0; i < 1u << SHIFT; i++)
		assert_true(arrived(l));
	assert_false(arrived(l));
	assert_int_equal(l->count[PORT].no_receive, 3);
}

CASE_WITH(a_qp_that_is_not_there_or_not_ready_gets_nothing, setup, teardown)
{
	struct hca_packet pkt = packet();
	struct lab *l = *state;

	receiver(l)->flags = SHM_QP_LIVE; /* not ready */
	deliver(l, &pkt);
	receiver(l)->flags = SHM_QP_LIVE | SHM_QP_RECEIVES;
	receiver(l)->qpn = QPN + 0x10000; /* the next one at this index */
	deliver(l, &pkt);
	receiver(l)->qpn = QPN;
	receiver(l)->port = 0; /* on another port */
	deliver(l, &pkt);
	assert_false(arrived(l));
	assert_int_equal(l->count[PORT].no_qp, 3);
}

CASE_WITH(bad_packets_use_no_receive, setup, teardown)
{
	struct hca_packet bad = packet(), good = packet();
	struct lab *l = *state;

	bad.a.pkey = 0x8001;
	for (int i = 0; i < 100; i++)
		deliver(l, &bad);
	for (unsigned i = 0; i < 1u << SHIFT; i++)
		deliver(l, &good);
	for (unsigned i = 0; i < 1u << SHIFT; i++)
		assert_true(arrived(l));
	assert_int_equal(l->count[PORT].no_receive, 0);
}

int main(void)
{

	return harness_run(NULL, NULL);
}
