/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RMPP: the headers of segments, a transfer over a link that loses MADs, and MADs that break the
 * rules. Time is a number here.
 */
#include <harness.h>

#include "base/util.h"
#include "wire/rmpp.h"

#define MESSAGE 1000 /* bytes: five segments of 200 */

static const struct wire_rmpp_limits limits = {
	.timeout_ns = 100, .max_bytes = 4096, .window = 2, .max_retries = 3
};

struct lab {
	uint8_t header[MAD_BYTES];
	uint8_t payload[4096];
	struct wire_rmpp_message message;
	struct wire_rmpp_sender sender;
	struct wire_rmpp_receiver receiver;
	uint8_t mad[MAD_BYTES], reply[MAD_BYTES];
};

/* A response of the SA with @bytes bytes, and a sender and a receiver at time 0. */
static void set_up(struct lab *lab, size_t bytes)
{
	struct wire_sa_mad mad = { .mad = { .base_version = MAD_BASE_VERSION,
		                            .mgmt_class = MAD_CLASS_SUBN_ADM,
		                            .class_version = MAD_VERSION_SUBN_ADM,
		                            .method = MAD_GET_TABLE_RESP,
		                            .transaction_id = 0x1234,
		                            .attribute_id = SA_ATTR_PATH },
		                   .rmpp = { .resp_time = 14 },
		                   .attribute_offset = 8 };

	memset(lab, 0, sizeof(*lab));
	wire_sa_mad_encode(&mad, lab->header);
	for (size_t i = 0; i < sizeof(lab->payload); i++)
		lab->payload[i] = rand();
	assert_int_equal(wire_rmpp_message_init(&lab->message, lab->header, lab->payload, bytes),
	                 0);
	wire_rmpp_send_init(&lab->sender, &lab->message, &limits, 0);
	wire_rmpp_receive_init(&lab->receiver, &limits, 0);
}

static struct wire_rmpp rmpp_of(const uint8_t *mad)
{
	struct wire_rmpp h;

	wire_rmpp_decode(mad + RMPP_AT, &h);
	return h;
}

/* Segment @i arrives. */
static struct wire_rmpp_result receive(struct lab *lab, uint32_t i)
{
	wire_rmpp_segment(&lab->message, i, lab->mad);
	return wire_rmpp_receive_input(&lab->receiver, lab->mad, lab->reply);
}

/* A MAD from the receiver to the sender. */
static struct wire_rmpp_result respond(struct lab *lab, struct wire_rmpp h, uint64_t now)
{
	h.version = h.version ? h.version : RMPP_VERSION;
	h.flags = RMPP_ACTIVE;
	memcpy(lab->mad, lab->header, SA_DATA_AT);
	lab->mad[3] ^= MAD_METHOD_RESPONSE;
	wire_rmpp_encode(&h, lab->mad + RMPP_AT);
	return wire_rmpp_send_input(&lab->sender, lab->mad, now, lab->reply);
}

static struct wire_rmpp_result ack(struct lab *lab, uint32_t segment, uint32_t window, uint64_t now)
{
	return respond(
	        lab,
	        (struct wire_rmpp){ RMPP_VERSION, RMPP_ACK, .data1 = segment, .data2 = window },
	        now);
}

static unsigned send_all(struct lab *lab, uint64_t now)
{
	unsigned n = 0;

	while (wire_rmpp_send_next(&lab->sender, now, lab->mad))
		n++;
	return n;
}

static void assert_abort(const uint8_t *mad, enum rmpp_status status, uint8_t method)
{
	struct wire_rmpp h = rmpp_of(mad);

	assert_int_equal(h.type, RMPP_ABORT);
	assert_int_equal(h.status, status);
	assert_int_equal(h.version, RMPP_VERSION);
	assert_int_equal(h.flags, RMPP_ACTIVE);
	assert_int_equal(mad[3], method);
}

/* Segments. */

