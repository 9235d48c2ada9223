/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Outboxes: waiting messages come in order, bytes are never lost, and a process that does not read
 * gets no more messages than its budget has room for.
 */
#include <harness.h>

#include "daemon/core/outbox.h"

#define BYTES   300000 /* more than there may be messages */
#define MESSAGE 65536  /* bytes: the budget is over soon */
#define LARGE   ((size_t)64 << 20)

struct lab {
	struct daemon_loop loop;
	struct cm_outbox *box;
	int fd; /* the process's end */
	char message[MESSAGE];
};

static int setup(void **state)
{
	struct lab *l = calloc(1, sizeof(*l));

	*state = l;
	return daemon_loop_init(&l->loop) || daemon_outbox_open(&l->loop, &l->box, &l->fd);
}

static int teardown(void **state)
{
	struct lab *l = *state;

	if (l->fd >= 0)
		close(l->fd);
	daemon_outbox_close(l->box);
	while (base_timers_next(&l->loop.timers) != BASE_TIMER_NEVER) /* it frees what waits */
		assert_int_equal(daemon_loop_turn(&l->loop), 0);
	daemon_loop_fini(&l->loop);
	free(l);
	return 0;
}

/* The next datagram, as soon as it is there: its bytes, and its beginning. */
static ssize_t receive(struct lab *l, uint32_t *first)
{
	char message[MESSAGE] = { 0 };
	ssize_t n;

	while ((n = recv(l->fd, message, sizeof(message), MSG_DONTWAIT)) < 0) {
		assert_int_equal(errno, EAGAIN);
		assert_true(daemon_outbox_waiting(l->box));
		assert_true(daemon_loop_turn(&l->loop) >= 0);
	}
	memcpy(first, message, sizeof(*first));
	return n;
}

CASE_WITH(bytes_are_never_lost, setup, teardown)
{
	struct lab *l = *state;
	unsigned got[DAEMON_OUTBOX_RINGS] = { 0 };
	uint32_t byte;

	for (unsigned i = 0; i < BYTES; i++)
		daemon_outbox_ring(l->box, i % 3 ? 1 : 0);
	for (unsigned i = 0; i < BYTES; i++) {
		assert_int_equal(receive(l, &byte), 1);
		assert_in_range(byte, 0, DAEMON_OUTBOX_RINGS - 1);
		got[byte]++;
	}
	assert_int_equal(got[0], BYTES / 3);
	assert_int_equal(got[1], BYTES - BYTES / 3);
	assert_int_equal(daemon_outbox_waiting(l->box), 0);
}

/* As many messages as it takes, each of which begins with its number; behind each a byte. */
static uint32_t fill(struct lab *l)
{
	uint32_t n = 0;

	for (;;) {
		memcpy(l->message, &n, sizeof(n));
		if (daemon_outbox_send(l->box, l->message, MESSAGE))
			return n;
		daemon_outbox_ring(l->box, n % 2);
		n++;
	}
}

CASE_WITH(a_byte_has_its_place_among_messages, setup, teardown)
{
	struct lab *l = *state;
	uint32_t n = fill(l), first;

	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(receive(l, &first), MESSAGE);
		assert_int_equal(first, i);
		assert_int_equal(receive(l, &first), 1);
		assert_int_equal(first, i % 2);
	}
	assert_int_equal(daemon_outbox_waiting(l->box), 0);
}

CASE_WITH(it_is_closed_when_nobody_has_it, setup, teardown)
{
	struct lab *l = *state;
	int copy = dup(l->fd);

	assert_false(daemon_outbox_closed(l->box));
	close(l->fd);
	assert_false(daemon_outbox_closed(l->box));
	close(copy);
	l->fd = -1;
	assert_true(daemon_outbox_closed(l->box));
}

CASE_WITH(who_does_not_read_gets_bytes_alone, setup, teardown)
{
	struct lab *l = *state;
	uint32_t n = fill(l), first;
	unsigned waiting = daemon_outbox_waiting(l->box);

	assert_int_equal(daemon_outbox_send(l->box, l->message, MESSAGE), -ENOBUFS);
	daemon_outbox_ring(l->box, 1);
	daemon_outbox_ring(l->box, 1);
	assert_int_equal(daemon_outbox_waiting(l->box), waiting + 2);
	for (uint32_t i = 0; i < 2 * n; i++)
		receive(l, &first);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(receive(l, &first), 1);
	assert_int_equal(daemon_outbox_send(l->box, l->message, MESSAGE), 0);
	assert_int_equal(receive(l, &first), MESSAGE);
}

CASE_WITH(a_message_beyond_the_budget_is_the_last_one, setup, teardown)
{
	struct lab *l = *state;
	const struct daemon_datagram large = {
		.data = l->message, .bytes = 1, .beside = calloc(1, LARGE), .beside_bytes = LARGE
	};

	assert_non_null(large.beside);
	while (!daemon_outbox_waiting(l->box))
		daemon_outbox_ring(l->box, 0);
	assert_int_equal(daemon_outbox_send_datagram(l->box, &large), 0);
	assert_int_equal(daemon_outbox_send(l->box, l->message, 1), -ENOBUFS);
	free((void *)large.beside);
}

CASE_WITH(nothing_waits_for_who_is_gone, setup, teardown)
{
	struct lab *l = *state;

	fill(l);
	close(l->fd);
	l->fd = -1;
	while (daemon_outbox_waiting(l->box))
		assert_true(daemon_loop_turn(&l->loop) >= 0);
	daemon_outbox_ring(l->box, 0);
	assert_int_equal(daemon_outbox_send(l->box, l->message, MESSAGE), 0);
	assert_int_equal(daemon_outbox_waiting(l->box), 0);
}

/* It lives, but has said that it reads no more: no byte is tried after the first one. */
CASE_WITH(nothing_waits_for_who_reads_no_more, setup, teardown)
{
	struct lab *l = *state;
	char byte;

	for (unsigned i = 0; i < BYTES; i++)
		daemon_outbox_ring(l->box, 1);
	assert_true(daemon_outbox_waiting(l->box) > BYTES / 2);
	assert_int_equal(shutdown(l->fd, SHUT_RD), 0);
	while (recv(l->fd, &byte, sizeof(byte), MSG_DONTWAIT) == 1)
		;
	for (unsigned turns = 0; daemon_outbox_waiting(l->box); turns++) {
		assert_true(turns < 10);
		assert_true(daemon_loop_turn(&l->loop) >= 0);
	}
}
