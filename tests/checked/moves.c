/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Small programs, each wrong and right, whose memory moves or goes while it is registered or used,
 * or that use what they have destroyed. For moves.sh.
 *
 * checked.moves --list: a line each, the name and the rule that it breaks.
 * checked.moves NAME wrong|right
 */
#include "verbs/lab.h"

#define PAGE  4096ul
#define PAGES (8 * PAGE)

/* ---- pieces ---- */

static char *map_at(void *at, size_t bytes, int flags)
{
	char *p = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);

	assert_true(p != MAP_FAILED);
	memset(p, 1, bytes);
	return p;
}

static char *map(size_t bytes)
{
	return map_at(NULL, bytes, MAP_PRIVATE);
}

static struct ibv_mr *reg(struct lab_end *e, void *at, size_t bytes)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, at, bytes, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	return mr;
}

static void receive(struct lab_end *e, void *at, uint32_t bytes, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)at, bytes, lkey };
	struct ibv_recv_wr wr = { .wr_id = 3, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
}

static void post_send(struct lab_end *e, struct ibv_ah *ah, void *at, uint32_t bytes, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)at, bytes, lkey };
	struct ibv_send_wr wr = { .wr_id = 4,
		                  .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_SEND,
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .wr.ud = { ah, e->qp->qp_num, e->qkey } },
	                   *bad;

	ibv_post_send(e->qp, &wr, &bad);
}

/* To itself; whether it succeeds does not matter. */
static void send_and_poll(struct lab_end *e, void *at, uint32_t bytes, uint32_t lkey)
{
	struct ibv_wc wc;

	post_send(e, lab_ah_to(e, e), at, bytes, lkey);
	lab_poll(e->send_cq, 1, &wc);
}

static void reset(struct lab_end *e)
{
	lab_to(e->qp, IBV_QPS_RESET);
}

/* ---- memory goes under a request ---- */

static void unmapped_in_use(bool wrong)
{
	struct lab_end *e = lab_end(1);
	char *p = map(PAGES);
	struct ibv_mr *mr = reg(e, p, PAGES);

	receive(e, p + 2 * PAGE, 1024, mr->lkey);
	assert_int_equal(munmap(p + (wrong ? 2 : 3) * PAGE, PAGE), 0);
	reset(e);
	assert_int_equal(munmap(p, PAGES), 0);
	ibv_dereg_mr(mr);
}

static void mapped_over_in_use(bool wrong)
{
	struct lab_end *e = lab_end(1);
	char *p = map(PAGES);
	struct ibv_mr *mr = reg(e, p, PAGES);

	receive(e, p + PAGE - 8, 16, mr->lkey);
	if (!wrong)
		reset(e);
	map_at(p + PAGE, PAGE, MAP_PRIVATE | MAP_FIXED);
	reset(e);
	ibv_dereg_mr(mr);
}

static void freed_in_use(bool wrong)
{
	struct lab_end *e = lab_end(1);
	char *p = malloc(3000), *before = malloc(3000), *behind = malloc(3000);
	struct ibv_mr *mr = reg(e, p, 3000);

	receive(e, p + 2000, 1000, mr->lkey);
	free(before);
	free(behind);
	if (!wrong)
		lab_to(e->qp, IBV_QPS_ERR);
	free(p);
	reset(e);
	ibv_dereg_mr(mr);
}

static void reallocated_in_use(bool wrong)
{
	struct lab_end *e = lab_end(1);
	char *p = malloc(500), *wall = malloc(500), *more;
	struct ibv_mr *mr = reg(e, p, 500);

	receive(e, p, 500, mr->lkey);
	if (!wrong)
		reset(e);
	more = realloc(p, 1 << 20);
	assert_true(more && more != p);
	reset(e);
	ibv_dereg_mr(mr);
	free(more);
	free(wall);
}

