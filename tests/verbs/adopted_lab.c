/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adopted memory and its peer: see adopted_lab.h.
 */
#include "adopted_lab.h"

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

/* How many of the pages from @at on are shared with peers by the file of adopted memory. */
unsigned lab_adopted_pages(const void *at, unsigned pages)
{
	uint64_t from, to, begin = (uintptr_t)at, end = begin + (uint64_t)pages * LAB_ADOPTED_PAGE;
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], may[5];
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, "umbel-adopted") ||
		    sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &from, &to, may) != 3 ||
		    may[3] != 's')
			continue;
		from = from > begin ? from : begin;
		to = to < end ? to : end;
		n += from < to ? (unsigned)((to - from) / LAB_ADOPTED_PAGE) : 0;
	}
	fclose(f);
	return n;
}

void lab_adopted_expect(const void *at, unsigned pages, unsigned n)
{
	unsigned adopted = lab_adopted_pages(at, pages);

	if (adopted != n)
		fail_msg("%u of %u pages are adopted, not %u", adopted, pages, n);
}

#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

/* Whether the kernel lets this process hold writes, of the kernel, too. */
static bool may_hold(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = 1 | 1 << 13 };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC), device = -1;
	bool may;

	if (fd < 0) {
		device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
		fd = device < 0 ? -1 : ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC);
	}
	may = fd >= 0 && !ioctl(fd, UFFDIO_API, &api);
	if (fd >= 0)
		close(fd);
	if (device >= 0)
		close(device);
	return may;
}

void lab_adopted_beside_threads(const void *at, unsigned pages)
{
	lab_adopted_expect(at, pages, may_hold() ? pages : 0);
}

/* Private memory with a pattern. */
char *lab_adopted_memory(void)
{
	char *m = mmap(NULL, LAB_ADOPTED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	               -1, 0);

	assert_ptr_not_equal(m, MAP_FAILED);
	for (unsigned i = 0; i < LAB_ADOPTED_BYTES; i++)
		m[i] = (char)lab_pattern(1, i);
	return m;
}

void lab_adopted_holds(const char *m, unsigned from, unsigned to, unsigned seed)
{
	for (unsigned i = from; i < to; i++)
		assert_int_equal((uint8_t)m[i], lab_pattern(seed, i));
}

/* As allocators count on. */
void lab_adopted_is_emptied(char *m)
{
	assert_int_equal(madvise(m, LAB_ADOPTED_BYTES, MADV_DONTNEED), 0);
	for (unsigned i = 0; i < LAB_ADOPTED_BYTES; i++)
		assert_int_equal(m[i], 0);
}

/* @p[0] is here, @p[1] elsewhere. */
struct lab_peer **lab_adopted_begin(void)
{
	static void *const elsewhere = (void *)(uintptr_t)lab_open;
	struct lab_peer **p = lab_peers(NULL, &elsewhere);

	return p;
}

struct ibv_mr *lab_adopted_region(struct lab_peer *p, char *at, size_t bytes)
{
	struct ibv_mr *mr = ibv_reg_mr(p->here->pd, at, bytes, LAB_ALL_ACCESS);

	assert_non_null(mr);
	p->address.rkey = mr->rkey;
	p->address.addr = (uintptr_t)at;
	return mr;
}

void lab_adopted_deregister(struct ibv_mr *mr)
{
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

struct lab_work lab_adopted_work(struct lab_peer *to, enum ibv_wr_opcode opcode, uint64_t remote,
                                 uint32_t length)
{
	return (struct lab_work){
		.opcode = opcode, .n = 1, .piece = { { 0, length, 0 } }, .to = to, .remote = remote
	};
}

/* The peer writes a pattern there; it begins at offset 0 of what it names. */
void lab_adopted_write(struct lab_peer *p[2], uint64_t remote, uint32_t length, unsigned seed)
{
	struct lab_work w = lab_adopted_work(p[0], IBV_WR_RDMA_WRITE, remote, length);

	lab_peer_fill(p[1], 0, length, seed);
	lab_peer_do(p[1], &w, IBV_WC_SUCCESS);
}

void lab_adopted_read(struct lab_peer *p[2], uint64_t remote, uint32_t length)
{
	struct lab_work w = lab_adopted_work(p[0], IBV_WR_RDMA_READ, remote, length);

	lab_peer_do(p[1], &w, IBV_WC_SUCCESS);
}

static void *sleep_to_end(void *arg)
{
	struct lab_sleeper *s = arg;

	sem_wait(&s->may_end);
	return NULL;
}

void lab_sleeper_begin(struct lab_sleeper *s)
{
	assert_int_equal(sem_init(&s->may_end, 0, 0), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, sleep_to_end, s), 0);
}

void lab_sleeper_end(struct lab_sleeper *s)
{
	sem_post(&s->may_end);
	pthread_join(s->thread, NULL);
}
