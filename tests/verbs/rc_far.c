/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lists of requests for memory to which only system calls lead, as that of a program with threads:
 * one call carries out many WRITEs or READs, and nobody can tell but by the time it takes. The peer
 * that posts is the "requester", the other one the "owner".
 */
#include "peer_lab.h"

#include "base/pause.h"

#define PAGE  4096u
#define MANY  32u
#define BYTES (1u << 20)

/* ---- what the library asks the kernel for ---- */

static struct calls {
	unsigned n;
	unsigned long pieces; /* of the last one, in the owner's memory, but for the guard */
} calls;

#define GUARD 1

static ssize_t count_call(long number, pid_t pid, const struct iovec *here, unsigned long n_here,
                          const struct iovec *there, unsigned long n_there)
{
	calls.n++;
	calls.pieces = n_there - GUARD;
	return syscall(number, pid, here, n_here, there, n_there, 0);
}

__attribute__((visibility("default"))) ssize_t
process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n_here,
                  const struct iovec *there, unsigned long n_there, unsigned long flags)
{
	(void)flags;
	return count_call(SYS_process_vm_writev, pid, here, n_here, there, n_there);
}

__attribute__((visibility("default"))) ssize_t
process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n_here,
                 const struct iovec *there, unsigned long n_there, unsigned long flags)
{
	(void)flags;
	return count_call(SYS_process_vm_readv, pid, here, n_here, there, n_there);
}

/* ---- peers ---- */

static const struct lab_peer_options options = { .far = true,
	                                         .bytes = BYTES,
	                                         .cap = { .max_send_wr = 256 },
	                                         .timeout = 8,
	                                         .retry_cnt = 1,
	                                         .rnr_retry = 7 };

struct pair {
	struct lab_peer *requester, *owner;
};

/* The requester is in this process, the owner elsewhere; or the other way round. Each has a pattern
 * of its own. */
static struct pair make_pair(bool owner_is_here)
{
	struct pair pair;
	struct lab_peer **p = lab_peers(&options, (void *const[]){ (void *)(uintptr_t)lab_open });

	pair.requester = p[owner_is_here];
	pair.owner = p[!owner_is_here];
	lab_peer_fill(pair.requester, 0, BYTES, 1);
	lab_peer_fill(pair.owner, 0, BYTES, 2);
	return pair;
}

static struct lab_work work_of(const struct pair *p, enum ibv_wr_opcode opcode, uint64_t at,
                               uint64_t remote, uint32_t length)
{
	return (struct lab_work){ .opcode = opcode,
		                  .n = 1,
		                  .piece = { { at, length, 0 } },
		                  .to = p->owner,
		                  .remote = remote };
}

/* Request i of a list: page i of one to page 2 i of the other, less a few bytes. */
static struct lab_work nth_of(const struct pair *p, enum ibv_wr_opcode opcode, unsigned i)
{
	struct lab_work w = work_of(p, opcode, (uint64_t)i * PAGE, 2ull * i * PAGE, PAGE - i);

	w.wr_id = 100 + i;
	return w;
}

static void fill_list(const struct pair *p, enum ibv_wr_opcode opcode, struct lab_work list[MANY])
{
	for (unsigned i = 0; i < MANY; i++)
		list[i] = nth_of(p, opcode, i);
}

/* Requests from @from to before @to have been carried out, or not. The memory that they write to
 * had pattern 1 or 2, as make_pair() says. */
static void expect_done(const struct pair *p, enum ibv_wr_opcode opcode, unsigned from, unsigned to,
                        bool done)
{
	const bool is_read = opcode == IBV_WR_RDMA_READ;
	uint8_t data[PAGE];

	for (unsigned i = from; i < to; i++) {
		const uint64_t here = (uint64_t)i * PAGE, there = 2ull * i * PAGE;
		const uint64_t at = is_read ? here : there, source = is_read ? there : here;
		const unsigned mine = is_read ? 1 : 2;

		lab_peer_get(is_read ? p->requester : p->owner, at, data, PAGE);
		for (unsigned k = 0; k < PAGE; k++) {
			const bool copied = done && k < PAGE - i;

			assert_int_equal(data[k], copied ? lab_pattern(3 - mine, source + k)
			                                 : lab_pattern(mine, at + k));
		}
	}
}

