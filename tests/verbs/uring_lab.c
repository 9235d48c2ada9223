/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An io_uring: see uring_lab.h.
 */
#include "peer_lab.h"
#include "uring_lab.h"

#include "base/pause.h"

bool lab_uring_is_there(void)
{
	struct io_uring_params params = { 0 };
	long fd = syscall(SYS_io_uring_setup, 1, &params);

	if (fd >= 0)
		close((int)fd);
	return fd >= 0;
}

static char *map(int fd, size_t bytes, off_t what)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, what);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

bool lab_uring_takes_parts_of_files(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int file = memfd_create("half", MFD_CLOEXEC);
	struct io_uring_params params = { 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 1, &params);
	char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov = { at, 2 * page };
	bool takes;

	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(ftruncate(file, (off_t)page), 0);
	assert_ptr_equal(mmap(at, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0),
	                 at);
	takes = fd >= 0 && !syscall(SYS_io_uring_register, fd, IORING_REGISTER_BUFFERS, &iov, 1);
	if (fd >= 0)
		close(fd);
	close(file);
	munmap(at, 2 * page);
	return takes;
}

static unsigned n_threads(void)
{
	struct stat s;

	assert_int_equal(stat("/proc/self/task", &s), 0);
	return (unsigned)s.st_nlink;
}

void lab_uring_open(struct lab_uring *r, void *buffer, size_t bytes)
{
	struct iovec iov = { buffer, bytes };

	*r = (struct lab_uring){ .fd = -1, .n_threads = n_threads() };
	r->fd = (int)syscall(SYS_io_uring_setup, 1, &r->params);
	assert_true(r->fd >= 0);
	r->ring_bytes = r->params.sq_off.array + sizeof(uint32_t);
	r->cq_bytes = r->params.cq_off.cqes + r->params.cq_entries * sizeof(struct io_uring_cqe);
	r->sqe_bytes = sizeof(*r->sqe);
	r->sq = map(r->fd, r->ring_bytes, IORING_OFF_SQ_RING);
	r->cq = map(r->fd, r->cq_bytes, IORING_OFF_CQ_RING);
	r->sqe = (struct io_uring_sqe *)map(r->fd, r->sqe_bytes, (off_t)IORING_OFF_SQES);
	assert_int_equal(syscall(SYS_io_uring_register, r->fd, IORING_REGISTER_BUFFERS, &iov, 1),
	                 0);
}

static _Atomic uint32_t *word(char *ring, uint32_t off)
{
	return (_Atomic uint32_t *)(ring + off);
}

void lab_uring_read(struct lab_uring *r, void *to, size_t bytes, unsigned seed)
{
	int fd = memfd_create("pattern", MFD_CLOEXEC);
	const struct io_uring_cqe *cqe;

	for (unsigned i = 0; i < bytes; i++) {
		uint8_t byte = (uint8_t)lab_pattern(seed, i);

		assert_int_equal(write(fd, &byte, 1), 1);
	}
	*r->sqe = (struct io_uring_sqe){ .opcode = IORING_OP_READ_FIXED,
		                         .fd = fd,
		                         .addr = (uintptr_t)to,
		                         .len = (uint32_t)bytes };
	*word(r->sq, r->params.sq_off.array) = 0;
	atomic_fetch_add(word(r->sq, r->params.sq_off.tail), 1);
	assert_int_equal(syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0),
	                 1);
	cqe = (const struct io_uring_cqe *)(r->cq + r->params.cq_off.cqes);
	cqe += atomic_load(word(r->cq, r->params.cq_off.head)) & (r->params.cq_entries - 1);
	assert_int_equal(cqe->res, bytes);
	atomic_fetch_add(word(r->cq, r->params.cq_off.head), 1);
	close(fd);
}

static bool is_pinned(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	unsigned long pinned = 0;
	char line[256];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "VmPin: %lu", &pinned);
	fclose(f);
	return pinned;
}

void lab_uring_close(struct lab_uring *r)
{
	struct base_pause pause = { 0 };

	assert_int_equal(syscall(SYS_io_uring_register, r->fd, IORING_UNREGISTER_BUFFERS, NULL, 0),
	                 0);
	munmap(r->sq, r->ring_bytes);
	munmap(r->cq, r->cq_bytes);
	munmap(r->sqe, r->sqe_bytes);
	close(r->fd);
	/* the kernel frees it a little later, and the threads that worked for it end */
	while (is_pinned() || n_threads() > r->n_threads)
		base_pause_sleep(&pause);
}
