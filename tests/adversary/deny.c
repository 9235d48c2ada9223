/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs a command as the seccomp filter of a container would: deny ERRNO SYSCALL... -- COMMAND.
 * System calls by name, as far as the tests need them; ERRNO is EPERM, EACCES or ENOSYS.
 */
#include "posix.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

#define MOST 16

static const struct {
	const char *name;
	int number;
} calls[] = {
	{ "pidfd_open", SYS_pidfd_open },
	{ "memfd_create", SYS_memfd_create },
	{ "userfaultfd", SYS_userfaultfd },
	{ "ioctl", SYS_ioctl },
	{ "process_vm_readv", SYS_process_vm_readv },
	{ "process_vm_writev", SYS_process_vm_writev },
	{ "eventfd2", SYS_eventfd2 },
	{ "signalfd4", SYS_signalfd4 },
	{ "socketpair", SYS_socketpair },
	{ "setsid", SYS_setsid },
	{ "ftruncate", SYS_ftruncate },
	{ "set_robust_list", SYS_set_robust_list },
	{ "epoll_create1", SYS_epoll_create1 },
	{ "clone3", SYS_clone3 },
	{ "unshare", SYS_unshare },
	{ "mount", SYS_mount },
	{ "setns", SYS_setns },
	{ "open_tree", SYS_open_tree },
	{ "move_mount", SYS_move_mount },
	{ "flock", SYS_flock },
	{ "madvise", SYS_madvise },
};

static const struct {
	const char *name;
	int number;
} errors[] = { { "EPERM", EPERM }, { "EACCES", EACCES }, { "ENOSYS", ENOSYS } };

static int find_call(const char *name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (!strcmp(calls[i].name, name))
			return calls[i].number;
	return -1;
}

static int find_error(const char *name)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (!strcmp(errors[i].name, name))
			return errors[i].number;
	return -1;
}

static int install(struct sock_filter *filter, unsigned n)
{
	struct sock_fprog program = { (unsigned short)n, filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("deny: seccomp");
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sock_filter filter[2 * MOST + 2];
	int error = argc > 1 ? find_error(argv[1]) : -1, i = 2;
	unsigned n = 0;

	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
	                                           offsetof(struct seccomp_data, nr));
	for (; i < argc && strcmp(argv[i], "--") != 0 && i < MOST; i++) {
		int call = find_call(argv[i]);

		if (call < 0) {
			fprintf(stderr, "deny: no system call '%s' in the list\n", argv[i]);
			return 1;
		}
		filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
		                                           (unsigned)call, 0, 1);
		filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
		                                           SECCOMP_RET_ERRNO | (unsigned)error);
	}
	if (error < 0 || i + 1 >= argc) {
		fprintf(stderr, "usage: deny ERRNO SYSCALL... -- COMMAND\n");
		return 1;
	}
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (install(filter, n))
		return 1;
	execvp(argv[i + 1], argv + i + 1);
	perror("deny: exec");
	return 1;
}