static void expect_completions(const struct pair *p, unsigned from, unsigned to,
                               enum ibv_wc_status status)
{
	for (unsigned i = from; i < to; i++)
		assert_int_equal(lab_peer_sent(p->requester, status).wr_id, 100 + i);
}

/* The owner's memory is known to be such from then on. */
static void do_one(const struct pair *p)
{
	struct lab_work w = work_of(p, IBV_WR_RDMA_READ, BYTES - 1, BYTES - 1, 1);

	lab_peer_do(p->requester, &w, IBV_WC_SUCCESS);
	lab_peer_fill(p->requester, 0, BYTES, 1);
}

static const enum ibv_wr_opcode kinds[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

/* ---- one call ---- */

LAB_CASE(a_list_takes_one_system_call)
{
	struct pair p = make_pair(false);
	struct lab_work list[MANY];

	do_one(&p);
	for (unsigned i = 0; i < 4; i++) {
		const enum ibv_wr_opcode kind = kinds[i % 2];

		lab_peer_fill(p.requester, 0, BYTES, 1);
		lab_peer_fill(p.owner, 0, BYTES, 2);
		fill_list(&p, kind, list);
		list[0].by_wr = i >= 2;
		calls.n = 0;
		assert_int_equal(lab_peer_try_post_list(p.requester, list, MANY), 0);
		assert_int_equal(calls.n, 1);
		assert_int_equal(calls.pieces, MANY);
		expect_completions(&p, 0, MANY, IBV_WC_SUCCESS);
		expect_done(&p, kind, 0, MANY, true);
	}
}

/* Where the processor keeps the order of stores: see src/client/hca/transport/far.c. */
LAB_CASE(neighbours_are_one_piece)
{
#if defined(__x86_64__)
	struct pair p = make_pair(false);
	struct lab_work list[MANY];

	do_one(&p);
	for (unsigned i = 0; i < MANY; i++)
		list[i] = work_of(&p, IBV_WR_RDMA_WRITE, (uint64_t)i * PAGE, 100 + i * 64ull, 64);
	calls.n = 0;
	assert_int_equal(lab_peer_try_post_list(p.requester, list, MANY), 0);
	assert_int_equal(calls.n, 1);
	assert_int_equal(calls.pieces, 1);
	for (unsigned i = 0; i < MANY; i++)
		lab_peer_sent(p.requester, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < MANY; i++) {
		uint8_t data[64];

		lab_peer_get(p.owner, 100 + i * 64ull, data, sizeof(data));
		for (unsigned k = 0; k < sizeof(data); k++)
			assert_int_equal(data[k], lab_pattern(1, (uint64_t)i * PAGE + k));
	}
#else
#endif
}

/* ---- any list ---- */

static uint64_t random_state = 1;

static uint32_t any(uint32_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % below;
}

/* A request whose memory lies where that of earlier requests lies, or behind the last one's. */
static struct lab_work any_work(const struct pair *p, const struct lab_work *last)
{
	static const uint32_t sizes[] = { 1, 8, 64, 700, 4096, 9000, 150000 };
	const uint32_t length = 1 + any(sizes[any(LAB_ARRAY(sizes))]), cut = any(length);
	struct lab_work w = work_of(p, kinds[any(2)], any(3 * PAGE), any(3 * PAGE), length);

	if (last && last->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD && any(6)) {
		w.opcode = last->opcode;
		if (any(2) && last->remote + last->piece[0].length + length <= BYTES)
			w.remote = last->remote + last->piece[0].length;
	}
	if (any(3) == 0) {
		w.piece[0].length = cut; /* may be none */
		w.piece[1] = (struct lab_piece){ any(4 * PAGE), length - cut, 0 };
		w.n = 2;
	}
	if (w.opcode == IBV_WR_RDMA_WRITE && length <= 64 && any(2))
		w.flags = IBV_SEND_INLINE;
	if (any(40) == 0) {
		w = work_of(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8ull * any(100), 8ull * any(100), 8);
		w.compare_add = any(1000);
	}
	w.unsignalled = any(4) == 0;
	return w;
}

/* Does to @here and @there what the request does, one piece after the other. */
static void imitate(const struct lab_work *w, uint8_t *here, uint8_t *there)
{
	uint64_t remote = w->remote, old;

	if (w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		memcpy(&old, there + remote, sizeof(old));
		memcpy(here + w->piece[0].at, &old, sizeof(old));
		old += w->compare_add;
		memcpy(there + remote, &old, sizeof(old));
		return;
	}
	for (int i = 0; i < w->n; i++) {
		uint8_t *mine = here + w->piece[i].at;

		memcpy(w->opcode == IBV_WR_RDMA_READ ? mine : there + remote,
		       w->opcode == IBV_WR_RDMA_READ ? there + remote : mine, w->piece[i].length);
		remote += w->piece[i].length;
	}
}

static void expect_bytes(struct lab_peer *p, const uint8_t *expected)
{
	uint8_t *data = malloc(BYTES);

	assert_non_null(data);
	lab_peer_get(p, 0, data, BYTES);
	assert_memory_equal(data, expected, BYTES);
	free(data);
}

LAB_CASE(any_list_does_what_its_requests_do_one_by_one)
{
	struct pair p = make_pair(false);
	uint8_t *here = malloc(BYTES), *there = malloc(BYTES);
	struct lab_work list[200];

	assert_true(here && there);
	lab_peer_get(p.requester, 0, here, BYTES);
	lab_peer_get(p.owner, 0, there, BYTES);
	for (unsigned round = 0; round < 60; round++) {
		const unsigned n = 2 + any(LAB_ARRAY(list) - 2);

		for (unsigned i = 0; i < n; i++) {
			list[i] = any_work(&p, i ? &list[i - 1] : NULL);
			list[i].wr_id = i;
			list[i].unsignalled &= i + 1 < n;
			imitate(&list[i], here, there);
		}
		assert_int_equal(lab_peer_try_post_list(p.requester, list, n), 0);
		for (unsigned i = 0; i < n; i++)
			if (!list[i].unsignalled)
				assert_int_equal(lab_peer_sent(p.requester, IBV_WC_SUCCESS).wr_id,
				                 i);
		expect_bytes(p.requester, here);
		expect_bytes(p.owner, there);
	}
	free(here);
	free(there);
}

LAB_CASE(a_list_that_does_not_fit_is_posted_as_far_as_it_does)
{
	struct pair p = make_pair(false);
	struct lab_work list[300];
	struct ibv_wc wc;

	do_one(&p);
	for (unsigned i = 0; i < LAB_ARRAY(list); i++) {
		list[i] = work_of(&p, IBV_WR_RDMA_WRITE, i, 3ull * i, 1);
		list[i].wr_id = 100 + i;
	}
	assert_int_equal(lab_peer_try_post_list(p.requester, list, LAB_ARRAY(list)), ENOMEM);
	expect_completions(&p, 0, 256, IBV_WC_SUCCESS);
	assert_int_equal(lab_peer_try_sent(p.requester, &wc), 0);
	for (unsigned i = 0; i < LAB_ARRAY(list); i++) {
		uint8_t byte;

		lab_peer_get(p.owner, 3ull * i, &byte, 1);
		assert_int_equal(byte, i < 256 ? lab_pattern(1, i) : lab_pattern(2, 3ull * i));
	}
}

/* ---- a failure in the middle ---- */

static void spoil_nothing(struct lab_work *w)
{
	(void)w;
}

static void spoil_rkey(struct lab_work *w)
{
	w->rkey_xor = 1;
}

static void spoil_lkey(struct lab_work *w)
{
	w->piece[0].key_xor = 1;
}

static void spoil_address(struct lab_work *w)
{
	w->remote = BYTES - 10;
}

static void spoil_second_piece(struct lab_work *w)
{
	w->piece[1] = (struct lab_piece){ BYTES - 10, 100, 0 };
	w->n = 2;
}

static const struct {
	void (*spoil)(struct lab_work *w);
	enum ibv_wc_status status;
} wrongs[] = {
	{ spoil_nothing, IBV_WC_SUCCESS },           { spoil_rkey, IBV_WC_REM_ACCESS_ERR },
	{ spoil_lkey, IBV_WC_LOC_PROT_ERR },         { spoil_address, IBV_WC_REM_ACCESS_ERR },
	{ spoil_second_piece, IBV_WC_LOC_PROT_ERR },
};

static const unsigned places[] = { 0, 1, MANY / 2, MANY - 1 };

/* Request @at fails with @status, as those before it do not. */
static void post_and_fail(const struct pair *p, const struct lab_work list[MANY], unsigned at,
                          enum ibv_wc_status status)
{
	struct ibv_wc wc;

	assert_int_equal(lab_peer_try_post_list(p->requester, list, MANY), 0);
	expect_completions(p, 0, at, IBV_WC_SUCCESS);
	expect_completions(p, at, at + 1, status);
	expect_completions(p, at + 1, MANY, status ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
	assert_int_equal(lab_peer_try_sent(p->requester, &wc), 0);
	expect_done(p, list[0].opcode, 0, at, true);
	expect_done(p, list[0].opcode, at, MANY, !status);
}

LAB_CASE(a_wrong_request_fails_and_those_behind_it_do_nothing)
{
	for (unsigned i = 0; i < LAB_ARRAY(wrongs) * LAB_ARRAY(places) * 2; i++) {
		const unsigned at = places[i / 2 % LAB_ARRAY(places)];
		const unsigned wrong = i / 2 / LAB_ARRAY(places);
		struct pair p = make_pair(false);
		struct lab_work list[MANY];

		if (at)
			do_one(&p);
		fill_list(&p, kinds[i % 2], list);
		wrongs[wrong].spoil(&list[at]);
		post_and_fail(&p, list, at, wrongs[wrong].status);
		lab_clean_up(NULL);
	}
}

/* The owner, which is here, unmaps the page that request @at begins with, or all but that. */
LAB_CASE(memory_that_is_gone_fails_where_it_is)
{
	for (unsigned i = 0; i < LAB_ARRAY(places) * 2; i++) {
		const unsigned at = places[i / 2];
		struct pair p = make_pair(true);
		struct lab_work list[MANY];
		uint8_t byte;
		char *page;

		do_one(&p);
		fill_list(&p, kinds[i % 2], list);
		page = p.owner->here->memory + 2ull * at * PAGE;
		assert_int_equal(munmap(page, PAGE), 0);
		assert_int_equal(lab_peer_try_post_list(p.requester, list, MANY), 0);
		expect_completions(&p, 0, at, IBV_WC_SUCCESS);
		expect_completions(&p, at, at + 1, IBV_WC_REM_OP_ERR);
		expect_completions(&p, at + 1, MANY, IBV_WC_WR_FLUSH_ERR);
		expect_done(&p, kinds[i % 2], 0, at, true);
		expect_done(&p, kinds[i % 2], at + 1, MANY, false);
		assert_ptr_equal(mmap(page, PAGE, PROT_READ | PROT_WRITE,
		                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		                 page); /* the end of the test unmaps all of it */
		lab_peer_get(p.owner, 2ull * at * PAGE, &byte, 1);
		assert_int_equal(byte, 0);
		lab_clean_up(NULL);
	}
}

/* A request whose second page is gone: it fails as a whole, though its first page may be written.
 */
LAB_CASE(a_request_that_can_be_half_done_is_not_done)
{
	struct pair p = make_pair(true);
	struct lab_work list[4];
	char *page;

	do_one(&p);
	for (unsigned i = 0; i < 4; i++) {
		list[i] = work_of(&p, IBV_WR_RDMA_WRITE, 0, i * 16ull * PAGE, 3 * PAGE);
		list[i].wr_id = 100 + i;
	}
	page = p.owner->here->memory + 17ull * PAGE;
	page += PAGE - (uintptr_t)page % PAGE;
	assert_int_equal(munmap(page, PAGE), 0);
	assert_int_equal(lab_peer_try_post_list(p.requester, list, 4), 0);
	expect_completions(&p, 0, 1, IBV_WC_SUCCESS);
	expect_completions(&p, 1, 2, IBV_WC_REM_OP_ERR);
	expect_completions(&p, 2, 4, IBV_WC_WR_FLUSH_ERR);
	assert_ptr_equal(mmap(page, PAGE, PROT_READ | PROT_WRITE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
	                 page);
	for (unsigned i = 2; i < 4; i++) {
		uint8_t byte;

		lab_peer_get(p.owner, i * 16ull * PAGE, &byte, 1);
		assert_int_equal(byte, lab_pattern(2, i * 16ull * PAGE));
	}
}

/* Memory that the program has protected is there for an HCA, which has pinned it. */
LAB_CASE(protected_memory_in_the_middle_is_reached)
{
	struct pair p = make_pair(true);
	struct lab_work list[MANY];
	char *page = p.owner->here->memory + (uint64_t)MANY * PAGE;

	do_one(&p);
	fill_list(&p, IBV_WR_RDMA_WRITE, list);
	assert_int_equal(mprotect(page, PAGE, PROT_NONE), 0);
	assert_int_equal(lab_peer_try_post_list(p.requester, list, MANY), 0);
	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
	expect_completions(&p, 0, MANY, IBV_WC_SUCCESS);
	expect_done(&p, IBV_WR_RDMA_WRITE, 0, MANY, true);
}

/* ---- more than one region ---- */

/* Every third request is by the key of the owner's second region, which lets nobody write if
 * @access says so. */
static void write_to_two_regions(unsigned access, unsigned failed)
{
	struct pair p = make_pair(true);
	struct lab_peer_objects *o = p.owner->here;
	struct ibv_mr *second = ibv_reg_mr(o->pd, o->memory, BYTES, (int)access);
	struct lab_work list[MANY];

	assert_non_null(second);
	do_one(&p);
	fill_list(&p, IBV_WR_RDMA_WRITE, list);
	for (unsigned i = 2; i < MANY; i += 3)
		list[i].rkey_xor = second->rkey ^ o->mr->rkey;
	post_and_fail(&p, list, failed, failed < MANY - 1 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(second), 0);
	lab_clean_up(NULL);
}

LAB_CASE(a_list_goes_to_two_regions)
{
	write_to_two_regions(LAB_ALL_ACCESS, MANY - 1);
	write_to_two_regions(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, 2);
}

/* ---- an owner that takes its memory back, stops or dies ---- */

struct writer {
	struct pair p;
	atomic_uint lists; /* that have completed */
};

/* Posts lists until a request fails. Its status. */
static void *write_lists(void *o)
{
	struct writer *w = o;
	struct lab_work list[MANY];
	struct ibv_wc wc = { 0 };
	int n;

	fill_list(&w->p, IBV_WR_RDMA_WRITE, list);
	while (!wc.status) {
		lab_peer_try_post_list(w->p.requester, list, MANY);
		do
			n = lab_peer_try_sent(w->p.requester, &wc);
		while (!wc.status && (!n || wc.wr_id != 100 + MANY - 1));
		atomic_fetch_add(&w->lists, 1);
	}
	return (void *)(uintptr_t)wc.status;
}

static void *begin_to_write(struct writer *w)
{
	pthread_t *thread = malloc(sizeof(*thread));
	struct base_pause pause = { 0 };

	assert_non_null(thread);
	w->p = make_pair(false);
	assert_int_equal(pthread_create(thread, NULL, write_lists, w), 0);
	while (!atomic_load(&w->lists))
		base_pause(&pause);
	return thread;
}

static enum ibv_wc_status end_of(void *thread)
{
	void *status;

	assert_int_equal(pthread_join(*(pthread_t *)thread, &status), 0);
	free(thread);
	return (enum ibv_wc_status)(uintptr_t)status;
}

LAB_CASE(what_is_deregistered_does_not_change)
{
	for (unsigned i = 0; i < 8; i++) {
		struct writer w = { .lists = 0 };
		void *thread = begin_to_write(&w);

		assert_int_equal(lab_peer_deregister(w.p.owner), 0);
		lab_peer_fill(w.p.owner, 0, BYTES, 3);
		assert_int_equal(end_of(thread), IBV_WC_REM_ACCESS_ERR);
		lab_peer_expect(w.p.owner, 0, BYTES, 3);
		lab_clean_up(NULL);
	}
}

LAB_CASE(a_stopped_owner_is_written_to)
{
	struct pair p = make_pair(false);
	struct lab_work list[MANY];

	do_one(&p);
	fill_list(&p, IBV_WR_RDMA_WRITE, list);
	lab_peer_signal(p.owner, SIGSTOP);
	assert_int_equal(lab_peer_try_post_list(p.requester, list, MANY), 0);
	expect_completions(&p, 0, MANY, IBV_WC_SUCCESS);
	lab_peer_signal(p.owner, SIGCONT);
	expect_done(&p, IBV_WR_RDMA_WRITE, 0, MANY, true);
}

LAB_CASE(a_dead_owner_is_not_reached)
{
	struct writer w = { .lists = 0 };
	void *thread = begin_to_write(&w);

	lab_peer_signal(w.p.owner, SIGKILL);
	assert_int_equal(end_of(thread), IBV_WC_RETRY_EXC_ERR);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
