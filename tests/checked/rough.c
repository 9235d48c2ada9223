/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that are right, and are rough with a library that watches them: handlers of signals that
 * exit and fork in the middle of its calls, threads that are cancelled, an allocator with a lock of
 * its own, a constructor, memory that cannot be read, standard error that is another file. For
 * rough.sh.
 *
 * checked.rough NAME [WORD]
 */
#include "verbs/lab.h"
#include "deadline.h"

#define PAGE   4096ul
#define PAGES  (8 * PAGE)
#define POINTS 24 /* of a call, at which it allocates memory: it has fewer */

/* ---- an allocator that all libraries of the process call ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);

/* Of this thread: the allocation after so many calls the hook. */
static __thread unsigned armed;
static void (*hook)(void);

static void allocate(void)
{
	if (armed && !--armed)
		hook();
}

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
	allocate();
	return __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t bytes)
{
	allocate();
	return __libc_calloc(n, bytes);
}

/* ---- pieces ---- */

static char *map(void)
{
	char *p = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);

	assert_true(p != MAP_FAILED);
	memset(p, 1, PAGES);
	return p;
}

static int try_send(struct lab_end *e, struct ibv_ah *ah)
{
	struct lab_request r;

	lab_request(e, &r, ah, e->qp->qp_num, NULL, 64);
	return lab_try_post(e, 0) || ibv_post_send(e->qp, &r.wr, &(struct ibv_send_wr *){ 0 });
}

/* A message to itself has come, and nothing else. */
static void expect_sent(struct lab_end *e)
{
	lab_complete(e->send_cq, IBV_WC_SUCCESS);
	lab_complete(e->cq, IBV_WC_SUCCESS);
	lab_quiet(e->cq);
}

/* ---- handlers of signals, in the middle of a call ---- */

static void interrupt(void)
{
	raise(SIGUSR1);
}

static void exit_here(int sig)
{
	(void)sig;
	exit(7);
}

static void send_and_exit(unsigned point)
{
	struct lab_end *e;
	struct ibv_ah *ah;

	alarm(20);
	signal(SIGUSR1, exit_here);
	e = lab_end(1);
	ah = lab_ah_to(e, e);
	armed = point;
	try_send(e, ah);
	_exit(3);
}

static void exit_in_a_handler(const char *arg)
{
	unsigned exits = 0;
	int status = 0;

	(void)arg;
	hook = interrupt;
	for (unsigned i = 1; i < POINTS && WEXITSTATUS(status) != 3; i++) {
		pid_t child = fork();

		if (!child)
			send_and_exit(i);
		assert_int_equal(waitpid(child, &status, 0), child);
		if (!WIFEXITED(status))
			fail_msg("exit() in allocation %u of a post: signal %d", i,
			         WTERMSIG(status));
		exits += WEXITSTATUS(status) == 7;
	}
	assert_int_equal(WEXITSTATUS(status), 3);
	assert_true(exits > 0);
}

static unsigned forks;

static void fork_here(int sig)
{
	int status;
	pid_t child = fork();

	(void)sig;
	if (!child)
		_exit(0);
	if (waitpid(child, &status, 0) != child || status)
		_exit(4);
	forks++;
}

static void fork_in_a_handler(const char *arg)
{
	struct lab_end *e;
	struct ibv_ah *ah;

	(void)arg;
	assert_int_equal(ibv_fork_init(), 0);
	hook = interrupt;
	signal(SIGUSR1, fork_here);
	e = lab_end(1);
	ah = lab_ah_to(e, e);
	for (unsigned i = 1; i < POINTS; i++) {
		armed = i;
		assert_int_equal(try_send(e, ah), 0);
		armed = 0;
		expect_sent(e);
	}
	assert_in_range(forks, 1, POINTS - 2);
}

/* ---- a thread that is cancelled ---- */

static atomic_bool has_returned;

/* Its calls are told of: files are written meanwhile. */
static void *post_while_cancelled(void *arg)
{
	struct lab_end *e = arg;
	char *p = map();
	struct ibv_mr *mr = lab_mr(e->pd, p, PAGES);

	pthread_cancel(pthread_self());
	lab_try_post(e, 0);
	lab_try_post(e, 0);
	madvise(p, PAGES, MADV_DONTNEED);
	(void)mr;
	has_returned = true;
	pthread_testcancel();
	return NULL;
}

