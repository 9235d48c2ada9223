/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registered memory and what the kernel can do with memory: pin it, move it, copy it, drop it, give
 * it a meaning of its own. In each case a peer's WRITE arrives, nothing that was said to the kernel
 * is lost, and after deregistering the memory is as it would be on hardware.
 * With one thread.
 */
#include "adopted_lab.h"
#include "uring_lab.h"

#include <linux/aio_abi.h>
#include <linux/mempolicy.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/shm.h>
#include <ucontext.h>

/* Reads the flags of the memory at @m from /proc/self/smaps. */
static void read_flags(const char *m, char flags[256])
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long from, to;
	char line[256];
	bool inside = false;

	assert_non_null(f);
	flags[0] = '\0';
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2 && strchr(line, '-') < line + 20)
			inside = (uintptr_t)m >= from && (uintptr_t)m < to;
		else if (inside && !strncmp(line, "VmFlags:", 8))
			strcpy(flags, line);
	}
	fclose(f);
	assert_true(flags[0]);
}

/* ---- memory about which something was said ---- */

static int exec_may(char *m)
{
	return mprotect(m, LAB_ADOPTED_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static int lock(char *m)
{
	return (int)syscall(SYS_mlock, m,
	                    LAB_ADOPTED_BYTES); /* the sanitizers' mlock() does nothing */
}

static int bind_to_node(char *m)
{
	unsigned long node = 1;

	return (int)syscall(SYS_mbind, m, LAB_ADOPTED_BYTES, MPOL_BIND, &node, 64, 0);
}

static int dont_fork(char *m)
{
	return madvise(m, LAB_ADOPTED_BYTES, MADV_DONTFORK);
}

static int wipe_on_fork(char *m)
{
	return madvise(m, LAB_ADOPTED_BYTES, MADV_WIPEONFORK);
}

static int dont_dump(char *m)
{
	return madvise(m + LAB_ADOPTED_PAGE, LAB_ADOPTED_PAGE, MADV_DONTDUMP);
}

static int mergeable(char *m)
{
	return madvise(m, LAB_ADOPTED_BYTES, MADV_MERGEABLE);
}

static int huge(char *m)
{
	return madvise(m, LAB_ADOPTED_BYTES, MADV_HUGEPAGE);
}

static int sequential(char *m)
{
	return madvise(m, LAB_ADOPTED_BYTES, MADV_SEQUENTIAL);
}

static int watcher = -1;

/* Missing pages are a monitor's; all are there. */
static int watch(char *m)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register r = { .range = { (uintptr_t)m, LAB_ADOPTED_BYTES },
		                     .mode = UFFDIO_REGISTER_MODE_MISSING };

	watcher = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	return watcher < 0 || ioctl(watcher, UFFDIO_API, &api) ||
	       ioctl(watcher, UFFDIO_REGISTER, &r);
}

static const struct {
	const char *name;
	int (*say)(char *m);
} said[] = {
	{ "PROT_EXEC", exec_may },           { "mlock", lock },
	{ "mbind", bind_to_node },           { "MADV_DONTFORK", dont_fork },
	{ "MADV_WIPEONFORK", wipe_on_fork }, { "MADV_DONTDUMP", dont_dump },
	{ "MADV_MERGEABLE", mergeable },     { "MADV_HUGEPAGE", huge },
	{ "MADV_SEQUENTIAL", sequential },   { "userfaultfd", watch },
};

LAB_CASE(what_was_said_of_memory_stays)
{
	char before[256], during[256], after[256];
	struct lab_peer **p = lab_adopted_begin();

	for (unsigned i = 0; i < LAB_ARRAY(said); i++) {
		char *m = lab_adopted_memory();
		struct ibv_mr *mr;

		if (said[i].say(m)) {
			print_message("%s: %s\n", said[i].name, strerror(errno));
			munmap(m, LAB_ADOPTED_BYTES);
			continue; /* not with this kernel, or not in a container */
		}
		read_flags(m + LAB_ADOPTED_PAGE, before);
		mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
		lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
		read_flags(m + LAB_ADOPTED_PAGE, during);
		lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, i + 2);
		lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, i + 2);
		lab_adopted_deregister(mr);
		read_flags(m + LAB_ADOPTED_PAGE, after);
		assert_string_equal(during, before);
		assert_string_equal(after, before);
		munmap(m, LAB_ADOPTED_BYTES);
	}
	if (watcher >= 0)
		close(watcher);
}

/* ---- memory that the kernel writes to later ---- */

