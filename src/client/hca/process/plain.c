/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Plain memory: see plain.h.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/io_uring.h>
#include <linux/kcmp.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "hca/process/direct.h"
#include "hca/process/maps.h"
#include "hca/process/plain.h"

/* Of /proc/self/pagemap(5). */
#define PAGE_IS_THERE  (1ull << 63)
#define PAGE_IS_SHARED (1ull << 61) /* or of a file */

/* Looking into /proc/self/smaps takes the longer the more memory a process has. */
#define MOST_PAGES (1ull << 16)
#define MOST_FDS   256 /* each costs a system call */

#ifndef IORING_ENTER_REGISTERED_RING
#define IORING_ENTER_REGISTERED_RING (1u << 4)
#endif

/* ---- who else has this address space ---- */

/* Whether child process @pid has a memory of its own. */
static bool is_apart(pid_t pid)
{
	long ret = syscall(SYS_kcmp, getpid(), pid, KCMP_VM, 0, 0);

	return ret > 0 || (ret < 0 && errno == ESRCH);
}

/* Whether the children, as far as the list goes, have memories of their own. */
static bool are_apart(const char *list)
{
	char *end;

	for (; *list; list = end) {
		long pid = strtol(list, &end, 10);

		if (end == list)
			return *list == ' ' && !list[1];
		if (!is_apart((pid_t)pid))
			return false;
	}
	return true;
}

/* Whether no child shares the address space, as those of vfork(2) and of clone(2) may. */
static bool children_are_apart(void)
{
	char list[1024];
	siginfo_t info;
	ssize_t n;
	int fd;

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL))
		return errno == ECHILD;
	fd = hca_direct_open(AT_FDCWD, "/proc/thread-self/children", O_RDONLY);
	if (fd < 0)
		return false;
	n = hca_direct_read(fd, list, sizeof(list) - 1);
	hca_direct_close(fd);
	if (n <= 0 || n == sizeof(list) - 1)
		return false;
	list[n] = '\0';
	return are_apart(list);
}

bool hca_plain_alone(void)
{
	struct stat s;

	/* changes nothing, and succeeds only if nobody else uses the memory */
	if (!unshare(CLONE_VM))
		return true;
	if (errno == EINVAL)
		return false;
	/* forbidden, as in containers */
	return !hca_direct_stat(AT_FDCWD, "/proc/self/task", &s) && s.st_nlink == 3 &&
	       children_are_apart();
}

/* ---- other threads ---- */

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

/* Reads the text of a thread's file. False, with errno: the file cannot be read, or is longer. */
static bool read_of(int tasks, const char *tid, const char *file, char text[static 1024])
{
	char name[32];
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "%.16s/%s", tid, file);
	fd = hca_direct_open(tasks, name, O_RDONLY);
	if (fd < 0)
		return false;
	n = hca_direct_read(fd, text, 1023);
	hca_direct_close(fd);
	errno = n == 1023 ? E2BIG : errno;
	text[n < 0 ? 0 : n] = '\0';
	return n >= 0 && n < 1023;
}

/* By the number of the system call that the thread is in, and its arguments, if it is asleep. */
static bool waits_there(const char *call, uint64_t from, uint64_t to)
{
	uint64_t addr;
	long number;

	if (sscanf(call, "%ld %" SCNx64, &number, &addr) != 2)
		return false;
	return number == SYS_futex_waitv || (number == SYS_futex && addr >= from && addr < to);
}

static bool is_calm(int tasks, const char *tid, uint64_t from, uint64_t to)
{
	char text[1024];

	if (!read_of(tasks, tid, "syscall", text))
		return errno == ENOENT || errno == ESRCH; /* it has ended */
	return !waits_there(text, from, to) &&
	       !syscall(SYS_kcmp, getpid(), atoi(tid), KCMP_FILES, 0, 0) &&
	       read_of(tasks, tid, "children", text) && are_apart(text);
}

/* Whether the threads in a piece of the directory notice nothing. */
static bool are_calm(int tasks, const char *piece, long bytes, uint64_t from, uint64_t to)
{
	for (long at = 0; at < bytes;) {
		const struct dirent64 *d = (const struct dirent64 *)(piece + at);

		at += d->d_reclen;
		if (d->d_name[0] != '.' && !is_calm(tasks, d->d_name, from, to))
			return false;
	}
	return true;
}

bool hca_plain_noticed(uint64_t from, uint64_t to)
{
	_Alignas(struct dirent64) char piece[1024];
	int tasks = hca_direct_open(AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY);
	bool calm = tasks >= 0;
	long bytes;

	while (calm && (bytes = syscall(SYS_getdents64, tasks, piece, sizeof(piece))) != 0)
		calm = bytes > 0 && are_calm(tasks, piece, bytes, from, to);
	if (tasks >= 0)
		hca_direct_close(tasks);
	return !calm;
}

/* ---- what the kernel may have pinned ---- */