static void cut_off_in_use(bool wrong)
{
	struct lab_end *e = lab_end(1);
	int fd = memfd_create("file", MFD_CLOEXEC);
	struct ibv_mr *mr;
	char *p;

	assert_int_equal(ftruncate(fd, PAGES), 0);
	p = mmap(NULL, PAGES - PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
	assert_true(p != MAP_FAILED);
	mr = reg(e, p, PAGES - PAGE);
	receive(e, p + PAGE, PAGE, mr->lkey);
	assert_int_equal(ftruncate(fd, wrong ? 3 * PAGE - 4096 : 2 * PAGE + 1), 0);
	reset(e);
	ibv_dereg_mr(mr);
	munmap(p, PAGES - PAGE);
	close(fd);
}

/* ---- memory has moved before a request ---- */

/* A registration cache that keeps a region of memory that went, and finds it by address. The right
 * one gives it up before it is used again. */
static void unmapped_and_cached(bool wrong)
{
	struct lab_end *e = lab_end(1);
	char *p = map(PAGES);
	struct ibv_mr *mr = reg(e, p, PAGES);

	send_and_poll(e, p, 64, mr->lkey);
	assert_int_equal(munmap(p, PAGES), 0);
	assert_ptr_equal(map_at(p, PAGES, MAP_PRIVATE | MAP_FIXED_NOREPLACE), p);
	if (!wrong) {
		ibv_dereg_mr(mr);
		mr = reg(e, p, PAGES);
	}
	send_and_poll(e, p, 64, mr->lkey);
	ibv_dereg_mr(mr);
	munmap(p, PAGES);
}

/* One page of a region has gone; the others are as they were. */
static void mapped_anew(bool wrong)
{
	struct lab_end *e = lab_end(1);
	char *p = map(PAGES);
	struct ibv_mr *mr = reg(e, p, PAGES);

	map_at(p + 3 * PAGE, PAGE, MAP_PRIVATE | MAP_FIXED);
	send_and_poll(e, p + 2 * PAGE, PAGE, mr->lkey);
	send_and_poll(e, p + 4 * PAGE - (wrong ? 1 : 0), 64, mr->lkey);
	ibv_dereg_mr(mr);
	munmap(p, PAGES);
}

/* Of shared memory the pages stay. */
static void discarded(bool wrong)
{
	struct lab_end *e = lab_end(1);
	char *p = map_at(NULL, PAGES, wrong ? MAP_PRIVATE : MAP_SHARED);
	struct ibv_mr *mr = reg(e, p, PAGES);

	assert_int_equal(madvise(p, PAGES, MADV_DONTNEED), 0);
	send_and_poll(e, p + PAGE, 100, mr->lkey);
	ibv_dereg_mr(mr);
	munmap(p, PAGES);
}

/* The wrong one leaves other pages behind, and uses these. */
static void moved(bool wrong)
{
	struct lab_end *e = lab_end(1);
	char *room = map(PAGES), *p = map(PAGES), *now;
	struct ibv_mr *mr = reg(e, p, PAGES);

	now = mremap(p, PAGES, PAGES, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, room);
	assert_ptr_equal(now, room);
	if (!wrong) {
		ibv_dereg_mr(mr);
		mr = reg(e, now, PAGES);
	}
	send_and_poll(e, wrong ? p : now, 700, mr->lkey);
	ibv_dereg_mr(mr);
	munmap(now, PAGES);
	munmap(p, PAGES);
}

/* Pages before the new end of a file stay. */
static void cut_off(bool wrong)
{
	struct lab_end *e = lab_end(1);
	int fd = memfd_create("file", MFD_CLOEXEC);
	struct ibv_mr *mr;
	char *p;

	assert_int_equal(ftruncate(fd, PAGES), 0);
	p = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	mr = reg(e, p, PAGES);
	assert_int_equal(ftruncate(fd, 5 * PAGE), 0);
	assert_int_equal(ftruncate(fd, PAGES), 0);
	send_and_poll(e, p + (wrong ? 5 : 4) * PAGE, PAGE, mr->lkey);
	ibv_dereg_mr(mr);
	munmap(p, PAGES);
	close(fd);
}

static void forked(bool wrong)
{
	struct lab_end *e;
	int status;
	pid_t child;

	if (!wrong)
		assert_int_equal(ibv_fork_init(), 0);
	e = lab_end(1);
	ibv_dereg_mr(reg(e, map(PAGE), PAGE));
	child = fork();
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
}

/* ---- use after the end ---- */

static void key_gone(bool wrong)
{
	struct lab_end *e = lab_end(1);
	char *p = map(PAGES);
	struct ibv_mr *mr = reg(e, p, PAGES), *next;
	const uint32_t key = mr->lkey;

	ibv_dereg_mr(mr);
	next = reg(e, p, PAGES);
	receive(e, p, 100, wrong ? key : next->lkey);
	reset(e);
	ibv_dereg_mr(next);
	munmap(p, PAGES);
}

/* The last one of several. */
static void handle_gone(bool wrong)
{
	struct lab_end *e = lab_end(1);
	struct ibv_ah_attr attr = lab_attr_to(e);
	struct ibv_ah *ah[4];
	struct ibv_wc wc;

	for (unsigned i = 0; i < 4; i++) {
		assert_non_null(ah[i] = ibv_create_ah(e->pd, &attr));
	}
	for (unsigned i = 0; i < (wrong ? 3 : 2); i++)
		ibv_destroy_ah(ah[i]);
	post_send(e, ah[2], e->out, 64, e->mr->lkey);
	if (!wrong)
		lab_poll(e->send_cq, 1, &wc);
	reset(e);
	for (unsigned i = wrong ? 3 : 2; i < 4; i++)
		ibv_destroy_ah(ah[i]);
}

static void queue_gone(bool wrong)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0), *other;
	struct ibv_wc wc;

	assert_non_null(cq);
	ibv_destroy_cq(cq);
	assert_non_null(other = ibv_create_cq(context, 4, NULL, NULL, 0));
	assert_int_equal(ibv_poll_cq(wrong ? cq : other, 1, &wc), wrong ? -1 : 0);
	ibv_destroy_cq(other);
}