CASE(segments_have_first_last_and_the_lengths_of_the_specification)
{
	static const struct {
		uint32_t length;
		uint8_t flags;
	} row[] = { { 450 + 3 * 20, RMPP_ACTIVE | RMPP_FIRST },
		    { 0, RMPP_ACTIVE },
		    { 50 + 20, RMPP_ACTIVE | RMPP_LAST } };
	struct lab lab;

	set_up(&lab, 450);
	assert_int_equal(lab.message.segments, ARRAY_SIZE(row));
	for (uint32_t i = 1; i <= ARRAY_SIZE(row); i++) {
		struct wire_rmpp h;

		wire_rmpp_segment(&lab.message, i, lab.mad);
		h = rmpp_of(lab.mad);
		assert_int_equal(h.version, RMPP_VERSION);
		assert_int_equal(h.type, RMPP_DATA);
		assert_int_equal(h.status, 0);
		assert_int_equal(h.resp_time, 14);
		assert_int_equal(h.flags, row[i - 1].flags);
		assert_int_equal(h.data1, i);
		assert_int_equal(h.data2, row[i - 1].length);
	}
}

CASE(each_segment_repeats_the_headers_and_carries_its_part)
{
	static const uint8_t zero[200];
	struct lab lab;

	set_up(&lab, 450);
	for (uint32_t i = 1; i <= 3; i++) {
		size_t n = i < 3 ? 200 : 50;

		memset(lab.mad, 0xEE, sizeof(lab.mad));
		wire_rmpp_segment(&lab.message, i, lab.mad);
		assert_memory_equal(lab.mad, lab.header, RMPP_AT);
		assert_memory_equal(lab.mad + 36, lab.header + 36, SA_DATA_AT - 36);
		assert_memory_equal(lab.mad + SA_DATA_AT, lab.payload + (i - 1) * 200, n);
		assert_memory_equal(lab.mad + SA_DATA_AT + n, zero, 200 - n);
	}
}

CASE(a_message_of_one_segment_is_first_and_last)
{
	static const struct {
		size_t bytes;
		uint32_t length;
	} row[] = { { 0, 20 }, { 1, 21 }, { 200, 220 } };
	struct lab lab;

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		set_up(&lab, row[i].bytes);
		assert_int_equal(lab.message.segments, 1);
		wire_rmpp_segment(&lab.message, 1, lab.mad);
		assert_int_equal(rmpp_of(lab.mad).flags, RMPP_ACTIVE | RMPP_FIRST | RMPP_LAST);
		assert_int_equal(rmpp_of(lab.mad).data2, row[i].length);
	}
}

CASE(where_data_begins_depends_on_the_class)
{
	assert_int_equal(wire_rmpp_data_at(MAD_CLASS_SUBN_ADM), 56);
	assert_int_equal(wire_rmpp_data_at(MAD_CLASS_DEV_MGT), 64);
	assert_int_equal(wire_rmpp_data_at(MAD_CLASS_VENDOR2_FIRST), 40);
	assert_int_equal(wire_rmpp_data_at(MAD_CLASS_VENDOR2_LAST), 40);
	assert_int_equal(wire_rmpp_data_at(MAD_CLASS_VENDOR2_LAST + 1), 0);
	assert_int_equal(wire_rmpp_data_at(MAD_CLASS_SUBN_DIRECTED), 0);
	assert_int_equal(wire_rmpp_data_at(MAD_CLASS_PERF), 0);
}

CASE(what_cannot_be_sent_is_refused)
{
	struct lab lab;

	set_up(&lab, 0);
	assert_int_equal(wire_rmpp_message_init(&lab.message, lab.header, NULL, UINT32_MAX),
	                 -EMSGSIZE);
	assert_int_equal(wire_rmpp_message_init(&lab.message, lab.header, NULL, SIZE_MAX),
	                 -EMSGSIZE);
	lab.header[1] = MAD_CLASS_PERF;
	assert_int_equal(wire_rmpp_message_init(&lab.message, lab.header, NULL, 0), -EINVAL);
}

/* The sender. */

