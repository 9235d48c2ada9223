/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many senders of one receive ring: no message is lost or comes twice, wherever a sender dies or
 * sleeps.
 *
 * Senders that must stop at a given instruction are children under ptrace, which the test steps one
 * instruction at a time.
 */
#include <harness.h>
#include <sys/ptrace.h>

#include "base/pause.h"
#include "base/util.h"
#include "shm/testing.h"

/* ---- many senders ---- */

#define SENDERS      4
#define MESSAGES     5000
#define WRITER_OF(i) ((uint16_t)(100 + (i)))

struct sender {
	const struct lab *l;
	unsigned i;
};

static void send_one(const struct lab *l, unsigned i, uint32_t message)
{
	struct base_pause pause = { 0 };

	while (!send_as(l, WRITER_OF(i), message))
		if (base_pause(&pause))
			pause.looks = 0; /* it sleeps shortly: others are after the same slot */
}

static void send_many(const struct lab *l, unsigned i)
{
	for (uint32_t m = 0; m < MESSAGES; m++)
		send_one(l, i, m);
}

static void *sender_thread(void *arg)
{
	const struct sender *s = arg;

	send_many(s->l, s->i);
	return NULL;
}

/* The owner of a busy ring. Exactly as many receives are posted as there are messages. */
static void receive_all(struct lab *l)
{
	uint32_t next[SENDERS] = { 0 }, left = SENDERS * MESSAGES, to_post = left;
	struct base_pause pause = { 0 };

	while (left) {
		uint32_t room = shm_ring_room(l->posted, l->consumed, l->shift);
		struct received t;

		room = room < to_post ? room : to_post;
		if (room)
			post(l, room);
		to_post -= room;
		if (!receive(l, &t)) {
			base_pause(&pause);
			continue;
		}
		pause.looks = 0;
		assert_in_range(t.writer, WRITER_OF(0), WRITER_OF(SENDERS - 1));
		assert_int_equal(t.message, next[t.writer - WRITER_OF(0)]++);
		left--;
	}
	expect_empty(l);
	assert_false(send_as(l, ME, 0));
}

static void threads_lose_and_duplicate_nothing(void **state)
{
	static const unsigned shifts[] = { 0, 2, 8 };
	struct lab *l = *state;

	for (size_t k = 0; EACH_ROW(k, shifts); k++) {
		struct sender s[SENDERS];
		pthread_t thread[SENDERS];
		struct lab view;

		start_at(l, shifts[k], GEN, -2000u);
		view = *l;
		for (unsigned i = 0; i < SENDERS; i++) {
			s[i] = (struct sender){ &view, i };
			assert_int_equal(pthread_create(&thread[i], NULL, sender_thread, &s[i]), 0);
		}
		receive_all(l);
		for (unsigned i = 0; i < SENDERS; i++)
			pthread_join(thread[i], NULL);
	}
}

static void processes_lose_and_duplicate_nothing(void **state)
{
	struct lab *l = *state;
	pid_t pid[SENDERS];

	start_at(l, 4, GEN, (1u << 30) - 2000);
	for (unsigned i = 0; i < SENDERS; i++) {
		pid[i] = fork();
		if (!pid[i]) {
			send_many(l, i);
			_exit(0);
		}
	}
	receive_all(l);
	for (unsigned i = 0; i < SENDERS; i++)
		assert_int_equal(waitpid(pid[i], NULL, 0), pid[i]);
}

/* ---- death ---- */

#define INCARNATION(n) ((uint32_t)(n) << 20)

/* Starts a child that sends until it is killed; its messages count from INCARNATION(@n). */
static pid_t start_sender(const struct lab *l, unsigned i, unsigned n)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	for (uint32_t m = INCARNATION(n);; m++)
		send_one(l, i, m);
}

/* Checks the order: a sender's next message, or the first one of the child that replaces it. */
static void check_next(uint32_t *next, const struct received *t)
{
	uint32_t *expected = &next[t->writer - WRITER_OF(0)];

	assert_in_range(t->writer, WRITER_OF(0), WRITER_OF(SENDERS - 1));
	if (t->message != *expected) {
		assert_int_equal(t->message % INCARNATION(1), 0);
		assert_true(t->message > *expected);
	}
	*expected = t->message + 1;
}

