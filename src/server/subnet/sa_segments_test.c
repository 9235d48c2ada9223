/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests to the SA in segments: complete ones, several at once, repeated, abandoned, too long,
 * too many. Time is a number here.
 */
#include <harness.h>

#include "base/util.h"
#include "subnet/sa_segments.h"

#define SEGMENT 200 /* bytes of a request in each */
#define SECOND  1000000000ull

static int setup(void **state)
{
	assert_int_equal(sa_segments_new((struct sa_segments **)state), 0);
	return 0;
}

static int teardown(void **state)
{
	sa_segments_free(*state);
	return 0;
}

/* A request of LID @slid with a transaction of its own. */
struct asker {
	uint16_t slid;
	uint64_t tid;
	uint8_t header[MAD_BYTES];
	uint8_t payload[SA_SEGMENTS_BYTES + SEGMENT];
	struct wire_rmpp_message message;
};

static struct asker *asker_new(uint16_t slid, uint64_t tid, size_t bytes)
{
	struct asker *a = calloc(1, sizeof(*a));
	struct wire_sa_mad mad = { .mad = { .base_version = MAD_BASE_VERSION,
		                            .mgmt_class = MAD_CLASS_SUBN_ADM,
		                            .class_version = MAD_VERSION_SUBN_ADM,
		                            .method = MAD_GET_MULTI,
		                            .transaction_id = tid,
		                            .attribute_id = SA_ATTR_MULTIPATH },
		                   .component_mask = 0x1234 };

	assert_non_null(a);
	a->slid = slid;
	a->tid = tid;
	wire_sa_mad_encode(&mad, a->header);
	for (size_t i = 0; i < bytes; i++)
		a->payload[i] = (uint8_t)(i * 7 + tid);
	assert_int_equal(wire_rmpp_message_init(&a->message, a->header, a->payload, bytes), 0);
	return a;
}

/* Sends segment @i. */
static struct sa_segment_step put(struct sa_segments *s, const struct asker *a, uint32_t i,
                                  uint64_t now)
{
	struct fabric_mad mad = { .slid = a->slid, .src_qpn = IB_QPN_GSI };
	struct sa_segment_step step;

	wire_rmpp_segment(&a->message, i, mad.data);
	sa_segments_receive(s, &mad, now, &step);
	return step;
}

static struct wire_rmpp reply_of(const struct sa_segment_step *step)
{
	struct wire_rmpp h;

	assert_true(step->replied);
	wire_rmpp_decode(step->reply + RMPP_AT, &h);
	return h;
}

static void expect_whole(const struct sa_segment_step *step, const struct asker *a)
{
	assert_true(step->whole);
	assert_int_equal(reply_of(step).type, RMPP_ACK);
	assert_int_equal(reply_of(step).data1, a->message.segments);
	assert_true(step->mad.mad.transaction_id == a->tid);
	assert_true(step->mad.component_mask == 0x1234);
	assert_int_equal(step->bytes, a->message.bytes);
	assert_memory_equal(step->data, a->payload, step->bytes);
}

CASE_WITH(segments_in_order_make_a_request, setup, teardown)
{
	static const size_t sizes[] = { SEGMENT, SEGMENT + 1, 5 * SEGMENT, 4242,
		                        SA_SEGMENTS_BYTES };

	for (size_t k = 0; EACH_ROW(k, sizes); k++) {
		struct asker *a = asker_new(7, 100 + k, sizes[k]);

		for (uint32_t i = 1; i < a->message.segments; i++)
			assert_false(put(*state, a, i, 1).whole);
		{
			struct sa_segment_step step = put(*state, a, a->message.segments, 1);

			expect_whole(&step, a);
		}
		free(a);
	}
}

CASE_WITH(a_short_request_is_as_long_as_a_mad, setup, teardown)
{
	struct asker *a = asker_new(7, 1, 60);
	struct sa_segment_step step = put(*state, a, 1, 1);

	assert_true(step.whole);
	assert_int_equal(step.bytes, SA_DATA_BYTES);
	assert_memory_equal(step.data, a->payload, SA_DATA_BYTES);
	free(a);
}