CASE(the_sender_keeps_to_the_window)
{
	struct lab lab;

	set_up(&lab, MESSAGE);
	assert_int_equal(send_all(&lab, 0), 1);
	assert_int_equal(ack(&lab, 1, 3, 1).event, RMPP_CONTINUE);
	assert_int_equal(send_all(&lab, 1), 2);
	assert_int_equal(ack(&lab, 3, 100, 2).event, RMPP_CONTINUE);
	assert_int_equal(send_all(&lab, 2), 2);
	assert_int_equal(ack(&lab, 5, 100, 3).event, RMPP_DONE);
	assert_int_equal(lab.sender.state, RMPP_DONE);
	assert_int_equal(send_all(&lab, 3), 0);
}

CASE(an_ack_that_is_late_changes_nothing)
{
	struct lab lab;

	set_up(&lab, MESSAGE);
	send_all(&lab, 0);
	ack(&lab, 1, 3, 0);
	send_all(&lab, 0);
	ack(&lab, 3, 5, 0);
	assert_int_equal(ack(&lab, 1, 3, 0).event, RMPP_CONTINUE);
	assert_int_equal(lab.sender.acked, 3);
	assert_int_equal(lab.sender.window, 5);
}

CASE(without_an_ack_the_sender_steps_back)
{
	struct lab lab;

	set_up(&lab, MESSAGE);
	send_all(&lab, 0);
	ack(&lab, 1, 4, 10);
	assert_int_equal(send_all(&lab, 20), 3);
	assert_int_equal(wire_rmpp_send_expire(&lab.sender, 119, lab.reply).event, RMPP_CONTINUE);
	assert_int_equal(send_all(&lab, 119), 0);
	assert_int_equal(wire_rmpp_send_expire(&lab.sender, 120, lab.reply).event, RMPP_CONTINUE);
	assert_true(wire_rmpp_send_next(&lab.sender, 120, lab.mad));
	assert_int_equal(rmpp_of(lab.mad).data1, 2);
}

CASE(an_ack_after_a_step_back_counts)
{
	struct lab lab;

	set_up(&lab, MESSAGE);
	send_all(&lab, 0);
	ack(&lab, 1, 4, 0);
	send_all(&lab, 0);
	wire_rmpp_send_expire(&lab.sender, 100, lab.reply);
	assert_int_equal(ack(&lab, 4, 6, 101).event, RMPP_CONTINUE);
	assert_true(wire_rmpp_send_next(&lab.sender, 101, lab.mad));
	assert_int_equal(rmpp_of(lab.mad).data1, 5);
}

CASE(the_sender_gives_up_after_its_retries)
{
	struct wire_rmpp_result result;
	struct lab lab;
	uint64_t now = 0;

	set_up(&lab, MESSAGE);
	for (unsigned i = 0; i < limits.max_retries; i++) {
		assert_int_equal(send_all(&lab, now), 1);
		now = lab.sender.deadline;
		result = wire_rmpp_send_expire(&lab.sender, now, lab.reply);
		assert_int_equal(result.event, RMPP_CONTINUE);
		assert_false(result.reply);
	}
	send_all(&lab, now);
	result = wire_rmpp_send_expire(&lab.sender, lab.sender.deadline, lab.reply);
	assert_int_equal(result.event, RMPP_FAILED);
	assert_true(result.reply);
	assert_abort(lab.reply, RMPP_STATUS_TOO_MANY_RETRIES, MAD_GET_TABLE_RESP);
	assert_int_equal(lab.sender.status, RMPP_STATUS_TOO_MANY_RETRIES);
}