/* 100 queues later it is the memory of another one, or of none: all of them are right. */
static void queue_gone_armed(bool wrong)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_cq *cq;
	unsigned i = 0;

	do {
		assert_non_null(cq = ibv_create_cq(context, 4, NULL, NULL, 0));
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		ibv_destroy_cq(cq);
	} while (++i < 100);
	if (wrong)
		assert_int_equal(ibv_req_notify_cq(cq, 0), EINVAL);
}

static const struct {
	const char *name, *rule;
	void (*make)(bool wrong);
} programs[] = {
	{ "unmapped-in-use", "memory-gone-in-use", unmapped_in_use },
	{ "mapped-over-in-use", "memory-gone-in-use", mapped_over_in_use },
	{ "freed-in-use", "memory-gone-in-use", freed_in_use },
	{ "reallocated-in-use", "memory-gone-in-use", reallocated_in_use },
	{ "cut-off-in-use", "memory-gone-in-use", cut_off_in_use },
	{ "unmapped-and-cached", "registered-memory-moved", unmapped_and_cached },
	{ "mapped-anew", "registered-memory-moved", mapped_anew },
	{ "discarded", "registered-memory-moved", discarded },
	{ "moved", "registered-memory-moved", moved },
	{ "cut-off", "registered-memory-moved", cut_off },
	{ "forked", "fork-not-prepared", forked },
	{ "key-gone", "key-of-deregistered-region", key_gone },
	{ "handle-gone", "destroyed-address-handle-used", handle_gone },
	{ "queue-gone", "destroyed-queue-polled", queue_gone },
	{ "queue-gone-armed", "destroyed-queue-polled", queue_gone_armed },
};

int main(int argc, char **argv)
{
	for (unsigned i = 0; i < LAB_ARRAY(programs); i++) {
		if (argc == 2)
			printf("%s %s\n", programs[i].name, programs[i].rule);
		if (argc != 3 || strcmp(argv[1], programs[i].name))
			continue;
		programs[i].make(!strcmp(argv[2], "wrong"));
		lab_clean_up(NULL);
		return 0;
	}
	return argc == 2 ? 0 : 2;
}