CASE_WITH(requests_that_come_at_once_are_kept_apart, setup, teardown)
{
	struct asker *a[3] = { asker_new(7, 1, 900), asker_new(8, 1, 900), asker_new(7, 2, 900) };

	for (uint32_t i = 1; i < a[0]->message.segments; i++)
		for (int k = 0; k < 3; k++)
			assert_false(put(*state, a[k], i, 1).whole);
	for (int k = 0; k < 3; k++) {
		struct sa_segment_step step = put(*state, a[k], a[k]->message.segments, 1);

		expect_whole(&step, a[k]);
		free(a[k]);
	}
}

CASE_WITH(a_segment_out_of_order_is_not_accepted, setup, teardown)
{
	struct asker *a = asker_new(7, 1, 900);
	struct sa_segment_step step;

	put(*state, a, 1, 1);
	step = put(*state, a, 3, 1);
	assert_false(step.replied || step.whole);
	for (uint32_t i = 2; i < a->message.segments; i++)
		put(*state, a, i, 1);
	step = put(*state, a, a->message.segments, 1);
	expect_whole(&step, a);
	free(a);
}

CASE_WITH(a_repeated_segment_is_acknowledged_and_not_served_again, setup, teardown)
{
	struct asker *a = asker_new(7, 1, 300);
	struct sa_segment_step step;

	put(*state, a, 1, 1);
	step = put(*state, a, 2, 1);
	expect_whole(&step, a);
	step = put(*state, a, 2, 2);
	assert_false(step.whole);
	assert_int_equal(reply_of(&step).type, RMPP_ACK);
	assert_int_equal(reply_of(&step).data1, 2);
	free(a);
}

CASE_WITH(after_a_while_it_is_a_new_request, setup, teardown)
{
	struct asker *a = asker_new(7, 1, 100);

	assert_true(put(*state, a, 1, 1).whole);
	assert_false(put(*state, a, 1, 1 + SA_SEGMENTS_KEEP_NS - 1).whole);
	assert_true(put(*state, a, 1, 1 + SA_SEGMENTS_KEEP_NS).whole);
	free(a);
}

CASE_WITH(an_incomplete_request_is_forgotten_after_a_timeout, setup, teardown)
{
	struct asker *a = asker_new(7, 1, 900);
	struct sa_segment_step step;

	put(*state, a, 1, 1);
	step = put(*state, a, 2, 1 + SA_SEGMENTS_TIME_NS);
	assert_false(step.replied || step.whole);
	free(a);
}

CASE_WITH(one_that_is_too_long_is_stopped, setup, teardown)
{
	struct asker *a = asker_new(7, 1, SA_SEGMENTS_BYTES + SEGMENT);
	struct sa_segment_step step;
	uint32_t i = SA_SEGMENTS_BYTES / SEGMENT + 1; /* the first that is too much */

	for (uint32_t k = 1; k < i; k++)
		put(*state, a, k, 1);
	step = put(*state, a, i, 1);
	assert_false(step.whole);
	assert_int_equal(reply_of(&step).type, RMPP_STOP);
	free(a);
}

CASE_WITH(one_too_many_is_stopped, setup, teardown)
{
	struct asker *a;
	struct sa_segment_step step;

	for (uint64_t i = 0; i < SA_SEGMENTS_MOST; i++) {
		a = asker_new(7, i, 900);
		put(*state, a, 1, 1);
		free(a);
	}
	a = asker_new(8, 1, 900);
	step = put(*state, a, 1, 1);
	assert_int_equal(reply_of(&step).type, RMPP_STOP);
	step = put(*state, a, 1, 1 + SA_SEGMENTS_TIME_NS);
	assert_int_equal(reply_of(&step).type, RMPP_ACK);
	free(a);
}

CASE_WITH(an_aborted_request_is_forgotten, setup, teardown)
{
	struct asker *a = asker_new(7, 1, 900);
	struct fabric_mad abort = { .slid = 7, .src_qpn = IB_QPN_GSI };
	struct sa_segment_step step;

	put(*state, a, 1, 1);
	wire_rmpp_segment(&a->message, 1, abort.data);
	wire_rmpp_refuse(abort.data, RMPP_STATUS_UNSPECIFIED, abort.data);
	sa_segments_receive(*state, &abort, 1, &step);
	assert_false(step.replied || step.whole);
	step = put(*state, a, 1, 1); /* begins anew */
	assert_int_equal(reply_of(&step).data1, 1);
	sa_segments_receive(*state, &abort, 1, &step);
	sa_segments_receive(*state, &abort, 1, &step); /* of nothing */
	assert_false(step.replied || step.whole);
	free(a);
}