/* The same memory is known to io_uring and to verbs, whichever came first. */
LAB_CASE(what_io_uring_reads_is_there)
{
	char *m = lab_adopted_memory(), *other = lab_adopted_memory();
	struct lab_uring ring;
	struct lab_peer **p;
	struct ibv_mr *mr;

	if (!lab_uring_is_there())
		return; /* containers forbid it: nothing can be pinned so */
	p = lab_adopted_begin();
	lab_uring_open(&ring, m, LAB_ADOPTED_BYTES);
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_uring_read(&ring, m, LAB_ADOPTED_BYTES, 3);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 3);
	lab_adopted_read(p, 0, LAB_ADOPTED_BYTES);
	lab_peer_expect(p[1], 0, LAB_ADOPTED_BYTES, 3);
	lab_uring_close(&ring);
	lab_adopted_deregister(mr);
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, LAB_ADOPTED_PAGES);
	lab_uring_open(&ring, m, LAB_ADOPTED_BYTES);
	lab_uring_read(&ring, m, LAB_ADOPTED_BYTES, 4);
	lab_adopted_read(p, 0, LAB_ADOPTED_BYTES);
	lab_peer_expect(p[1], 0, LAB_ADOPTED_BYTES, 4);
	lab_adopted_deregister(mr);
	lab_uring_read(&ring, m, LAB_ADOPTED_BYTES, 5);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 5);
	/* once nothing is pinned any more, what could not be given back is */
	lab_uring_close(&ring);
	lab_adopted_deregister(lab_adopted_region(p[0], other, LAB_ADOPTED_BYTES));
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 5);
	lab_adopted_is_emptied(m);
	munmap(m, LAB_ADOPTED_BYTES);
	munmap(other, LAB_ADOPTED_BYTES);
}

LAB_CASE(beside_aio_nothing_moves)
{
	char *m = lab_adopted_memory();
	aio_context_t aio = 0;
	struct ibv_mr *mr;
	struct lab_peer **p = lab_adopted_begin();

	if (syscall(SYS_io_setup, 8, &aio))
		return; /* forbidden */
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 2);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 2);
	lab_adopted_deregister(mr);
	assert_int_equal(syscall(SYS_io_destroy, aio), 0);
	munmap(m, LAB_ADOPTED_BYTES);
}

/* A pipe has the pages themselves. */
LAB_CASE(what_vmsplice_has_taken_is_in_the_pipe)
{
	char *m = lab_adopted_memory(), got[LAB_ADOPTED_PAGE];
	struct iovec iov = { m, sizeof(got) };
	struct ibv_mr *mr;
	int ends[2];
	struct lab_peer **p = lab_adopted_begin();

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(vmsplice(ends[1], &iov, 1, 0), sizeof(got));
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	assert_int_equal(read(ends[0], got, sizeof(got)), sizeof(got));
	lab_adopted_holds(got, 0, sizeof(got), 1);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 2);
	assert_int_equal(vmsplice(ends[1], &iov, 1, 0), sizeof(got));
	lab_adopted_deregister(mr);
	assert_int_equal(read(ends[0], got, sizeof(got)), sizeof(got));
	lab_adopted_holds(got, 0, sizeof(got), 2);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 2);
	munmap(m, LAB_ADOPTED_BYTES);
	close(ends[0]);
	close(ends[1]);
}

/* ---- memory that the program moves or drops ---- */

LAB_CASE(deregistered_memory_moves_and_grows_as_one)
{
	char *m, *moved;
	struct lab_peer **p = lab_adopted_begin();

	m = lab_adopted_memory();
	lab_adopted_deregister(
	        lab_adopted_region(p[0], m + LAB_ADOPTED_PAGE, 4 * LAB_ADOPTED_PAGE));
	assert_ptr_not_equal(
	        moved = mremap(m, LAB_ADOPTED_BYTES, 2 * LAB_ADOPTED_BYTES, MREMAP_MAYMOVE),
	        MAP_FAILED);
	lab_adopted_holds(moved, 0, LAB_ADOPTED_BYTES, 1);
	for (unsigned i = LAB_ADOPTED_BYTES; i < 2 * LAB_ADOPTED_BYTES; i++)
		assert_int_equal(moved[i], 0);
	munmap(moved, 2 * LAB_ADOPTED_BYTES);
}

LAB_CASE(memory_that_was_moved_is_private_again)
{
	char *m = lab_adopted_memory(), *moved;
	struct lab_peer **p = lab_adopted_begin();
	struct ibv_mr *mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);

	lab_adopted_expect(m, LAB_ADOPTED_PAGES, LAB_ADOPTED_PAGES);
	moved = mmap(NULL, LAB_ADOPTED_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_equal(mremap(m, LAB_ADOPTED_BYTES, LAB_ADOPTED_BYTES,
	                        MREMAP_MAYMOVE | MREMAP_FIXED, moved),
	                 moved);
	lab_adopted_deregister(mr);
	lab_adopted_expect(moved, LAB_ADOPTED_PAGES, 0);
	lab_adopted_holds(moved, 0, LAB_ADOPTED_BYTES, 1);
	lab_adopted_is_emptied(moved);
	munmap(moved, LAB_ADOPTED_BYTES);
}

