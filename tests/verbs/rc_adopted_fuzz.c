/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random steps of a program that registers memory (src/client/hca/memory/adopt.h), each byte of
 * which is known: memory of malloc(3), mmap(2) and System V segments comes, grows, moves and goes;
 * parts of it are registered, overlapping ones and freed ones too, and a peer writes and reads
 * there; threads come and go, io_uring pins buffers, children are forked and look at all of it.
 *
 * A process that forks adopts no more, so many processes run one after the other, as long as
 * UMBEL_FUZZ_SECONDS says (3 if it says nothing). With a seed as the only argument: that one.
 */
#include "adopted_lab.h"
#include "uring_lab.h"

#include <malloc.h>
#include <spawn.h>
#include <sys/shm.h>

#define BUFFERS 12
#define REGIONS 24
#define STEPS   400
#define MOST    (200u << 10) /* bytes of a buffer */

enum kind { MALLOCED, MAPPED, SEGMENT, N_KINDS };

static struct buffer {
	char *at; /* NULL: there is none */
	size_t bytes;
	enum kind kind;
	unsigned seed; /* of the pattern that it holds */
} buffers[BUFFERS];

static struct region {
	struct ibv_mr *mr;     /* NULL: there is none */
	struct buffer *buffer; /* NULL: its memory was freed */
	size_t at, bytes;
} regions[REGIONS];

static uint64_t random_state;
static struct lab_peer **peer;
static struct lab_uring ring;
static struct buffer *pinned; /* by the ring; or NULL: there is none */
static struct lab_sleeper sleeper;
static bool has_thread;
static bool was_disturbed; /* there was a thread, or a ring */
static bool was_pinned;    /* there was a ring */

static unsigned pick(unsigned n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned)(random_state >> 16) % n;
}

static void fill(struct buffer *b)
{
	b->seed = pick(1u << 16);
	for (size_t i = 0; i < b->bytes; i++)
		b->at[i] = (char)lab_pattern(b->seed, (unsigned)i);
}

/* Whether the first @bytes of the buffer are right. */
static bool is_right(const struct buffer *b, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if ((uint8_t)b->at[i] != lab_pattern(b->seed, (unsigned)i))
			return false;
	return true;
}

static void expect_right(const struct buffer *b, size_t bytes)
{
	assert_true(is_right(b, bytes));
}

static unsigned regions_of(const struct buffer *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < REGIONS; i++)
		n += regions[i].mr && regions[i].buffer == b;
	return n;
}

/* ---- buffers ---- */

static void make_buffer(struct buffer *b)
{
	int id;

	b->bytes = 1 + pick(pick(3) ? 20000 : MOST);
	b->kind = (enum kind)pick(N_KINDS);
	if (b->kind == MALLOCED) {
		b->at = malloc(b->bytes);
	} else if (b->kind == MAPPED) {
		b->at = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		             -1, 0);
	} else {
		id = shmget(IPC_PRIVATE, b->bytes, IPC_CREAT | 0600);
		b->at = shmat(id, NULL, 0);
		shmctl(id, IPC_RMID, NULL);
	}
	assert_non_null(b->at);
	assert_ptr_not_equal(b->at, MAP_FAILED);
	fill(b);
}

static void free_buffer(struct buffer *b)
{
	if (pinned == b)
		return;
	expect_right(b, b->bytes);
	if (b->kind == MALLOCED)
		free(b->at);
	else if (b->kind == MAPPED)
		munmap(b->at, b->bytes);
	else
		shmdt(b->at);
	b->at = NULL;
	for (unsigned i = 0; i < REGIONS; i++)
		if (regions[i].buffer == b)
			regions[i].buffer = NULL; /* the region may stay */
	if (!pick(4))
		malloc_trim(0);
}

static void resize_buffer(struct buffer *b)
{
	size_t bytes = 1 + pick(MOST), kept = bytes < b->bytes ? bytes : b->bytes;
	char *moved;

	if (regions_of(b) || pinned == b || b->kind == SEGMENT)
		return;
	moved = b->kind == MALLOCED ? realloc(b->at, bytes)
	                            : mremap(b->at, b->bytes, bytes, MREMAP_MAYMOVE);
	/* what was given back beside another thread, or waits for that, is a mapping by itself */
	if (moved == MAP_FAILED && errno == EFAULT && was_disturbed)
		return;
	assert_ptr_not_equal(moved, MAP_FAILED);
	b->at = moved;
	expect_right(b, kept);
	b->bytes = bytes;
	fill(b);
}

static unsigned pages_of(const struct buffer *b)
{
	return (unsigned)((b->bytes + LAB_ADOPTED_PAGE - 1) / LAB_ADOPTED_PAGE);
}

static void empty_buffer(struct buffer *b)
{
	if (regions_of(b) || pinned == b || b->kind != MAPPED)
		return;
	if (lab_adopted_pages(b->at, pages_of(b))) { /* it waits until no page may be pinned */
		assert_true(was_pinned);
		return;
	}
	assert_int_equal(madvise(b->at, b->bytes, MADV_DONTNEED), 0);
	for (size_t i = 0; i < b->bytes; i++)
		assert_int_equal(b->at[i], 0);
	fill(b);
}

/* ---- regions ---- */

static void make_region(struct buffer *b)
{
	struct region *r = regions;

	while (r < regions + REGIONS && r->mr)
		r++;
	if (r == regions + REGIONS)
		return;
	r->buffer = b;
	r->at = pick(3) ? 0 : pick((unsigned)b->bytes);
	r->bytes = pick(3) ? b->bytes - r->at : 1 + pick((unsigned)(b->bytes - r->at));
	assert_non_null(
	        r->mr = ibv_reg_mr(peer[0]->here->pd, b->at + r->at, r->bytes, LAB_ALL_ACCESS));
}

