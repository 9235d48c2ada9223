/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets in the network of a host: see socket.h. A process that enters a user namespace does not
 * come out again. So a child goes there, makes the socket and ends. As by vfork(2) it has our
 * memory, and we wait for it; and it has our descriptors, so the socket is ours at once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "hosts/socket.h"

#define STACK_BYTES 32768

#ifdef __SANITIZE_THREAD__ /* takes a child in our memory for one of fork(), and is blind then */
#define SHARED CLONE_FILES
#else
#define SHARED (CLONE_VM | CLONE_VFORK | CLONE_FILES)
#endif

struct job {
	const struct hosts_namespaces *ns;
	int family, type, protocol;
	int result;
};

/* In the child, while the parent stands still. */
static int make(void *arg)
{
	struct job *job = arg;

	if (job->ns->user >= 0 && setns(job->ns->user, CLONE_NEWUSER))
		job->result = -errno;
	else if (setns(job->ns->net, CLONE_NEWNET))
		job->result = -errno;
	else
		job->result = socket(job->family, job->type | SOCK_CLOEXEC, job->protocol);
	if (job->result == -1)
		job->result = -errno;
	return 0;
}

int hosts_socket(const struct hosts_namespaces *ns, int family, int type, int protocol)
{
	_Alignas(16) char stack[STACK_BYTES];
	struct job *job =
	        mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sigset_t all, before;
	int pid, ret;

	if (job == MAP_FAILED)
		return -errno;
	*job = (struct job){ ns, family, type, protocol, -ECHILD };

	/* a handler of ours would run in the child */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = clone(make, stack + sizeof(stack), SHARED, job);
	ret = -errno;
	while (pid >= 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid >= 0)
		ret = job->result;
	munmap(job, sizeof(*job));
	return ret;
}