CASE(an_ack_that_breaks_the_rules_ends_it)
{
	static const struct {
		struct wire_rmpp h;
		enum rmpp_status status;
	} row[] = {
		{ { .type = RMPP_ACK, .status = 1, .data1 = 1, .data2 = 2 },
		  RMPP_STATUS_BAD_STATUS },
		{ { .type = RMPP_ACK, .data1 = 1, .data2 = 0 }, RMPP_STATUS_WINDOW_TOO_SMALL },
		{ { .type = RMPP_ACK, .data1 = 2, .data2 = 5 }, RMPP_STATUS_SEGMENT_TOO_BIG },
		{ { .type = RMPP_ACK, .data1 = UINT32_MAX, .data2 = UINT32_MAX },
		  RMPP_STATUS_SEGMENT_TOO_BIG },
		{ { .type = 0 }, RMPP_STATUS_BAD_TYPE },
		{ { .type = 5 }, RMPP_STATUS_BAD_TYPE },
		{ { .version = 2, .type = RMPP_ACK }, RMPP_STATUS_BAD_VERSION },
	};
	struct lab lab;

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		struct wire_rmpp_result result;

		set_up(&lab, MESSAGE);
		send_all(&lab, 0);
		result = respond(&lab, row[i].h, 0);
		assert_int_equal(result.event, RMPP_FAILED);
		assert_true(result.reply);
		assert_int_equal(lab.sender.status, row[i].status);
		assert_abort(lab.reply, row[i].status, MAD_GET_TABLE_RESP);
		assert_int_equal(send_all(&lab, 0), 0);
	}
}

CASE(a_stop_or_abort_ends_a_transfer_without_a_response)
{
	static const struct {
		uint8_t type, status, known;
	} row[] = {
		{ RMPP_STOP, RMPP_STATUS_RESOURCES_EXHAUSTED, RMPP_STATUS_RESOURCES_EXHAUSTED },
		{ RMPP_STOP, 7, RMPP_STATUS_BAD_STATUS },
		{ RMPP_ABORT, RMPP_STATUS_BAD_LENGTH, RMPP_STATUS_BAD_LENGTH },
		{ RMPP_ABORT, 0, RMPP_STATUS_BAD_STATUS },
		{ RMPP_ABORT, 128, RMPP_STATUS_BAD_STATUS },
	};
	struct lab lab;

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		struct wire_rmpp h = { .type = row[i].type, .status = row[i].status };
		struct wire_rmpp_result result;

		set_up(&lab, MESSAGE);
		send_all(&lab, 0);
		result = respond(&lab, h, 0);
		assert_int_equal(result.event, RMPP_FAILED);
		assert_false(result.reply);
		assert_int_equal(lab.sender.status, row[i].known);
	}
}

CASE(a_double_sided_request_grants_the_first_segment_of_its_response)
{
	struct wire_rmpp_result result;
	struct lab lab;

	set_up(&lab, 0);
	lab.sender.two_sided = true;
	send_all(&lab, 0);
	for (unsigned i = 0; i < 2; i++) { /* and again, if it was lost */
		result = ack(&lab, 1, 3, 0);
		assert_int_equal(result.event, i ? RMPP_CONTINUE : RMPP_DONE);
		assert_true(result.reply);
		assert_int_equal(rmpp_of(lab.reply).type, RMPP_ACK);
		assert_int_equal(rmpp_of(lab.reply).data1, 0);
		assert_int_equal(rmpp_of(lab.reply).data2, 1);
		assert_int_equal(lab.reply[3], MAD_GET_TABLE_RESP);
	}
}

/* The receiver. */

CASE(the_receiver_acknowledges_the_first_each_window_and_the_last)
{
	static const struct {
		bool ack;
		uint32_t window;
	} row[] = { { true, 3 }, { false, 0 }, { true, 5 }, { false, 0 }, { true, 7 } };
	struct lab lab;

	set_up(&lab, MESSAGE);
	for (uint32_t i = 1; i <= ARRAY_SIZE(row); i++) {
		struct wire_rmpp_result result = receive(&lab, i);

		assert_int_equal(result.event, i < 5 ? RMPP_CONTINUE : RMPP_DONE);
		assert_ptr_equal(result.data, lab.mad + SA_DATA_AT);
		assert_int_equal(result.bytes, 200);
		assert_int_equal(result.reply, row[i - 1].ack);
		if (!row[i - 1].ack)
			continue;
		assert_int_equal(rmpp_of(lab.reply).type, RMPP_ACK);
		assert_int_equal(rmpp_of(lab.reply).data1, i);
		assert_int_equal(rmpp_of(lab.reply).data2, row[i - 1].window);
		assert_int_equal(lab.reply[3], MAD_GET_TABLE_RESP ^ MAD_METHOD_RESPONSE);
	}
	assert_int_equal(lab.receiver.bytes, MESSAGE);
	assert_memory_equal(lab.receiver.header, lab.header, RMPP_AT);
}