/* Whether memory is pinned for as long as somebody likes: VmPin of /proc/self/status. */
static bool has_vm_pin(void)
{
	struct hca_maps m;
	const char *line;
	bool pinned = true;

	if (!hca_maps_open(&m, "/proc/self/status"))
		return true;
	while ((line = hca_maps_line(&m)))
		if (!strncmp(line, "VmPin:", 6))
			pinned = strtoul(line + 6, NULL, 10) != 0;
	hca_maps_close(&m);
	return pinned;
}

/* Whether there are rings by which the kernel is asked to write to memory later. */
static bool has_rings(void)
{
	struct hca_maps m;
	struct hca_vma v;
	bool found = false;

	if (!hca_maps_open(&m, "/proc/self/maps"))
		return true;
	while (!found && hca_maps_next(&m, &v))
		found = !strncmp(v.name, "/[aio]", 6) || strstr(v.name, "[io_uring]");
	hca_maps_close(&m);
	return found;
}

/* A socket of AF_XDP has pinned the memory of its frames. */
static bool is_plain_socket(int fd)
{
	int domain;
	socklen_t bytes = sizeof(domain);

	return !hca_direct_getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) &&
	       domain != AF_XDP;
}

/* Rings that have neither a descriptor nor a mapping of their own. */
static bool has_registered_rings(void)
{
	for (unsigned i = 0; i < 16; i++)
		if (!syscall(SYS_io_uring_enter, i, 0, 0, IORING_ENTER_REGISTERED_RING, NULL, 0))
			return true;
	return false;
}

/* Open files on whose behalf the kernel writes to no memory later. */
static const char *const harmless[] = {
	"/dev/null",
	"/dev/zero",
	"/dev/full",
	"/dev/random",
	"/dev/urandom",
	"/dev/tty",
	"/dev/pts/",
	"/dev/ptmx",
	"/dev/console",
	"/dev/shm/",
	"/dev/net/tun", /* copies, and is done when the call is */
	"pipe:[",
	"mnt:[",
	"net:[",
	"user:[",
	"pid:[",
	"ipc:[",
	"uts:[",
	"anon_inode:[eventfd",
	"anon_inode:[eventpoll",
	"anon_inode:[timerfd",
	"anon_inode:[signalfd",
	"anon_inode:[pidfd",
	"anon_inode:inotify",
	"anon_inode:[userfaultfd", /* of memory that is not plain */
};

static bool is_harmless(int dir, const char *name)
{
	struct stat s;
	char link[64];
	ssize_t n = hca_direct_readlink(dir, name, link, sizeof(link) - 1);

	if (n < 0)
		return false;
	link[n] = '\0';
	if (!strncmp(link, "socket:[", 8))
		return is_plain_socket(atoi(name));
	for (unsigned i = 0; i < ARRAY_SIZE(harmless); i++)
		if (!strncmp(link, harmless[i], strlen(harmless[i])))
			return true;
	/* data from a device, or past the kernel's buffers, may come later */
	return link[0] == '/' && !hca_direct_stat(dir, name, &s) && !S_ISCHR(s.st_mode) &&
	       !S_ISBLK(s.st_mode) && !(hca_direct_flags(atoi(name)) & O_DIRECT);
}

/* Whether all entries of a piece of the directory are harmless; counts them. */
static bool are_harmless(int dir, const char *piece, long bytes, unsigned *n)
{
	for (long at = 0; at < bytes;) {
		const struct dirent64 *d = (const struct dirent64 *)(piece + at);

		if (d->d_name[0] != '.' && (++*n > MOST_FDS || !is_harmless(dir, d->d_name)))
			return false;
		at += d->d_reclen;
	}
	return true;
}

/* Whether an open file may stand for memory that a device or the kernel writes to. */
static bool has_doubtful_files(void)
{
	_Alignas(struct dirent64) char piece[1024];
	int dir = hca_direct_open(AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY);
	unsigned n = 0;
	long bytes;
	bool good = dir >= 0;

	while (good && (bytes = syscall(SYS_getdents64, dir, piece, sizeof(piece))) != 0)
		good = bytes > 0 && are_harmless(dir, piece, bytes, &n);
	if (dir >= 0)
		hca_direct_close(dir);
	return !good;
}

bool hca_plain_pinned(void)
{
	return has_vm_pin() || has_rings() || has_registered_rings() || has_doubtful_files();
}

/* ---- the pages ---- */

static bool read_pagemap(int fd, uint64_t at, uint64_t *entry, size_t n)
{
	size_t bytes = n * sizeof(*entry);

	return pread(fd, entry, bytes, (off_t)(at / HCA_PAGE * sizeof(*entry))) == (ssize_t)bytes;
}

bool hca_plain_is_shared(uint64_t at)
{
	int fd = hca_direct_open(AT_FDCWD, "/proc/self/pagemap", O_RDONLY);
	uint64_t entry = 0;

	if (fd < 0)
		return false;
	if (!read_pagemap(fd, at, &entry, 1))
		entry = 0;
	hca_direct_close(fd);
	return (entry & PAGE_IS_THERE) && (entry & PAGE_IS_SHARED);
}

