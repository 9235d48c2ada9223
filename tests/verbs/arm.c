/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A completion queue that is armed while it holds completions, as hardware has it. The
 * specification's way is in arm_by_specification.c.
 */
#include "lab.h"

static bool has_event(const struct lab_end *e)
{
	struct pollfd p = { .fd = e->channel->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void get_event(const struct lab_end *e)
{
	struct ibv_cq *cq;
	void *context;

	assert_true(has_event(e));
	assert_int_equal(ibv_get_cq_event(e->channel, &cq, &context), 0);
	assert_ptr_equal(cq, e->cq);
	ibv_ack_cq_events(cq, 1);
	assert_false(has_event(e));
}

static struct lab_end *sleeper(void)
{
	return lab_end_with(&(struct lab_options){ .host = 2, .channel = true });
}

static void send_byte(struct lab_end *from, struct lab_end *to, unsigned flags)
{
	struct lab_request r;

	lab_request(from, &r, lab_ah_to(from, to), to->qp->qp_num, "x", 1);
	r.wr.send_flags |= flags;
	lab_send_request(from, &r);
}

/* As many programs do: for each event it arms, and polls one completion. */
LAB_CASE(one_completion_for_each_event_is_enough)
{
	struct lab_end *a = lab_end(1), *b = sleeper();

	lab_post(b, 20);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	for (int i = 0; i < 20; i++)
		send_byte(a, b, 0);
	for (int i = 0; i < 20; i++) {
		get_event(b);
		assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
		lab_receive(b);
	}
	assert_false(has_event(b));
}

/* A program that arms before it polls gets no second event for the completion that it was woken
 * for. */
LAB_CASE(a_completion_has_one_event)
{
	struct lab_end *a = lab_end(1), *b = sleeper();

	lab_post(b, 20);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	for (int i = 0; i < 20; i++) {
		assert_false(has_event(b));
		send_byte(a, b, 0);
		get_event(b);
		assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
		assert_false(has_event(b));
		lab_receive(b);
	}
}

/* Not so if none was armed when it came. */
LAB_CASE(what_came_unarmed_has_an_event)
{
	struct lab_end *a = lab_end(1), *b = sleeper();

	lab_post(b, 4);
	for (int i = 0; i < 4; i++) {
		send_byte(a, b, 0);
		assert_false(has_event(b));
		assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
		get_event(b);
		lab_receive(b);
	}
}

/* As their kernel's queue has them: whichever of a channel's queues was made first. */
LAB_CASE(events_of_a_channel_come_in_their_order)
{
	struct lab_end *a = lab_end(1), *b = sleeper(), *end[3] = { b }, other = *b;
	struct ibv_cq *cq;
	void *context;

	for (int i = 1; i < 3; i++) {
		other.cq = lab_cq(b->context, 12, b->channel);
		end[i] = lab_end_with(&(struct lab_options){ .neighbour = &other });
	}
	for (int i = 0; i < 3; i++)
		lab_post(end[i], 12);
	for (int turn = 0; turn < 12; turn++) {
		for (int i = 0; i < 3; i++)
			assert_int_equal(ibv_req_notify_cq(end[i]->cq, 0), 0);
		for (int i = 0; i < 3; i++) /* first, second, third; second, first, third... */
			send_byte(a, end[(i + turn) % 3], 0);
		for (int i = 0; i < 3; i++) {
			struct lab_end *e = end[(i + turn) % 3];

			lab_await(b->channel->fd);
			assert_int_equal(ibv_get_cq_event(b->channel, &cq, &context), 0);
			assert_ptr_equal(cq, e->cq);
			ibv_ack_cq_events(cq, 1);
			lab_receive(e);
		}
		assert_false(has_event(b));
	}
}

/* A message that goes with its queue pair takes its event along: the next one has its own. */
LAB_CASE(an_event_of_what_was_destroyed_counts_for_no_other_message)
{
	struct lab_end *a = lab_end(1), *b = sleeper(), *c;

	c = lab_end_with(&(struct lab_options){ .neighbour = b });
	lab_post(b, 1);
	lab_post(c, 1);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	send_byte(a, c, 0);
	get_event(b);
	lab_to(c->qp, IBV_QPS_RESET);
	lab_quiet(b->cq);
	send_byte(a, b, 0);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	get_event(b);
	lab_receive(b);
}

/* The same for receives that were flushed. */
LAB_CASE(an_event_of_what_was_flushed_counts_for_no_message)
{
	struct lab_end *a = lab_end(1), *b = sleeper(), *c;

	c = lab_end_with(&(struct lab_options){ .neighbour = b });
	lab_post(b, 2);
	lab_post(c, 3);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	lab_to(c->qp, IBV_QPS_ERR);
	for (int i = 0; i < 3; i++) {
		get_event(b);
		assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
		lab_complete(b->cq, IBV_WC_WR_FLUSH_ERR);
	}
	send_byte(a, b, 0);
	get_event(b);
	lab_receive(b);
	send_byte(a, b, 0);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	get_event(b);
	lab_receive(b);
}

/* Of 70 queue pairs on the queue the last one alone has a message. */
LAB_CASE(a_message_of_any_of_many_queue_pairs_counts)
{
	struct lab_end *a = lab_end(1), *b = sleeper(), *last = b;

	for (int i = 0; i < 70; i++)
		last = lab_end_with(&(struct lab_options){ .neighbour = b });
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	assert_false(has_event(b));
	lab_post(last, 2);
	send_byte(a, last, 0);
	get_event(b);
	lab_receive(last);
	lab_post(last, 1);
	send_byte(a, last, 0);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	get_event(b);
	lab_receive(last);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	assert_false(has_event(b));
}

LAB_CASE(what_was_flushed_counts)
{
	struct lab_end *b = sleeper();

	lab_post(b, 1);
	lab_to(b->qp, IBV_QPS_ERR);
	assert_int_equal(ibv_req_notify_cq(b->cq, 1), 0);
	get_event(b);
	lab_complete(b->cq, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_req_notify_cq(b->cq, 1), 0);
	assert_false(has_event(b));
}

LAB_CASE(armed_for_solicited_messages_it_fires_for_those_alone)
{
	struct lab_end *a = lab_end(1), *b = sleeper();

	lab_post(b, 3);
	send_byte(a, b, 0);
	assert_int_equal(ibv_req_notify_cq(b->cq, 1), 0);
	assert_false(has_event(b));
	send_byte(a, b, IBV_SEND_SOLICITED);
	get_event(b);
	send_byte(a, b, 0);
	assert_int_equal(ibv_req_notify_cq(b->cq, 1), 0);
	get_event(b); /* of the second one, which waits */
	lab_receive(b);
	lab_receive(b);
	assert_int_equal(ibv_req_notify_cq(b->cq, 1), 0);
	assert_false(has_event(b));
	lab_receive(b);
}

LAB_CASE(moderation_counts_from_the_arming)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
		                           .moderate = { .cq_count = 2 } };
	struct lab_end *a = lab_end(1), *b = sleeper();

	assert_int_equal(ibv_modify_cq(b->cq, &attr), 0);
	lab_post(b, 4);
	send_byte(a, b, 0);
	send_byte(a, b, 0);
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	assert_false(has_event(b));
	send_byte(a, b, 0);
	send_byte(a, b, 0);
	get_event(b);
}