static void end_region(struct region *r)
{
	if (r->mr)
		lab_adopted_deregister(r->mr);
	r->mr = NULL;
}

/* The peer writes to the region, or reads it. */
static void transfer(struct region *r)
{
	size_t at, bytes;

	if (!r->mr || !r->buffer)
		return;
	at = pick((unsigned)r->bytes);
	bytes = 1 + pick(40000);
	bytes = bytes < r->bytes - at ? bytes : r->bytes - at;
	peer[0]->address.rkey = r->mr->rkey;
	peer[0]->address.addr = (uintptr_t)r->mr->addr;
	if (pick(2)) {
		char *got = malloc(bytes);

		lab_adopted_read(peer, at, (uint32_t)bytes);
		lab_peer_get(peer[1], 0, got, bytes);
		assert_memory_equal(got, r->buffer->at + r->at + at, bytes);
		free(got);
		return;
	}
	lab_adopted_write(peer, at, (uint32_t)bytes, 7);
	for (size_t i = 0; i < bytes; i++) {
		char *byte = r->buffer->at + r->at + at + i;

		assert_int_equal((uint8_t)*byte, lab_pattern(7, (unsigned)i));
		*byte = (char)lab_pattern(r->buffer->seed, (unsigned)(r->at + at + i));
	}
}

/* ---- threads, pins, children ---- */

static void start_or_end_thread(void)
{
	if (has_thread) {
		lab_sleeper_end(&sleeper);
	} else {
		lab_sleeper_begin(&sleeper);
		was_disturbed = true;
	}
	has_thread = !has_thread;
}

static void pin_or_unpin(struct buffer *b)
{
	if (!lab_uring_takes_parts_of_files())
		return;
	if (!pinned) {
		lab_uring_open(&ring, b->at, b->bytes);
		ring.n_threads = UINT_MAX; /* threads may come meanwhile */
		pinned = b;
		was_disturbed = was_pinned = true;
		return;
	}
	lab_uring_read(&ring, pinned->at, pinned->bytes, pinned->seed + 1);
	pinned->seed++;
	expect_right(pinned, pinned->bytes);
	lab_uring_close(&ring);
	pinned = NULL;
}

/* The child sees what its parent has, and what it writes is its own. */
static void fork_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		for (unsigned i = 0; i < BUFFERS; i++) {
			struct buffer *b = &buffers[i];

			if (b->at && !is_right(b, b->bytes))
				_exit(1);
			if (b->at && b->kind != SEGMENT)
				memset(b->at, 0, b->bytes);
		}
		_exit(0);
	}
	harness_expect_success(pid);
	for (unsigned i = 0; i < BUFFERS; i++)
		if (buffers[i].at)
			expect_right(&buffers[i], buffers[i].bytes);
}

/* ---- steps ---- */

static void step(struct buffer *b, struct region *r)
{
	unsigned n = pick(64);

	if (!b->at)
		make_buffer(b);
	else if (n < 20)
		make_region(b);
	else if (n < 30)
		end_region(r);
	else if (n < 46)
		transfer(r);
	else if (n < 50)
		resize_buffer(b);
	else if (n < 54)
		free_buffer(b);
	else if (n < 57)
		empty_buffer(b);
	else if (n < 59)
		pin_or_unpin(b);
	else if (n < 60 && !pick(4))
		fork_child();
	else if (n < 61)
		start_or_end_thread();
	else
		expect_right(b, b->bytes);
}

static void all_bytes_are_where_they_belong(void **state)
{
	(void)state;
	peer = lab_adopted_begin();
	for (unsigned i = 0; i < STEPS; i++)
		step(&buffers[pick(BUFFERS)], &regions[pick(REGIONS)]);
	if (pinned)
		pin_or_unpin(pinned);
	if (has_thread)
		start_or_end_thread();
	for (unsigned i = 0; i < REGIONS; i++)
		end_region(&regions[i]);
	for (unsigned i = 0; i < BUFFERS; i++)
		if (buffers[i].at)
			lab_adopted_expect(buffers[i].at, 1, 0);
	for (unsigned i = 0; i < BUFFERS; i++)
		if (buffers[i].at)
			free_buffer(&buffers[i]);
}

static int run_one(const char *seed)
{
	const struct CMUnitTest tests[] = { LAB_TEST(all_bytes_are_where_they_belong) };

	random_state = strtoull(seed, NULL, 10) * 0x9E3779B97F4A7C15ull + 1;
	lab_peers_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Runs this program with that seed. */
static int run(char *program, uint64_t seed)
{
	char text[24], *argv[] = { program, text, NULL };
	int status;
	pid_t pid;

	snprintf(text, sizeof(text), "%llu", (unsigned long long)seed);
	if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) ||
	    waitpid(pid, &status, 0) != pid)
		return 1;
	if (status)
		printf("failed: %s %s\n", program, text);
	return status != 0;
}

int main(int argc, char *argv[])
{
	const char *seconds = getenv("UMBEL_FUZZ_SECONDS");
	time_t end = time(NULL) + (seconds ? atol(seconds) : 3);
	uint64_t seed = (uint64_t)time(NULL) << 16;
	int failed = 0;

	if (argc == 2)
		return run_one(argv[1]);
	do
		failed = run(argv[0], ++seed);
	while (!failed && time(NULL) < end);
	return failed;
}
