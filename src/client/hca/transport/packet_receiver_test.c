/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which packets a receiver works on as if they were one, and what such a run is.
 */
#include <harness.h>

#include "base/util.h"
#include "hca/link/packet_receiver.h"
#include "hca/transport/packet_connection.h"

#define RC(operation) WIRE_OPCODE(WIRE_TRANSPORT_RC, operation)
#define UC(operation) WIRE_OPCODE(WIRE_TRANSPORT_UC, operation)
#define QPN           0x123

static struct wire_roce_packet packet(uint8_t opcode, uint32_t psn)
{
	return (struct wire_roce_packet){
		.ip = { .sgid.raw = { 1 }, .dgid.raw = { 2 } },
		.h.bth = { .opcode = opcode, .psn = psn, .dest_qpn = QPN, .pkey = 0xFFFF },
	};
}

CASE(packets_of_one_message_continue_each_other)
{
	static const struct {
		uint8_t before, opcode;
		bool goes_on;
	} row[] = {
		{ RC(WIRE_SEND_FIRST), RC(WIRE_SEND_MIDDLE), true },
		{ RC(WIRE_SEND_FIRST), RC(WIRE_SEND_LAST), true },
		{ RC(WIRE_SEND_MIDDLE), RC(WIRE_SEND_MIDDLE), true },
		{ RC(WIRE_WRITE_MIDDLE), RC(WIRE_WRITE_LAST), true },
		{ UC(WIRE_WRITE_FIRST), UC(WIRE_WRITE_LAST), true },
		{ RC(WIRE_READ_RESPONSE_FIRST), RC(WIRE_READ_RESPONSE_MIDDLE), true },
		/* the last one has a header that says something new */
		{ RC(WIRE_SEND_MIDDLE), RC(WIRE_SEND_LAST_IMM), false },
		{ RC(WIRE_SEND_MIDDLE), RC(WIRE_SEND_LAST_INVALIDATE), false },
		{ RC(WIRE_WRITE_MIDDLE), RC(WIRE_WRITE_LAST_IMM), false },
		/* the next message */
		{ RC(WIRE_SEND_LAST), RC(WIRE_SEND_FIRST), false },
		{ RC(WIRE_SEND_ONLY), RC(WIRE_SEND_ONLY), false },
		/* what no peer sends */
		{ RC(WIRE_SEND_FIRST), RC(WIRE_WRITE_MIDDLE), false },
		{ RC(WIRE_SEND_MIDDLE), RC(WIRE_SEND_FIRST), false },
		{ RC(WIRE_SEND_FIRST), UC(WIRE_SEND_MIDDLE), false },
		{ RC(WIRE_SEND_FIRST), RC(WIRE_SEND_ONLY), false },
	};

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		const struct wire_roce_packet before = packet(row[i].before, 7),
		                              now = packet(row[i].opcode, 8);

		assert_int_equal(hca_wires_continue(&before, &now), row[i].goes_on);
	}
}

CASE(what_differs_beside_the_opcode_begins_anew)
{
	const struct wire_roce_packet before = packet(RC(WIRE_SEND_FIRST), WIRE_PSN_MASK),
	                              next = packet(RC(WIRE_SEND_MIDDLE), 0);
	struct wire_roce_packet other[6];

	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		other[i] = next;
	other[0].h.bth.psn = 1;
	other[1].h.bth.dest_qpn++;
	other[2].h.bth.pkey = 0x7FFF;
	other[3].ip.traffic_class = HCA_WIRE_ECN_MARKED;
	other[4].ip.sgid.raw[15] = 1;
	other[5].ip.dgid.raw[15] = 1;
	assert_true(hca_wires_continue(&before, &next)); /* PSNs come around */
	for (size_t i = 0; EACH_ROW(i, other); i++)
		assert_false(hca_wires_continue(&before, &other[i]));
}

CASE(a_run_is_as_long_as_its_payloads)
{
	struct wire_roce_packet p[] = { packet(RC(WIRE_SEND_FIRST), 1),
		                        packet(RC(WIRE_SEND_MIDDLE), 2),
		                        packet(RC(WIRE_SEND_LAST), 3) };
	struct hca_wire_run run;
	struct hca_span span;
	struct iovec iov[3];
	char room[300];

	for (unsigned i = 0; i < 3; i++)
		p[i].payload = room + 100 * i;
	p[0].payload_bytes = p[1].payload_bytes = 100;
	run = hca_wire_run_of(p, 2);
	assert_int_equal(run.bytes, 200);
	assert_true(run.flags & WIRE_OPCODE_FIRST);
	assert_false(run.flags & WIRE_OPCODE_LAST);
	assert_false(run.wants_ack);
	p[2].h.bth.ack_requested = true; /* and without payload */
	run = hca_wire_run_of(p, 3);
	assert_int_equal(run.bytes, 200);
	assert_true(run.flags & WIRE_OPCODE_LAST);
	assert_true(run.wants_ack);
	span = hca_wire_payloads(&run, iov);
	assert_int_equal(span.n, 2);
	assert_ptr_equal(iov[1].iov_base, room + 100);
}

/* ---- messages are cut at the path MTU ---- */

CASE(a_message_has_as_many_packets_as_it_takes)
{
	static const struct {
		uint32_t bytes, packets, last;
	} row[] = { { 0, 1, 0 },
		    { 1, 1, 1 },
		    { 1024, 1, 1024 },
		    { 1025, 2, 1 },
		    { 1u << 31, 1u << 21, 1024 } };
	const struct hca_wire w = { .path.mtu_shift = 10 };

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		const uint32_t n = row[i].packets;

		assert_int_equal(hca_wire_packets(&w, row[i].bytes), n);
		assert_int_equal(hca_wire_packet_bytes(&w, row[i].bytes, n - 1), row[i].last);
		if (n > 1)
			assert_int_equal(hca_wire_packet_bytes(&w, row[i].bytes, 0), 1024);
	}
}

/* ---- acknowledgements wait for replies that are likely ---- */

CASE(a_program_that_has_answered_often_will_do_so_again)
{
	static struct shm_wire shm;
	struct hca_wire w = { .shm = &shm };
	unsigned n;

	for (n = 0; n < 100 && !hca_wire_reply_is_likely(&w); n++)
		hca_wire_replied(&w);
	assert_true(n > 1 && n < 10);
	/* what it sends of itself is no reply */
	hca_wire_replied(&w);
	assert_true(hca_wire_reply_is_likely(&w));
	/* once it has not answered */
	assert_false(hca_wire_reply_is_likely(&w));
	hca_wire_replied(&w);
	assert_false(hca_wire_reply_is_likely(&w));
}