static void receive_some(struct lab *l, uint32_t *next, unsigned n)
{
	struct base_pause pause = { 0 };
	struct received t;

	while (n) {
		post(l, shm_ring_room(l->posted, l->consumed, l->shift));
		if (!receive(l, &t)) {
			base_pause(&pause);
			continue;
		}
		pause.looks = 0;
		check_next(next, &t);
		n--;
	}
}

static void end_by_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void senders_killed_at_random_leave_the_ring_whole(void **state)
{
	enum { KILLS = 400 };
	struct lab *l = *state;
	uint32_t next[SENDERS] = { 0 };
	pid_t pid[SENDERS];
	struct received t;

	start_at(l, 3, GEN, -5000u);
	for (unsigned i = 0; i < SENDERS; i++)
		pid[i] = start_sender(l, i, 0);
	srandom(42);
	for (unsigned n = 1; n <= KILLS; n++) {
		unsigned victim = (unsigned)random() % SENDERS;

		receive_some(l, next, (unsigned)random() % 300);
		end_by_kill(pid[victim]);
		void_writer(l, 3, WRITER_OF(victim));
		pid[victim] = start_sender(l, victim, n);
	}
	receive_some(l, next, 100);
	for (unsigned i = 0; i < SENDERS; i++) {
		end_by_kill(pid[i]);
		void_writer(l, 3, WRITER_OF(i));
	}
	while (receive(l, &t))
		check_next(next, &t);
	post(l, shm_ring_room(l->posted, l->consumed, 3));
	assert_int_equal(count_credits(l), 8);
}

/* Starts a child that stops itself, then sends one message as ME. Its result is l->scratch[0]. */
static pid_t start_stepped(const struct lab *l)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(1);
		raise(SIGSTOP);
		l->scratch[0] = send_as(l, ME, 0xAB) ? 1 : 2;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL);
	return pid;
}

/* Steps it @n instructions, fewer if it has sent. Returns how many. */
static unsigned step(const struct lab *l, pid_t pid, unsigned n)
{
	unsigned done = 0;
	int status;

	while (done < n && !*(volatile uint32_t *)l->scratch) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSTOPPED(status));
		done++;
	}
	return done;
}