CASE(the_last_segment_is_as_long_as_it_says)
{
	struct lab lab;

	set_up(&lab, 201);
	receive(&lab, 1);
	assert_int_equal(receive(&lab, 2).bytes, 1);
	set_up(&lab, 0);
	assert_int_equal(receive(&lab, 1).event, RMPP_DONE);
	assert_int_equal(lab.receiver.bytes, 0);
}

CASE(a_segment_before_its_turn_is_dropped)
{
	struct wire_rmpp_result result;
	struct lab lab;

	set_up(&lab, MESSAGE);
	result = receive(&lab, 2);
	assert_int_equal(result.event, RMPP_CONTINUE);
	assert_false(result.reply);
	assert_null(result.data);
	assert_int_equal(lab.receiver.bytes, 0);
}

CASE(a_segment_that_comes_again_is_acknowledged_again)
{
	struct wire_rmpp_result result;
	struct lab lab;

	set_up(&lab, 400);
	receive(&lab, 1);
	result = receive(&lab, 1);
	assert_true(result.reply);
	assert_null(result.data);
	assert_int_equal(rmpp_of(lab.reply).data1, 1);
	assert_int_equal(receive(&lab, 2).event, RMPP_DONE);
	result = receive(&lab, 2); /* our last ACK was lost */
	assert_int_equal(result.event, RMPP_CONTINUE);
	assert_true(result.reply);
	assert_null(result.data);
	assert_int_equal(rmpp_of(lab.reply).data1, 2);
}

CASE(data_that_breaks_the_rules_ends_it)
{
	static const struct {
		struct wire_rmpp h;
		enum rmpp_status status;
	} row[] = {
		{ { 2, RMPP_DATA, 0, RMPP_FIRST, 0, 1, 0 }, RMPP_STATUS_BAD_VERSION },
		{ { 1, 0, 0, RMPP_FIRST, 0, 1, 0 }, RMPP_STATUS_BAD_TYPE },
		{ { 1, 9, 0, RMPP_FIRST, 0, 1, 0 }, RMPP_STATUS_BAD_TYPE },
		{ { 1, RMPP_DATA, 0, RMPP_FIRST, 1, 1, 0 }, RMPP_STATUS_BAD_STATUS },
		{ { 1, RMPP_DATA, 0, RMPP_FIRST, 0, 2, 0 }, RMPP_STATUS_BAD_SEGMENT },
		{ { 1, RMPP_DATA, 0, RMPP_FIRST, 0, 0, 0 }, RMPP_STATUS_BAD_SEGMENT },
		{ { 1, RMPP_DATA, 0, 0, 0, 1, 0 }, RMPP_STATUS_BAD_SEGMENT },
		{ { 1, RMPP_DATA, 0, 0, 0, 0, 0 }, RMPP_STATUS_BAD_SEGMENT },
		/* a first segment that should also be the last */
		{ { 1, RMPP_DATA, 0, RMPP_FIRST, 0, 1, 220 }, RMPP_STATUS_BAD_LENGTH },
		/* shorter than the class's header, longer than a MAD */
		{ { 1, RMPP_DATA, 0, RMPP_FIRST | RMPP_LAST, 0, 1, 19 }, RMPP_STATUS_BAD_LENGTH },
		{ { 1, RMPP_DATA, 0, RMPP_FIRST | RMPP_LAST, 0, 1, 221 }, RMPP_STATUS_BAD_LENGTH },
		{ { 1, RMPP_DATA, 0, RMPP_FIRST | RMPP_LAST, 0, 1, UINT32_MAX },
		  RMPP_STATUS_BAD_LENGTH },
	};
	struct lab lab;

	for (size_t i = 0; EACH_ROW(i, row); i++) {
		struct wire_rmpp h = row[i].h;
		struct wire_rmpp_result result;

		set_up(&lab, 0);
		h.flags |= RMPP_ACTIVE;
		memcpy(lab.mad, lab.header, MAD_BYTES);
		wire_rmpp_encode(&h, lab.mad + RMPP_AT);
		result = wire_rmpp_receive_input(&lab.receiver, lab.mad, lab.reply);
		assert_int_equal(result.event, RMPP_FAILED);
		assert_true(result.reply);
		assert_null(result.data);
		assert_int_equal(lab.receiver.status, row[i].status);
		assert_abort(lab.reply, row[i].status, MAD_GET_TABLE);
	}
}

