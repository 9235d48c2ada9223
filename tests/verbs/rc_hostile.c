/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer that announces a file of adopted memory (src/client/hca/memory/adopt.h) which is not its
 * own one: the peer may make this file shorter, or the file is too short, or of another kind. A
 * process that mapped it would die of SIGBUS; the requester does not, and reaches the memory by
 * other ways. The hostile process is this one: it replaces the descriptor on its way to the daemon.
 */
#include "peer_lab.h"

#define PAGE  4096u
#define BYTES (8 * PAGE)

/* ---- the file ---- */

static int evil = -1;      /* what is sent in place of the file of adopted memory; -1: nothing */
static unsigned times = 0; /* that it was */

static bool is_adopted_file(int fd)
{
	char name[32], target[64] = "";

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return readlink(name, target, sizeof(target) - 1) > 0 && strstr(target, "umbel-adopted");
}

/* In the place of the C library's, for the library. */
__attribute__((visibility("default"))) ssize_t sendmsg(int socket, const struct msghdr *m,
                                                       int flags)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int fd;

	if (evil >= 0 && c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(fd))) {
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		if (is_adopted_file(fd)) {
			memcpy(CMSG_DATA(c), &evil, sizeof(evil));
			times++;
		}
	}
	return syscall(SYS_sendmsg, socket, m, flags);
}

/* A file of memory that has no more seals than these. */
static int file(unsigned flags, uint64_t bytes, int seals)
{
	int fd = memfd_create("evil", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* ---- the peers ---- */

struct fixture {
	struct lab_peer **p; /* the hostile one is here, the other one elsewhere */
	char *memory;        /* here */
	struct ibv_mr *mr;
};

/* A region here, whose file is @fd as far as others see. */
static void begin(struct fixture *f, int fd)
{
	static void *const elsewhere = (void *)(uintptr_t)lab_open;

	evil = fd;
	f->p = lab_peers(NULL, &elsewhere);
	assert_ptr_not_equal(f->memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
	                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	                     MAP_FAILED);
	memset(f->memory, 1, BYTES);
	assert_non_null(f->mr = ibv_reg_mr(f->p[0]->here->pd, f->memory, BYTES, LAB_ALL_ACCESS));
	f->p[0]->address.rkey = f->mr->rkey;
	f->p[0]->address.addr = (uintptr_t)f->memory;
	assert_true(times > 0);
}

static void expect_written_and_read(struct fixture *f, unsigned seed)
{
	struct lab_work w = {
		.opcode = IBV_WR_RDMA_WRITE, .n = 1, .piece = { { 0, BYTES, 0 } }, .to = f->p[0]
	};

	lab_peer_fill(f->p[1], 0, BYTES, seed);
	lab_peer_do(f->p[1], &w, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < BYTES; i++)
		assert_int_equal((uint8_t)f->memory[i], lab_pattern(seed, i));
	memset(f->memory, (int)seed, BYTES);
	w.opcode = IBV_WR_RDMA_READ;
	lab_peer_do(f->p[1], &w, IBV_WC_SUCCESS);
	w.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	w.compare_add = 1;
	w.piece[0].length = 8;
	lab_peer_do(f->p[1], &w, IBV_WC_SUCCESS);
	assert_int_equal((uint8_t)f->memory[0], seed + 1);
}

/* The other one is alive, and has got the bytes of this process. */
static void end(struct fixture *f)
{
	lab_peer_expect_state(f->p[1], IBV_QPS_RTS);
	assert_int_equal(ibv_dereg_mr(f->mr), 0);
	munmap(f->memory, BYTES);
}

static const uint64_t large = 1ull << 52;

static void a_file_that_can_be_truncated_is_not_mapped(void **state)
{
	int fd = file(0, large, 0);
	struct fixture f;

	(void)state;
	begin(&f, fd);
	expect_written_and_read(&f, 2);
	assert_int_equal(ftruncate(fd, 0), 0);
	expect_written_and_read(&f, 3);
	end(&f);
}

static void a_file_that_was_truncated_before_is_not_mapped(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, file(0, PAGE, F_SEAL_SHRINK));
	expect_written_and_read(&f, 2);
	end(&f);
}

/* An access to a mapping of such a file can be a signal when the machine has no huge page left. */
static void a_file_of_huge_pages_is_not_mapped(void **state)
{
	struct fixture f;
	int fd = memfd_create("evil", MFD_CLOEXEC | MFD_HUGETLB);

	(void)state;
	if (fd < 0)
		skip(); /* the kernel has none */
	close(fd);
	begin(&f, file(MFD_HUGETLB, large, F_SEAL_SHRINK));
	expect_written_and_read(&f, 2);
	end(&f);
}

static void a_file_of_another_kind_is_not_mapped(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	expect_written_and_read(&f, 2);
	end(&f);
}

/* Holes read as zeros, and can be written to: the hostile one's own bytes are wrong then, no more.
 */
static void holes_in_a_sealed_file_kill_nobody(void **state)
{
	int fd = file(0, large, F_SEAL_SHRINK);
	struct fixture f;
	struct lab_work w = { .opcode = IBV_WR_RDMA_WRITE, .n = 1, .piece = { { 0, BYTES, 0 } } };

	(void)state;
	begin(&f, fd);
	w.to = f.p[0];
	for (unsigned i = 0; i < 10; i++) {
		lab_peer_do(f.p[1], &w, IBV_WC_SUCCESS);
		assert_int_equal(
		        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)large),
		        0);
	}
	w.opcode = IBV_WR_RDMA_READ;
	lab_peer_do(f.p[1], &w, IBV_WC_SUCCESS);
	end(&f);
}

static const struct CMUnitTest cases[] = {
	LAB_TEST(a_file_that_can_be_truncated_is_not_mapped),
	LAB_TEST(a_file_that_was_truncated_before_is_not_mapped),
	LAB_TEST(a_file_of_huge_pages_is_not_mapped),
	LAB_TEST(a_file_of_another_kind_is_not_mapped),
	LAB_TEST(holes_in_a_sealed_file_kill_nobody),
};

/* Runs a case in this process. */
static int run_case(const char *name)
{
	for (size_t i = 0; i < LAB_ARRAY(cases); i++)
		if (!strcmp(name, cases[i].name))
			return _cmocka_run_group_tests(name, &cases[i], 1, NULL, NULL);
	return 1;
}

/* Runs this program again, for one case: a process announces its file once. */
static void run_apart(void **state)
{
	const char *name = *state;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		execl("/proc/self/exe", "rc_hostile", name, NULL);
		_exit(1);
	}
	harness_expect_success(pid);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[LAB_ARRAY(cases)];

	if (argc > 1) {
		unsetenv("CMOCKA_TEST_FILTER");
		lab_peers_begin();
		return run_case(argv[1]);
	}
	for (size_t i = 0; i < LAB_ARRAY(cases); i++)
		tests[i] = (struct CMUnitTest){ cases[i].name, run_apart, NULL, NULL,
			                        (void *)(uintptr_t)cases[i].name };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
