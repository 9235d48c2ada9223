/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that are kept until their turn comes: in what order they are had, and which are of no use
 * any more. How the two halves use them, tests/roce/selective_cases.py shows.
 */
#include <harness.h>

#include "base/util.h"
#include "hca/transport/packet_connection.h"

#define PSNS (1u << WIRE_PSN_BITS)

static struct shm_wire shm[2];
static struct hca_wires wires;
static struct hca_wire w[2];

static int begin(void **state)
{
	(void)state;
	memset(shm, 0, sizeof(shm));
	memset(w, 0, sizeof(w));
	hca_wires_init(&wires, NULL, NULL, 0);
	for (unsigned i = 0; i < 2; i++) {
		w[i].shm = &shm[i];
		w[i].wires = &wires;
		for (unsigned half = 0; half < HCA_WIRE_HALVES; half++)
			TAILQ_INIT(&w[i].ahead[half]);
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++)
		hca_wire_forget_ahead(&w[i]);
	assert_int_equal(wires.n_ahead, 0);
	assert_true(TAILQ_EMPTY(&wires.ahead));
	return 0;
}

static void keep(struct hca_wire *wire, enum hca_wire_half half, uint32_t psn)
{
	const uint8_t payload[] = { (uint8_t)psn, 1 };
	struct wire_roce_packet p = { .h.bth.psn = psn % PSNS,
		                      .payload = payload,
		                      .payload_bytes = sizeof(payload) };

	hca_wire_keep_ahead(wire, half, &p);
}

/* The one whose turn it is; PSNS: none is kept. */
static uint32_t taken(struct hca_wire *wire, enum hca_wire_half half)
{
	struct hca_wire_copy *c = hca_wire_take_ahead(wire, half);
	uint32_t psn = PSNS;

	if (c) {
		psn = c->packet.h.bth.psn;
		assert_int_equal(c->payload[0], (uint8_t)psn);
		assert_int_equal(c->packet.payload_bytes, 2);
	}
	free(c);
	return psn;
}

CASE_WITH(each_has_its_turn, begin, end)
{
	const uint32_t order[] = { 9, 3, 7, 3, 5, 9, 4 };

	for (unsigned i = 0; i < ARRAY_SIZE(order); i++)
		keep(&w[0], HCA_WIRE_RESPONDER, order[i]);
	assert_int_equal(wires.n_ahead, 5);
	for (uint32_t psn = 0; psn < 10; psn++) {
		shm[0].in.expected = psn;
		assert_int_equal(taken(&w[0], HCA_WIRE_RESPONDER),
		                 psn < 3 || psn == 6 || psn == 8 ? PSNS : psn);
	}
	assert_int_equal(wires.n_ahead, 0);
}

CASE_WITH(halves_and_queue_pairs_are_apart, begin, end)
{
	keep(&w[0], HCA_WIRE_RESPONDER, 1);
	keep(&w[0], HCA_WIRE_REQUESTER, 2);
	keep(&w[1], HCA_WIRE_REQUESTER, 1);
	for (unsigned i = 0; i < 2; i++)
		shm[i].in.expected = shm[i].acked = 1;
	assert_int_equal(taken(&w[0], HCA_WIRE_REQUESTER), PSNS);
	assert_int_equal(taken(&w[1], HCA_WIRE_RESPONDER), PSNS);
	assert_int_equal(taken(&w[1], HCA_WIRE_REQUESTER), 1);
	assert_int_equal(taken(&w[0], HCA_WIRE_RESPONDER), 1);
	shm[0].acked = 2;
	assert_int_equal(taken(&w[0], HCA_WIRE_REQUESTER), 2);
}

CASE_WITH(what_was_passed_is_forgotten, begin, end)
{
	for (uint32_t psn = 1; psn < 6; psn++)
		keep(&w[0], HCA_WIRE_RESPONDER, psn);
	shm[0].in.expected = 4; /* by another process */
	assert_int_equal(hca_wire_first_ahead(&w[0], HCA_WIRE_RESPONDER)->packet.h.bth.psn, 4);
	assert_int_equal(wires.n_ahead, 2);
	w[0].open++; /* another connection, or path */
	assert_null(hca_wire_first_ahead(&w[0], HCA_WIRE_RESPONDER));
}

CASE_WITH(psns_come_around, begin, end)
{
	shm[0].in.expected = PSNS - 2;
	for (uint32_t psn = PSNS - 1; psn < PSNS + 2; psn++)
		keep(&w[0], HCA_WIRE_RESPONDER, psn);
	shm[0].in.expected = PSNS - 1;
	assert_int_equal(taken(&w[0], HCA_WIRE_RESPONDER), PSNS - 1);
	shm[0].in.expected = 0;
	shm[0].in.expected_rounds++;
	assert_int_equal(taken(&w[0], HCA_WIRE_RESPONDER), 0);
	/* 2^24 packets later, which others have received, it is another packet's turn */
	shm[0].in.expected = 1;
	shm[0].in.expected_rounds++;
	assert_int_equal(taken(&w[0], HCA_WIRE_RESPONDER), PSNS);
	assert_int_equal(wires.n_ahead, 0);
}

CASE_WITH(there_is_not_room_for_all, begin, end)
{
	keep(&w[0], HCA_WIRE_RESPONDER, 257);
	assert_int_equal(wires.n_ahead, 0);
	for (unsigned i = 0; i < 2; i++)
		for (uint32_t psn = 256; psn; psn--) {
			keep(&w[i], HCA_WIRE_RESPONDER, psn);
			keep(&w[i], HCA_WIRE_REQUESTER, psn);
		}
	assert_int_equal(wires.n_ahead, 1024);
	w[0].open++;
	keep(&w[0], HCA_WIRE_RESPONDER, 1); /* no room yet, though there is more of no use */
	assert_int_equal(wires.n_ahead, 1024);
	TAILQ_FIRST(&wires.ahead)->kept_ns = 1; /* long ago */
	keep(&w[0], HCA_WIRE_RESPONDER, 1);
	assert_int_equal(wires.n_ahead, 1024 - 256 + 1);
}