/* Segment 2 of a message whose first segment claimed @claimed bytes; its flags and length. */
static enum rmpp_status second(uint32_t claimed, uint8_t flags, uint32_t length)
{
	struct wire_rmpp h = { 1, RMPP_DATA, 0, RMPP_ACTIVE | RMPP_FIRST, 0, 1, claimed };
	struct lab lab;

	set_up(&lab, 0);
	memcpy(lab.mad, lab.header, MAD_BYTES);
	wire_rmpp_encode(&h, lab.mad + RMPP_AT);
	wire_rmpp_receive_input(&lab.receiver, lab.mad, lab.reply);
	h = (struct wire_rmpp){ 1, RMPP_DATA, 0, RMPP_ACTIVE | flags, 0, 2, length };
	wire_rmpp_encode(&h, lab.mad + RMPP_AT);
	wire_rmpp_receive_input(&lab.receiver, lab.mad, lab.reply);
	return lab.receiver.status;
}

CASE(the_last_segment_comes_where_the_first_said)
{
	assert_int_equal(second(250, RMPP_LAST, 30), RMPP_STATUS_OK);
	assert_int_equal(second(250, RMPP_LAST, 31), RMPP_STATUS_BAD_LENGTH);
	assert_int_equal(second(250, 0, 0), RMPP_STATUS_BAD_LENGTH);
	assert_int_equal(second(440, 0, 0), RMPP_STATUS_BAD_LENGTH);
	assert_int_equal(second(461, 0, 0), RMPP_STATUS_OK);
	assert_int_equal(second(UINT32_MAX, RMPP_LAST, 30), RMPP_STATUS_BAD_LENGTH);
}

CASE(a_first_segment_need_not_say_how_long_the_message_is)
{
	assert_int_equal(second(0, RMPP_LAST, 30), RMPP_STATUS_OK);
	assert_int_equal(second(0, 0, 0), RMPP_STATUS_OK);
}

CASE(a_message_longer_than_the_limit_is_stopped)
{
	struct wire_rmpp_limits few = limits;
	struct wire_rmpp_result result;
	struct lab lab;

	set_up(&lab, 400);
	few.max_bytes = 399;
	wire_rmpp_receive_init(&lab.receiver, &few, 0);
	assert_int_equal(receive(&lab, 1).event, RMPP_CONTINUE);
	result = receive(&lab, 2);
	assert_int_equal(result.event, RMPP_FAILED);
	assert_null(result.data);
	assert_int_equal(rmpp_of(lab.reply).type, RMPP_STOP);
	assert_int_equal(rmpp_of(lab.reply).status, RMPP_STATUS_RESOURCES_EXHAUSTED);
}

CASE(a_transfer_ends_after_its_timeout)
{
	struct wire_rmpp_result result;
	struct lab lab;

	set_up(&lab, MESSAGE);
	receive(&lab, 1);
	assert_int_equal(wire_rmpp_receive_expire(&lab.receiver, 99, lab.reply).event,
	                 RMPP_CONTINUE);
	result = wire_rmpp_receive_expire(&lab.receiver, 100, lab.reply);
	assert_int_equal(result.event, RMPP_FAILED);
	assert_true(result.reply);
	assert_abort(lab.reply, RMPP_STATUS_TOTAL_TIME_TOO_LONG, MAD_GET_TABLE);
}