/* Whether all pages are there, and are private anonymous ones. */
static bool are_private(uint64_t from, uint64_t to)
{
	int fd = hca_direct_open(AT_FDCWD, "/proc/self/pagemap", O_RDONLY);
	uint64_t entry[128];
	bool good = fd >= 0;

	for (uint64_t at = from; at < to && good;) {
		size_t n = (to - at) / HCA_PAGE;

		n = n < ARRAY_SIZE(entry) ? n : ARRAY_SIZE(entry);
		good = read_pagemap(fd, at, entry, n);
		for (size_t i = 0; i < n && good; i++)
			good = (entry[i] & PAGE_IS_THERE) && !(entry[i] & PAGE_IS_SHARED);
		at += n * HCA_PAGE;
	}
	if (fd >= 0)
		hca_direct_close(fd);
	return good;
}

static bool touches(uint64_t from, uint64_t to, uint64_t begin, uint64_t end)
{
	return from < end && to > begin;
}

/* Whether the range touches the stack that this thread runs on, where that is in use or about to
 * be, or what the C library and the kernel write to: the thread's descriptor, errno. A stack may
 * lie in any memory: a fiber's, a signal's. */
static bool is_in_use(uint64_t from, uint64_t to)
{
	uint64_t frame = (uintptr_t)__builtin_frame_address(0);
	uint64_t self = (uintptr_t)pthread_self();
	uint64_t error = (uintptr_t)&errno;

	return touches(from, to, frame - 256 * 1024, frame + 64 * 1024) ||
	       touches(from, to, self, self + HCA_PAGE) ||
	       touches(from, to, error, error + sizeof(errno));
}

/* Whether the flags of a mapping are those of memory about which nothing was said. */
static bool are_plain_flags(const char *flags)
{
	static const char plain[] = " rd wr mr mw me ac sd ";
	char word[5] = " xx ";

	for (; *flags; flags++) {
		if (*flags == ' ')
			continue;
		if (!flags[1])
			return false;
		word[1] = flags[0];
		word[2] = flags[1];
		if (!strstr(plain, word))
			return false;
		flags++;
	}
	return true;
}

/* Whether what the lines of a mapping in /proc/self/smaps say, this one among them, is plain. */
static bool is_plain_line(const char *line)
{
	if (!strncmp(line, "VmFlags:", 8))
		return are_plain_flags(line + 8);
	if (!strncmp(line, "ProtectionKey:", 14))
		return strtoul(line + 14, NULL, 10) == 0;
	return true;
}

static bool is_plain_vma(const struct hca_vma *v)
{
	return !v->shared && !v->inode && v->prot == (PROT_READ | PROT_WRITE) &&
	       (!v->name[0] || !strcmp(v->name, "[heap]"));
}

/* Whether all mappings of the range are plain. */
static bool has_plain_mappings(uint64_t from, uint64_t to)
{
	struct hca_maps m;
	struct hca_vma v = { 0 };
	const char *line;
	bool good = true, inside = false, flags = true;

	if (!hca_maps_open(&m, "/proc/self/smaps"))
		return false;
	while (good && (line = hca_maps_line(&m))) {
		if (hca_maps_parse(line, &v)) {
			if (!flags || v.from >= to) /* of the one before */
				break;
			inside = v.to > from;
			if (!inside)
				continue;
			good = v.from <= from && is_plain_vma(&v);
			from = v.to;
			flags = false;
		} else if (inside) {
			flags |= !strncmp(line, "VmFlags:", 8);
			good = is_plain_line(line);
		}
	}
	hca_maps_close(&m);
	return good && flags && from >= to;
}

/* Whether the kernel chooses the node of the page as it likes (set_mempolicy(2)). */
static bool has_no_policy(uint64_t at)
{
	int mode = MPOL_DEFAULT;

	return syscall(SYS_get_mempolicy, &mode, NULL, 0, at, MPOL_F_ADDR) || mode == MPOL_DEFAULT;
}

/* Whether looking at all mappings takes not long. */
static bool is_small(void)
{
	struct hca_maps m;
	const char *line;
	uint64_t resident = MOST_PAGES + 1;

	if (!hca_maps_open(&m, "/proc/self/statm"))
		return false;
	line = hca_maps_line(&m);
	if (!line || sscanf(line, "%*u %" SCNu64, &resident) != 1)
		resident = MOST_PAGES + 1;
	hca_maps_close(&m);
	return resident <= MOST_PAGES;
}

bool hca_plain_range(uint64_t from, uint64_t to)
{
	return sysconf(_SC_PAGESIZE) == HCA_PAGE && !is_in_use(from, to) && are_private(from, to) &&
	       has_no_policy(from) && is_small() && has_plain_mappings(from, to);
}