static void end_by_itself(pid_t pid)
{
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The instructions from the stop until the message is sent; *@stride: a step for slow builds. */
static unsigned count_steps(struct lab *l, unsigned *stride)
{
	unsigned n;
	pid_t pid;

	start(l, 2);
	post(l, 1);
	pid = start_stepped(l);
	n = step(l, pid, 1000000);
	end_by_kill(pid);
	*stride = n / 260 + 1;
	return n;
}

/* Kills a sender after @k instructions. True: its message arrived. @before: the sender of the
 * message before: itself or another one. */
static bool kill_after(struct lab *l, uint32_t first, uint16_t before, unsigned k)
{
	bool arrived, claimed;
	struct received t;
	pid_t pid;

	start_at(l, 2, GEN, first);
	post(l, 4);
	assert_true(send_as(l, before, 1));
	pid = start_stepped(l);
	step(l, pid, k);
	/* another sender sends meanwhile */
	assert_true(send_as(l, OTHER, 2));
	end_by_kill(pid);
	claimed = void_writer(l, 2, ME);
	assert_int_equal(void_writer(l, 2, ME), 0);

	expect_received(l, before, 1);
	assert_true(receive(l, &t));
	arrived = t.writer == ME;
	assert_false(arrived && claimed);
	if (arrived)
		assert_int_equal(t.message, 0xAB);
	if (arrived)
		assert_true(receive(l, &t));
	assert_int_equal(t.writer, OTHER);
	assert_int_equal(t.message, 2);
	expect_empty(l);
	/* of four credits, only those of messages that arrived are used */
	assert_int_equal(count_credits(l), arrived ? 1 : 2);
	post(l, shm_ring_room(l->posted, l->consumed, 2));
	assert_int_equal(count_credits(l), 4);
	return arrived;
}

static void a_sender_killed_at_any_instruction_leaves_the_ring_whole(void **state)
{
	static const uint32_t firsts[] = { 0, (1u << 30) - 2, -2u };
	struct lab *l = *state;
	unsigned stride, n = count_steps(l, &stride);

	for (size_t i = 0; i < 2 * ARRAY_SIZE(firsts); i++) {
		uint32_t first = firsts[i / 2];
		uint16_t before = i % 2 ? ME : OTHER;

		assert_false(kill_after(l, first, before, 0));
		for (unsigned k = 1; k < n; k += stride)
			kill_after(l, first, before, k);
		assert_true(kill_after(l, first, before, n + 64));
	}
}

static bool me_is_alive(void *arg, uint16_t writer)
{
	(void)arg;
	return writer == ME;
}

/* Frees the ring and uses it again while a sender sleeps after @k instructions. */
static void reuse_after(struct lab *l, unsigned k)
{
	pid_t pid;
	bool sent;

	start(l, 2);
	post(l, 4);
	pid = start_stepped(l);
	step(l, pid, k);
	sent = shm_ring_peek(l->ring, 2, 0) == SHM_SLOT_DONE;
	if (close_ring(l, 2, me_is_alive)) {
		/* it has a claim: the memory cannot be freed before it publishes */
		end_by_itself(pid);
		assert_int_equal(close_ring(l, 2, me_is_alive), 0);
		return;
	}
	start_at(l, 2, GEN + 1, 0);
	post(l, 4);
	end_by_itself(pid);
	if (!sent)
		assert_int_equal(l->scratch[0], 2);
	assert_int_equal(count_credits(l), 4);
}

static void a_sender_that_slept_at_any_instruction_claims_nothing_of_a_new_ring(void **state)
{
	struct lab *l = *state;
	unsigned stride, n = count_steps(l, &stride);

	for (unsigned k = 0; k <= n; k += stride)
		reuse_after(l, k);
}

/* Whether the stepped sender has claimed position @pos, of the first lap. */
static bool has_claimed(const struct lab *l, uint32_t pos)
{
	if (l->single)
		return shm_slot_pos(l->ring->claim) == pos;
	return shm_ring_slot(l->ring, 2, pos)->state !=
	       shm_slot_state(pos - 4, GEN, 0, SHM_SLOT_DONE);
}

/*
 * Others move the ring on by more than half of all positions while a sender sleeps after @k
 * instructions; then all credits are used. @slow: it has to look at posted.
 */
static void pass_by(struct lab *l, unsigned k, bool slow)
{
	pid_t pid;

	start(l, 2);
	post(l, 4);
	if (!slow) {
		assert_true(send_as(l, OTHER, 0));
		expect_received(l, OTHER, 0);
	}
	pid = start_stepped(l);
	step(l, pid, k);
	if (!has_claimed(l, !slow)) {
		start_at(l, 2, GEN, (1u << 31) + 1000);
		end_by_itself(pid);
		assert_int_equal(l->scratch[0], 2);
		post(l, 4);
		assert_int_equal(count_credits(l), 4);
	} else {
		end_by_itself(pid);
	}
}

static void a_sender_that_slept_at_any_instruction_claims_only_what_is_posted(void **state)
{
	struct lab *l = *state;
	unsigned stride, n = count_steps(l, &stride);

	for (unsigned k = 0; k <= n; k += stride) {
		pass_by(l, k, false);
		pass_by(l, k, true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BOTH(threads_lose_and_duplicate_nothing),
		TEST_BOTH(processes_lose_and_duplicate_nothing),
		TEST_BOTH(senders_killed_at_random_leave_the_ring_whole),
		TEST_BOTH(a_sender_killed_at_any_instruction_leaves_the_ring_whole),
		TEST_BOTH(a_sender_that_slept_at_any_instruction_claims_nothing_of_a_new_ring),
		TEST_BOTH(a_sender_that_slept_at_any_instruction_claims_only_what_is_posted),
	};

	return cmocka_run_group_tests_name("shm.ring_death", tests, NULL, NULL);
}