CASE(a_transfer_that_never_began_ends_without_a_reply)
{
	struct wire_rmpp_result result;
	struct lab lab;

	set_up(&lab, MESSAGE);
	result = wire_rmpp_receive_expire(&lab.receiver, 100, lab.reply);
	assert_int_equal(result.event, RMPP_FAILED);
	assert_false(result.reply);
}

CASE(when_all_has_arrived_nothing_can_spoil_it)
{
	struct lab lab;

	set_up(&lab, 100);
	assert_int_equal(receive(&lab, 1).event, RMPP_DONE);
	for (unsigned type = 0; type < 256; type++) {
		struct wire_rmpp h = { 2, type, 0, RMPP_ACTIVE, 120, 1, 1 };
		struct wire_rmpp_result result;

		wire_rmpp_encode(&h, lab.mad + RMPP_AT);
		result = wire_rmpp_receive_input(&lab.receiver, lab.mad, lab.reply);
		assert_int_equal(result.event, RMPP_CONTINUE);
		assert_int_equal(lab.receiver.state, RMPP_DONE);
	}
	assert_int_equal(wire_rmpp_receive_expire(&lab.receiver, 1000, lab.reply).event,
	                 RMPP_CONTINUE);
}

CASE(the_window_for_a_response_is_kept)
{
	struct wire_rmpp h = { 1, RMPP_ACK, 0, RMPP_ACTIVE, 0, 0, 9 };
	struct lab lab;

	set_up(&lab, 100);
	assert_int_equal(lab.receiver.peer_window, 1);
	receive(&lab, 1);
	wire_rmpp_encode(&h, lab.mad + RMPP_AT);
	assert_int_equal(wire_rmpp_receive_input(&lab.receiver, lab.mad, lab.reply).event,
	                 RMPP_CONTINUE);
	assert_int_equal(lab.receiver.peer_window, 9);
}

CASE(without_a_machine_a_mad_can_be_refused)
{
	struct lab lab;

	set_up(&lab, 100);
	wire_rmpp_segment(&lab.message, 1, lab.mad);
	wire_rmpp_refuse(lab.mad, RMPP_STATUS_UNSPECIFIED, lab.reply);
	assert_abort(lab.reply, RMPP_STATUS_UNSPECIFIED, MAD_GET_TABLE);
	assert_memory_equal(lab.reply + 4, lab.mad + 4, RMPP_AT - 4);
}

CASE(only_classes_with_rmpp_have_it_active)
{
	struct lab lab;

	set_up(&lab, 100);
	assert_false(wire_rmpp_is_active(lab.header));
	wire_rmpp_segment(&lab.message, 1, lab.mad);
	assert_true(wire_rmpp_is_active(lab.mad));
	lab.mad[1] = MAD_CLASS_SUBN_DIRECTED; /* where this is a part of the M_Key */
	assert_false(wire_rmpp_is_active(lab.mad));
}

/* Both. */

static bool lost(unsigned one_in)
{
	return one_in && rand() % one_in == 0;
}