static void cancelled(const char *arg)
{
	struct lab_end *e = lab_end(1);
	pthread_t thread;
	void *result;

	(void)arg;
	assert_int_equal(pthread_create(&thread, NULL, post_while_cancelled, e), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_true(has_returned && result == PTHREAD_CANCELED);
	assert_int_equal(lab_try_post(e, 1), 0);
	lab_to(e->qp, IBV_QPS_RESET);
}

/* ---- an allocator with a lock of its own ---- */

static pthread_mutex_t allocator = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool waits;

static void take_and_release(void)
{
	waits = true;
	pthread_mutex_lock(&allocator);
	pthread_mutex_unlock(&allocator);
}

struct post {
	struct lab_end *e;
	struct ibv_ah *ah;
	unsigned point;
	atomic_bool is_over;
};

static void *post_it(void *arg)
{
	struct post *p = arg;

	armed = p->point;
	assert_int_equal(try_send(p->e, p->ah), 0);
	armed = 0;
	p->is_over = true;
	return NULL;
}

static char *pages;

static void unmap_pages(struct lab_end *e)
{
	(void)e;
	munmap(pages, PAGE);
	assert_true(mmap(pages, PAGE, PROT_READ | PROT_WRITE,
	                 MAP_ANONYMOUS | MAP_PRIVATE | MAP_FIXED, -1, 0) == pages);
}

static void register_pages(struct lab_end *e)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, pages, PAGE, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void free_registered(struct lab_end *e)
{
	char *block = __libc_malloc(3 * PAGE);
	struct ibv_mr *mr = ibv_reg_mr(e->pd, block, 3 * PAGE, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	free(block);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* While another thread is in a post that waits for the allocator's lock. Whether that has come so
 * far. */
static bool call_with_lock(struct post *p, void (*call)(struct lab_end *))
{
	struct deadline d = { 0 };
	pthread_t thread;

	waits = p->is_over = false;
	pthread_mutex_lock(&allocator);
	assert_int_equal(pthread_create(&thread, NULL, post_it, p), 0);
	while (!waits && !p->is_over)
		DEADLINE_LOOK(&d, "a post that allocates, or its end");
	call(p->e);
	pthread_mutex_unlock(&allocator);
	assert_int_equal(pthread_join(thread, NULL), 0);
	expect_sent(p->e);
	return waits;
}

static void locked_allocator(const char *arg)
{
	static void (*const calls[])(struct lab_end *) = { unmap_pages, register_pages,
		                                           free_registered };
	struct lab_end *e = lab_end(1);
	struct post p = { .e = e, .ah = lab_ah_to(e, e) };

	(void)arg;
	pages = map();
	lab_mr(e->pd, pages, PAGES);
	hook = take_and_release;
	for (unsigned i = 0; i < LAB_ARRAY(calls); i++) {
		p.point = 0;
		do
			p.point++;
		while (call_with_lock(&p, calls[i]));
		assert_true(p.point > 1);
	}
}

/* ---- a library whose constructor posts ---- */

static struct lab_end *poster;
static atomic_bool has_reported;
static pthread_t reporting;

/* Its mistakes are reported with the names of libraries, for which the checker may ask the dynamic
 * linker.
 */
static void *post_wrongly(void *arg)
{
	lab_try_post(arg, 0);
	lab_try_post(arg, 0);
	has_reported = true;
	return NULL;
}

void constructed(void);

__attribute__((visibility("default"))) void constructed(void)
{
	assert_int_equal(pthread_create(&reporting, NULL, post_wrongly, poster), 0);
	/* if it waits for us by now, it waits for ever */
	for (unsigned i = 0; i < 500 && !has_reported; i++)
		usleep(1000);
	assert_int_equal(lab_try_post(poster, 1), 0);
}

static void constructor(const char *library)
{
	poster = lab_end(1);
	assert_non_null(dlopen(library, RTLD_NOW));
	assert_int_equal(pthread_join(reporting, NULL), 0);
	lab_to(poster->qp, IBV_QPS_RESET);
}

/* ---- memory that cannot be read while a request has it ---- */

/* As far as the card is concerned; a buffer may end with the last page that can be read. */
static void protected(const char *arg)
{
	const uint32_t lengths[] = { 1, 7, 64, 1024, 3000 };
	struct lab_end *e = lab_end(1);
	struct ibv_ah *ah = lab_ah_to(e, e);
	char *p = map();
	struct ibv_mr *mr = lab_mr(e->pd, p, PAGES);

	(void)arg;
	assert_int_equal(mprotect(p + 4 * PAGE, PAGE, PROT_NONE), 0);
	for (unsigned i = 0; i < LAB_ARRAY(lengths); i++) {
		struct lab_request r;

		lab_request(e, &r, ah, e->qp->qp_num, NULL, lengths[i]);
		r.sge = (struct ibv_sge){ (uintptr_t)p + 4 * PAGE - lengths[i], lengths[i],
			                  mr->lkey };
		assert_int_equal(lab_try_post(e, 0), 0);
		errno = 77;
		assert_int_equal(ibv_post_send(e->qp, &r.wr, &(struct ibv_send_wr *){ 0 }), 0);
		assert_int_equal(errno, 77);
		assert_int_equal(mprotect(p + 3 * PAGE, PAGE, PROT_NONE), 0);
		expect_sent(e);
		assert_int_equal(mprotect(p + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	}
}

/* ---- another file where standard error was ---- */

static void closed(const char *path)
{
	struct lab_end *e = lab_end(1);

	close(STDERR_FILENO);
	assert_int_equal(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDERR_FILENO);
	assert_int_equal(write(STDERR_FILENO, "data\n", 5), 5);
	lab_try_post(e, 0);
	lab_try_post(e, 0);
	lab_to(e->qp, IBV_QPS_RESET);
}

static const struct {
	const char *name;
	void (*run)(const char *arg);
} programs[] = {
	{ "exit-in-a-handler", exit_in_a_handler },
	{ "fork-in-a-handler", fork_in_a_handler },
	{ "cancelled", cancelled },
	{ "locked-allocator", locked_allocator },
	{ "constructor", constructor },
	{ "protected", protected },
	{ "closed", closed },
};

int main(int argc, char **argv)
{
	for (unsigned i = 0; i < LAB_ARRAY(programs); i++) {
		if (argc < 2 || strcmp(argv[1], programs[i].name))
			continue;
		programs[i].run(argc > 2 ? argv[2] : NULL);
		lab_clean_up(NULL);
		return 0;
	}
	return 2;
}
