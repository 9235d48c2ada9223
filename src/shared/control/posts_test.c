/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rings of posted requests: requests that go in come out, in order and whole, wherever the ring
 * wraps. A ring that is full takes nothing, and a reader is not fooled by what it finds. A reader
 * that sleeps is told.
 */
#include <harness.h>

#include "control/posts.h"

static struct control_posts_reader reader;
static struct control_posts *ring; /* the process's mapping */

static int setup(void **state)
{
	int fd, ret;

	(void)state;
	ret = control_posts_make(&reader, &fd);
	if (ret)
		return ret;
	ret = control_posts_map(&ring, fd);
	close(fd);
	return ret;
}

static int teardown(void **state)
{
	(void)state;
	control_posts_unmap(ring);
	control_posts_unmap(reader.ring);
	return 0;
}

/* The @i-th datagram: of a length of its own. */
static void make(struct control_packet *p, uint32_t i)
{
	memset(p, 0, sizeof(*p));
	p->header.type = i;
	p->header.bytes = i * 37 % (CONTROL_MAX_BYTES + 1);
	memset(p->body, (int)i, p->header.bytes);
}

static void expect(const struct control_packet *p, uint32_t i)
{
	struct control_packet want;

	make(&want, i);
	assert_int_equal(p->n_fds, 0);
	assert_int_equal(p->behind, 0);
	assert_memory_equal(p, &want, sizeof(want.header) + want.header.bytes);
}

static int put(uint32_t i)
{
	struct control_packet p;
	bool tell;

	make(&p, i);
	return control_posts_put(ring, NULL, 0, &p, &tell);
}

static int take(struct control_packet *p)
{
	return control_posts_take(&reader, control_posts_written(&reader), p);
}

CASE_WITH(what_goes_in_comes_out, setup, teardown)
{
	struct control_packet p;
	uint32_t got = 0;

	assert_int_equal(take(&p), -EAGAIN);
	for (uint32_t i = 0; i < 20000; i++) {
		while (put(i)) {
			assert_int_equal(take(&p), 0);
			expect(&p, got++);
		}
	}
	for (; got < 20000; got++) {
		assert_int_equal(take(&p), 0);
		expect(&p, got);
	}
	assert_int_equal(take(&p), -EAGAIN);
}

CASE_WITH(requests_that_go_ahead_come_with_it, setup, teardown)
{
	struct {
		struct control_header header;
		uint64_t body;
	} ahead = { { .type = 5, .status = CONTROL_FOLLOWED, .bytes = 8 }, 0x1234 };
	struct control_packet p;
	bool tell;

	make(&p, 9);
	assert_int_equal(control_posts_put(ring, &ahead, sizeof(ahead), &p, &tell), 0);
	assert_int_equal(take(&p), 0);
	assert_int_equal(p.header.type, 5);
	assert_memory_equal(p.body, &ahead.body, 8);
	assert_true(control_packet_next(&p));
	expect(&p, 9);
}

CASE_WITH(a_ring_that_is_full_takes_no_more, setup, teardown)
{
	struct control_packet p = { .header = { .type = 1, .bytes = 1000 } };
	unsigned n = 0;
	bool tell;

	while (!control_posts_put(ring, NULL, 0, &p, &tell))
		assert_true(++n < 100);
	assert_int_equal(n, CONTROL_POSTS_BYTES / (8 + 16 + 1000));
	assert_int_equal(control_posts_put(ring, NULL, 0, &p, &tell), -ENOBUFS);
	assert_int_equal(take(&p), 0);
	assert_int_equal(control_posts_put(ring, NULL, 0, &p, &tell), 0);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(take(&p), 0);
		assert_int_equal(p.header.bytes, 1000);
	}
	assert_int_equal(take(&p), -EAGAIN);
}

CASE_WITH(who_sleeps_is_told_once, setup, teardown)
{
	struct control_packet p;
	bool tell;

	make(&p, 1);
	assert_int_equal(control_posts_put(ring, NULL, 0, &p, &tell), 0);
	assert_true(tell); /* it sleeps from the beginning */
	assert_int_equal(control_posts_put(ring, NULL, 0, &p, &tell), 0);
	assert_false(tell);
	assert_false(control_posts_sleep(&reader)); /* there is more */
	assert_int_equal(control_posts_put(ring, NULL, 0, &p, &tell), 0);
	assert_false(tell);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(take(&p), 0);
	assert_true(control_posts_sleep(&reader));
	assert_int_equal(control_posts_put(ring, NULL, 0, &p, &tell), 0);
	assert_true(tell);
}

static uint64_t seed = 1;

static uint32_t random_number(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 32);
}

/* Whatever stands there: only what is whole comes out, and nothing behind the ring is read. */
CASE_WITH(nonsense_is_refused, setup, teardown)
{
	unsigned refused = 0;

	for (unsigned i = 0; i < 20000; i++) {
		uint32_t *word = (uint32_t *)ring->data, head = random_number() % 3;
		struct control_packet p;
		int ret = 0;

		for (unsigned w = 0; w < CONTROL_POSTS_BYTES / 4; w += 1 + random_number() % 64)
			word[w] = random_number() % 2 ? random_number() % 64 : random_number();
		head = head == 0   ? reader.tail + random_number() % CONTROL_POSTS_BYTES
		       : head == 1 ? reader.tail + CONTROL_POSTS_BYTES
		                   : random_number();
		atomic_store(&ring->head, head);
		while (!ret)
			ret = take(&p);
		assert_true(ret == -EPROTO || ret == -EAGAIN);
		refused += ret == -EPROTO;
		if (ret == -EPROTO) {
			teardown(state);
			assert_int_equal(setup(state), 0);
		}
	}
	assert_true(refused > 1000);
}

CASE_WITH(what_is_no_ring_is_not_mapped, setup, teardown)
{
	int fd = memfd_create("small", MFD_CLOEXEC);
	struct control_posts *none = NULL;

	assert_int_equal(control_posts_map(&none, fd), -EPROTO);
	close(fd);
	assert_int_equal(control_posts_map(&none, -1), -EBADF);
	assert_null(none);
	control_posts_unmap(none);
}

/* ---- two threads ---- */

#define MANY 200000

static int told[2];

static void *post_many(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < MANY;) {
		struct control_packet p;
		bool tell = false;

		make(&p, i);
		if (!control_posts_put(ring, NULL, 0, &p, &tell))
			i++;
		if (tell && write(told[1], "", 1) != 1)
			return "write";
	}
	return NULL;
}

CASE_WITH(a_reader_that_sleeps_misses_nothing, setup, teardown)
{
	struct pollfd readable = { .events = POLLIN };
	struct control_packet p;
	pthread_t thread;
	uint32_t got = 0;
	void *failed;

	assert_int_equal(pipe(told), 0);
	assert_int_equal(pthread_create(&thread, NULL, post_many, NULL), 0);
	readable.fd = told[0];
	while (got < MANY) {
		char byte;

		while (!take(&p))
			expect(&p, got++);
		if (!control_posts_sleep(&reader) || got == MANY)
			continue;
		assert_int_equal(poll(&readable, 1, 60000), 1);
		assert_int_equal(read(told[0], &byte, 1), 1);
	}
	pthread_join(thread, &failed);
	assert_null(failed);
	close(told[0]);
	close(told[1]);
}