/* Loses one MAD in @one_in, in either direction; 0: none. */
static void transfer(size_t bytes, unsigned one_in)
{
	uint8_t *got = test_malloc(4096);
	size_t n = 0;
	uint64_t now = 0;
	struct lab lab;

	set_up(&lab, bytes);
	lab.sender.max_retries = 255;
	lab.receiver.limits.timeout_ns = UINT64_MAX;
	while (lab.sender.state == RMPP_CONTINUE) {
		struct wire_rmpp_result result;

		if (!wire_rmpp_send_next(&lab.sender, now, lab.mad)) {
			now = lab.sender.deadline;
			result = wire_rmpp_send_expire(&lab.sender, now, lab.reply);
			assert_int_equal(result.event, RMPP_CONTINUE);
			continue;
		}
		if (lost(one_in))
			continue;
		result = wire_rmpp_receive_input(&lab.receiver, lab.mad, lab.reply);
		assert_int_not_equal(result.event, RMPP_FAILED);
		if (result.data) {
			assert_true(n + result.bytes <= bytes);
			memcpy(got + n, result.data, result.bytes);
			n += result.bytes;
		}
		if (result.reply && !lost(one_in)) {
			memcpy(lab.mad, lab.reply, MAD_BYTES);
			wire_rmpp_send_input(&lab.sender, lab.mad, now, lab.reply);
		}
	}
	assert_int_equal(lab.sender.state, RMPP_DONE);
	assert_int_equal(lab.receiver.state, RMPP_DONE);
	assert_int_equal(n, bytes);
	assert_memory_equal(got, lab.payload, bytes);
	test_free(got);
}

CASE(what_was_sent_arrives)
{
	for (size_t bytes = 0; bytes <= 1300; bytes += 50)
		transfer(bytes, 0);
	transfer(199, 0);
	transfer(201, 0);
	transfer(4096, 0);
}

CASE(what_was_sent_arrives_over_a_link_that_loses_mads)
{
	for (unsigned i = 0; i < 200; i++)
		transfer(rand() % 4097, 2 + i % 5);
}

/* A plausible MAD of this class, with numbers near the limits. */
static void fuzz_mad(uint8_t *mad)
{
	static const uint32_t number[] = { 0, 1, 2, 3, 19, 20, 220, 221, 440, UINT32_MAX };
	struct wire_rmpp h = { .version = rand() % 16 != 0,
		               .type = rand() % 16 ? 1 + rand() % 2 : rand(),
		               .flags = RMPP_ACTIVE | rand(),
		               .status = rand() % 8 ? 0 : rand(),
		               .data1 = number[rand() % ARRAY_SIZE(number)],
		               .data2 = number[rand() % ARRAY_SIZE(number)] };

	for (unsigned i = 0; i < MAD_BYTES; i++)
		mad[i] = rand();
	if (rand() % 16)
		mad[1] = MAD_CLASS_SUBN_ADM;
	wire_rmpp_encode(&h, mad + RMPP_AT);
}

CASE(no_mad_gets_the_receiver_out_of_its_bounds)
{
	uint8_t *mad = test_malloc(MAD_BYTES), *reply = test_malloc(MAD_BYTES);

	for (unsigned round = 0; round < 20000; round++) {
		struct wire_rmpp_receiver r;
		uint32_t n = 0;

		wire_rmpp_receive_init(&r, &limits, 0);
		for (unsigned i = 0; i < 8; i++) {
			struct wire_rmpp_result result;

			fuzz_mad(mad);
			result = wire_rmpp_receive_input(&r, mad, reply);
			if (!result.data)
				continue;
			assert_true(result.data >= mad);
			assert_true(result.data + result.bytes <= mad + MAD_BYTES);
			n += result.bytes;
		}
		assert_int_equal(n, r.bytes);
		assert_true(n <= limits.max_bytes);
	}
	test_free(mad);
	test_free(reply);
}

CASE(no_mad_gets_the_sender_out_of_its_bounds)
{
	struct lab lab;

	set_up(&lab, 0);
	for (unsigned round = 0; round < 20000; round++) {
		wire_rmpp_message_init(&lab.message, lab.header, lab.payload, rand() % 4097);
		wire_rmpp_send_init(&lab.sender, &lab.message, &limits, 0);
		for (unsigned i = 0; i < 8; i++) {
			while (wire_rmpp_send_next(&lab.sender, 0, lab.mad))
				;
			fuzz_mad(lab.mad);
			wire_rmpp_send_input(&lab.sender, lab.mad, 0, lab.reply);
			assert_true(lab.sender.acked <= lab.sender.sent);
			assert_true(lab.sender.sent <= lab.message.segments);
		}
	}
}