LAB_CASE(what_the_program_forbade_meanwhile_stays_forbidden)
{
	char *m = lab_adopted_memory(), flags[256];
	struct lab_peer **p = lab_adopted_begin();
	struct ibv_mr *mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);

	assert_int_equal(mprotect(m, 2 * LAB_ADOPTED_PAGE, PROT_READ), 0);
	lab_adopted_deregister(mr);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 1);
	read_flags(m, flags);
	assert_null(strstr(flags, " wr"));
	munmap(m, LAB_ADOPTED_BYTES);
}

/* ---- who else runs in the memory ---- */

static ucontext_t outside, fiber;
static struct lab_peer **peers;

static void register_own_stack(void)
{
	char *m = fiber.uc_stack.ss_sp;
	struct ibv_mr *mr = lab_adopted_region(peers[0], m, fiber.uc_stack.ss_size);

	lab_adopted_write(peers, 0, LAB_ADOPTED_PAGE, 2); /* the far end of it */
	lab_adopted_holds(m, 0, LAB_ADOPTED_PAGE, 2);
	lab_adopted_deregister(mr);
}

LAB_CASE(a_fiber_may_register_its_stack)
{
	static char stack[64 * LAB_ADOPTED_PAGE];
	struct lab_peer **p = lab_adopted_begin();

	peers = p;
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = stack;
	fiber.uc_stack.ss_size = sizeof(stack);
	fiber.uc_link = &outside;
	makecontext(&fiber, register_own_stack, 0);
	assert_int_equal(swapcontext(&outside, &fiber), 0);
}

static int wait_in_memory(void *end)
{
	char c;

	return read(*(int *)end, &c, 1) != 1;
}

/* A process of its own, with the same memory: it is no thread. */
LAB_CASE(a_child_in_the_same_memory_keeps_it_where_it_is)
{
	static char stack[16 * LAB_ADOPTED_PAGE] __attribute__((aligned(16)));
	char *m = lab_adopted_memory();
	struct lab_peer **p;
	struct ibv_mr *mr;
	int ends[2];
	pid_t pid;

#ifdef __SANITIZE_THREAD__
	return; /* it takes the child for a thread that it does not know */
#endif
	p = lab_adopted_begin();
	assert_int_equal(pipe(ends), 0);
	pid = clone(wait_in_memory, stack + sizeof(stack), CLONE_VM | CLONE_FILES | SIGCHLD,
	            &ends[0]);
	assert_true(pid > 0);
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_expect(m, LAB_ADOPTED_PAGES, 0);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 2);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 2);
	lab_adopted_deregister(mr);
	assert_int_equal(write(ends[1], "", 1), 1);
	harness_expect_success(pid);
	close(ends[0]);
	close(ends[1]);
	munmap(m, LAB_ADOPTED_BYTES);
}

/* ---- memory that is shared already ---- */

/* The peer attaches a segment where it lies. Its owner may have removed it, as UCX does. */
LAB_CASE(a_system_v_segment_is_reached_where_it_lies)
{
	struct shmid_ds ds;
	struct ibv_mr *mr;
	char *m;
	int id;
	struct lab_peer **p = lab_adopted_begin();

	for (unsigned round = 0; round < 3; round++) {
		id = shmget(IPC_PRIVATE, LAB_ADOPTED_BYTES, IPC_CREAT | 0600);
		assert_true(id >= 0);
		m = shmat(id, NULL, 0);
		assert_ptr_not_equal(m, (char *)-1);
		mr = lab_adopted_region(p[0], m + 100, LAB_ADOPTED_BYTES - 200);
		lab_adopted_write(p, 0, LAB_ADOPTED_BYTES - 200, round + 2);
		lab_adopted_holds(m + 100, 0, LAB_ADOPTED_BYTES - 200, round + 2);
		assert_int_equal(shmctl(id, IPC_STAT, &ds), 0);
		assert_int_equal(ds.shm_nattch, 2); /* the peer's process has it, too */
		assert_int_equal(shmctl(id, IPC_RMID, NULL), 0);
		lab_adopted_write(p, 1, LAB_ADOPTED_PAGE, round + 3);
		lab_adopted_holds(m + 101, 0, LAB_ADOPTED_PAGE, round + 3);
		lab_adopted_deregister(mr);
		assert_int_equal(shmdt(m), 0);
	}
}

/* ---- who may look ---- */

/* Copies by the system calls are forbidden then, but for those by a descriptor. Root may always. */
LAB_CASE(a_process_may_become_secretive)
{
	char *m = mmap(NULL, LAB_ADOPTED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
	               -1, 0);
	struct lab_peer **p;
	struct ibv_mr *mr;

	assert_ptr_not_equal(m, MAP_FAILED);
	p = lab_adopted_begin();
	mr = lab_adopted_region(p[0], m, LAB_ADOPTED_BYTES);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 2);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 2);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0);
	lab_adopted_write(p, 0, LAB_ADOPTED_BYTES, 3);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
	lab_adopted_holds(m, 0, LAB_ADOPTED_BYTES, 3);
	lab_adopted_deregister(mr);
	munmap(m, LAB_ADOPTED_BYTES);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
