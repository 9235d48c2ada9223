/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that is adopted beside other threads (src/client/hca/process/hold.h): writes of these
 * threads, or of the kernel for them, are not lost while the memory moves. Where this process may
 * not hold writes, nothing is adopted, and all else is the same.
 */
#include "adopted_lab.h"

#include <linux/futex.h>

#include "base/pause.h"

#define TURNS 40u /* regions, one after the other: with 64 nothing is adopted any more */
#define WORDS (LAB_ADOPTED_PAGE / sizeof(uint64_t))
#define MANY  (4u << 20) /* bytes: moving them takes a while */

static char *much_memory(void)
{
	char *m = mmap(NULL, MANY, PROT_READ | PROT_WRITE,
	               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	assert_ptr_not_equal(m, MAP_FAILED);
	return m;
}

/* ---- who writes there ---- */

struct writer {
	char *memory;
	size_t bytes;
	unsigned number;
	int pipe[2]; /* of a writer that has the kernel write */
	_Atomic bool is_over;
	_Atomic uint64_t rounds;
	const char *wrong;
	pthread_t thread;
};

static _Atomic uint64_t *word_of(const struct writer *w, size_t page)
{
	return (_Atomic uint64_t *)(uintptr_t)(w->memory + page * LAB_ADOPTED_PAGE) + w->number;
}

/* A word in each page, round by round: nobody else writes there. */
static void *store(void *arg)
{
	struct writer *w = arg;

	for (uint64_t round = 1; !w->is_over; w->rounds = round++)
		for (size_t i = 0; i < w->bytes / LAB_ADOPTED_PAGE; i++) {
			if (*word_of(w, i) != round - 1)
				w->wrong = "what a thread has stored is lost";
			*word_of(w, i) = round;
		}
	return NULL;
}

/* The same, but the kernel writes the words. */
static void *receive(void *arg)
{
	struct writer *w = arg;

	for (uint64_t round = 1; !w->is_over; w->rounds = round++)
		for (size_t i = 0; i < w->bytes / LAB_ADOPTED_PAGE; i++) {
			void *at = (void *)(uintptr_t)word_of(w, i);

			if (*word_of(w, i) != round - 1)
				w->wrong = "what the kernel has written is lost";
			if (write(w->pipe[1], &round, sizeof(round)) != sizeof(round) ||
			    read(w->pipe[0], at, sizeof(round)) != sizeof(round))
				w->wrong = "a system call fails";
		}
	return NULL;
}

static void begin(struct writer *w, char *memory, size_t bytes, unsigned number,
                  void *(*run)(void *))
{
	*w = (struct writer){ .memory = memory, .bytes = bytes, .number = number };
	assert_int_equal(pipe(w->pipe), 0);
	assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
}

static void goes_on(const struct writer *w)
{
	const uint64_t rounds = w->rounds;
	struct base_pause pause = { 0 };

	while (w->rounds < rounds + 2)
		base_pause(&pause);
}

static void end(struct writer *w)
{
	w->is_over = true;
	pthread_join(w->thread, NULL);
	close(w->pipe[0]);
	close(w->pipe[1]);
	if (w->wrong)
		fail_msg("%s", w->wrong);
	for (size_t i = 0; i < w->bytes / LAB_ADOPTED_PAGE; i++)
		assert_int_equal(*word_of(w, i), w->rounds);
}

/* ---- */

/* Each time other memory: what was given back beside threads is not adopted again. */
LAB_CASE(what_threads_write_meanwhile_is_not_lost)
{
	static struct writer a, b; /* they go on if this fails */
	struct ibv_mr *mr;
	struct lab_peer **p = lab_adopted_begin();

	for (unsigned turn = 0; turn < TURNS; turn++) {
		char *m = much_memory(), *last = m + MANY - LAB_ADOPTED_PAGE;

		begin(&a, m, MANY, 1, store);
		begin(&b, m, MANY, 2, receive);
		goes_on(&a);
		goes_on(&b);
		mr = lab_adopted_region(p[0], m, MANY);
		lab_adopted_beside_threads(m, MANY / LAB_ADOPTED_PAGE);
		/* word 0, where no thread writes */
		lab_adopted_write(p, MANY - LAB_ADOPTED_PAGE, 8, turn);
		lab_adopted_holds(last, 0, 8, turn);
		goes_on(&a);
		goes_on(&b);
		lab_adopted_deregister(mr);
		lab_adopted_expect(m, MANY / LAB_ADOPTED_PAGE, 0);
		lab_adopted_holds(last, 0, 8, turn);
		goes_on(&a);
		end(&a);
		end(&b);
		munmap(m, MANY);
	}
}

/* The writer's children look at what the writer has written. */
static void *fork_on(void *arg)
{
	struct writer *w = arg;

	for (uint64_t round = 1; !w->is_over; w->rounds = round++) {
		pid_t pid;
		int status;

		*word_of(w, 0) = round;
		pid = fork();
		if (!pid)
			_exit(*word_of(w, 0) != round);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			w->wrong = "a child has not what its parent had";
		*word_of(w, 0) = 0;
	}
	return NULL;
}

/* ---- who waits there ---- */

struct waiter {
	_Atomic uint32_t *futex;
	_Atomic pid_t tid;
	int flags;
};

static void *await(void *arg)
{
	struct waiter *w = arg;

	w->tid = (pid_t)syscall(SYS_gettid);
	while (!*w->futex)
		syscall(SYS_futex, w->futex, FUTEX_WAIT | w->flags, 0, NULL, NULL, 0);
	return NULL;
}

static void until_it_sleeps(pid_t tid)
{
	char path[64], call[64] = "";

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	while (strtol(call, NULL, 10) != SYS_futex) {
		FILE *f = fopen(path, "r");

		assert_non_null(f);
		if (!fgets(call, sizeof(call), f))
			*call = '\0';
		fclose(f);
	}
}

/* A futex that processes may share is one of its page. */
LAB_CASE(who_waits_there_is_woken)
{
	char *m = lab_adopted_memory();
	struct waiter w = { .futex = (_Atomic uint32_t *)(uintptr_t)m };
	struct ibv_mr *mr;
	pthread_t t;
	struct lab_peer **p = lab_adopted_begin();

	for (unsigned turn = 0; turn < 2; turn++) {
		struct base_pause pause = { 0 };

		*w.futex = 0;
		w.tid = 0;
		w.flags = turn ? FUTEX_PRIVATE_FLAG : 0;
		assert_int_equal(pthread_create(&t, NULL, await, &w), 0);
		while (!w.tid)
			base_pause(&pause);
		until_it_sleeps(w.tid);
		mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
		*w.futex = 1;
		assert_int_equal(
		        syscall(SYS_futex, w.futex, FUTEX_WAKE | w.flags, 1, NULL, NULL, 0), 1);
		pthread_join(t, NULL);
		lab_adopted_deregister(mr);
	}
	munmap(m, LAB_ADOPTED_BYTES);
}

/* ---- what is not to be moved ---- */

/* A thread may have it read to memory past the kernel's buffers. */
LAB_CASE(beside_a_file_that_is_read_directly_nothing_moves)
{
	char *m = lab_adopted_memory();
	struct ibv_mr *mr;
	struct lab_sleeper s;
	int fd;
	struct lab_peer **p = lab_adopted_begin();

	lab_sleeper_begin(&s);
	fd = open("/proc/self/exe", O_RDONLY | O_DIRECT);
	assert_true(fd >= 0);
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	lab_adopted_deregister(mr);
	close(fd);
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_beside_threads(m, LAB_ADOPTED_PAGES);
	lab_adopted_deregister(mr);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 1);
	lab_adopted_is_emptied(m);
	lab_sleeper_end(&s);
	munmap(m, LAB_ADOPTED_BYTES);
}

/* The last one: then nothing is adopted. */
LAB_CASE(a_thread_may_fork_meanwhile)
{
	char *m = lab_adopted_memory();
	struct lab_peer **p;
	static struct writer a, b; /* they go on if this fails */
	struct base_pause pause = { 0 };
	struct ibv_mr *mr;

#ifdef __SANITIZE_THREAD__
	return; /* a child begins a thread of the sanitizer's */
#endif
	p = lab_adopted_begin();
	memset(m, 0, LAB_ADOPTED_BYTES);
	begin(&a, m, LAB_ADOPTED_BYTES, 1, store);
	begin(&b, m, LAB_ADOPTED_BYTES, 2, fork_on);
	for (unsigned turn = 0; turn < TURNS; turn++) {
		mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
		lab_adopted_write(p, 0, 8, turn);
		lab_adopted_holds(m, 0, 8, turn);
		lab_adopted_deregister(mr);
	}
	end(&a);
	while (b.rounds < TURNS)
		base_pause(&pause);
	b.is_over = true;
	pthread_join(b.thread, NULL);
	if (b.wrong)
		fail_msg("%s", b.wrong);
	munmap(m, LAB_ADOPTED_BYTES);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
