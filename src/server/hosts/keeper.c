/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keeper: see keeper.h. It sends packets (control/socket.h): first one with the user namespace,
 * if there is one, then one with the descriptors of each host, in order; or one with a status and
 * the reason in words. Later it gets RUN and SHOW, and sends READY.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/newer_libc.h"
#include "control/socket.h"
#include "hosts/devices.h"
#include "hosts/keeper.h"
#include "hosts/programs.h"

#define STOP_MS   1000
#define WHY_BYTES (CONTROL_MAX_BYTES / 2)
#define MAKERS    8

enum { KEEPER_USER = 1, KEEPER_HOST, KEEPER_RUN, KEEPER_READY, KEEPER_SHOW };

/* The subject of an event of the keeper's loop, unless it is a program. */
enum { ABOUT_DAEMON = UINT32_MAX, ABOUT_CHILDREN = UINT32_MAX - 1 };

/* ---- in the keeper ---- */

/* Has the kernel kill us when the daemon dies. Each change of credentials may have undone it. */
static void die_with(pid_t daemon)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != daemon)
		_exit(1);
}

static void close_others(int sock)
{
	if (sock > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, (unsigned)sock - 1, 0);
	closefrom(sock + 1);
}

static int send_host(int sock, const struct hosts_namespaces *ns)
{
	struct control_packet p = { .header = { .type = KEEPER_HOST },
		                    .fd = { ns->net, ns->uts, ns->mnt },
		                    .n_fds = 3 };

	return control_send(sock, &p);
}

static int send_user(int sock, int user)
{
	struct control_packet p = { .header = { .type = KEEPER_USER },
		                    .fd = { user },
		                    .n_fds = user >= 0 };

	return control_send(sock, &p);
}

static void send_failure(int sock, int error, const char *why)
{
	struct control_packet p = { .header = { .status = error,
		                                .bytes = (uint32_t)strlen(why) + 1 } };

	memcpy(p.body, why, p.header.bytes);
	control_send(sock, &p);
}

/* Makes hosts, as others do, until none is left. */
struct maker {
	pthread_t thread;
	const struct hosts_plan *plan;
	const struct hosts_site *site;
	struct hosts_namespaces *ns;
	atomic_uint *next; /* the first that nobody makes yet */
	int ret;
	char why[WHY_BYTES];
};

static void *make_some(void *arg)
{
	struct maker *m = arg;
	unsigned i;

	if (unshare(CLONE_FS)) /* root and current directory, which go with mounts */
		m->ret = -errno;
	while (!m->ret && (i = atomic_fetch_add(m->next, 1)) < m->plan->n_hosts)
		m->ret = hosts_namespaces_make(&m->ns[i], m->site, m->plan->name(m->plan->arg, i),
		                               m->why, sizeof(m->why));
	return NULL;
}

/* By this thread, which comes back: as far as it may, since nobody returns to a network that
 * belongs to another user namespace. */
static void make_alone(struct maker *m)
{
	int net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	make_some(m);
	if (net < 0 || setns(net, CLONE_NEWNET))
		base_log_info(hosts, "the keeper stays on the network of the last host");
	if (setns(m->site->template, CLONE_NEWNS))
		base_log_info(hosts, "the keeper stays with the mounts of the last host");
	if (net >= 0)
		close(net);
}

/* Makes the namespaces of all hosts, by several threads if it may have them: mostly each of them
 * waits, until all processors have taken note of a new network. 0, or -errno with @why. */
static int make_namespaces(const struct hosts_plan *plan, const struct hosts_site *site,
                           struct hosts_namespaces *ns, char why[static WHY_BYTES])
{
	struct maker maker[MAKERS];
	unsigned n = 0, wanted = plan->n_hosts < MAKERS ? plan->n_hosts : MAKERS;
	atomic_uint next = 0;
	int ret = 0;

	for (unsigned i = 0; i < MAKERS; i++)
		maker[i] = (struct maker){ .plan = plan, .site = site, .ns = ns, .next = &next };
	while (n < wanted && !pthread_create(&maker[n].thread, NULL, make_some, &maker[n]))
		n++;
	if (!n)
		make_alone(&maker[0]);
	for (unsigned i = 0; i < n; i++)
		pthread_join(maker[i].thread, NULL);
	for (unsigned i = 0; i < MAKERS && !ret; i++) {
		ret = maker[i].ret;
		memcpy(why, maker[i].why, WHY_BYTES);
	}
	return ret;
}

/* Makes the hosts; their namespaces stay open here, too, for the programs. */
static int make_hosts(int sock, const struct hosts_plan *plan, struct hosts_namespaces *ns,
                      char why[static WHY_BYTES])
{
	struct hosts_site site;
	int bridge = -1; /* stays open as long as we live */
	int ret = hosts_site_enter(&site, plan->names, plan->dir, why, WHY_BYTES);

	if (!ret)
		ret = send_user(sock, site.user);
	if (!ret)
		ret = make_namespaces(plan, &site, ns, why);
	if (!ret)
		ret = hosts_devices_make(plan, ns, &bridge, why, WHY_BYTES);
	for (unsigned i = 0; !ret && i < plan->n_hosts; i++) {
		ret = send_host(sock, &ns[i]);
		if (!plan->n_programs)
			hosts_namespaces_close(&ns[i]);
	}
	return ret;
}

static void tell_ready(int sock, unsigned failed)
{
	struct control_packet p = { .header = { .type = KEEPER_READY, .bytes = sizeof(failed) } };

	memcpy(p.body, &failed, sizeof(failed));
	control_send(sock, &p);
}

/* Carries out a request of the daemon. -EPIPE: the keeper is to end. */
static int obey(int sock, struct hosts_programs *programs)
{
	struct control_packet p;
	int ret = control_receive(sock, &p);

	if (ret)
		return ret;
	if (p.header.type == KEEPER_RUN) {
		hosts_programs_start(programs);
		if (!programs->unready)
			tell_ready(sock, programs->failed);
	} else if (p.header.type == KEEPER_SHOW && p.n_fds) {
		hosts_programs_show(programs, p.fd[0]);
	}
	control_close_fds(&p);
	return 0;
}

/* An event: about @what. -EPIPE: the daemon has gone. */
static int handle(int sock, int child_fd, struct hosts_programs *programs, uint32_t what)
{
	struct signalfd_siginfo info;
	unsigned unready = programs->unready;

	if (what == ABOUT_DAEMON)
		return obey(sock, programs);
	if (what == ABOUT_CHILDREN) {
		while (read(child_fd, &info, sizeof(info)) > 0)
			;
		hosts_programs_reap(programs);
	} else {
		hosts_programs_heard(programs, what);
	}
	if (unready && !programs->unready)
		tell_ready(sock, programs->failed);
	return 0;
}

/* Runs the programs until the daemon is gone. */
static int serve(int sock, const struct hosts_plan *plan, const struct hosts_namespaces *ns)
{
	struct hosts_programs programs = { .plan = plan, .ns = ns };
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = ABOUT_DAEMON };
	sigset_t child;
	int child_fd, ret = hosts_programs_init(&programs);

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	child_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	programs.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (ret || child_fd < 0 || epoll_ctl(programs.epoll_fd, EPOLL_CTL_ADD, sock, &event))
		return 1;
	event.data.u32 = ABOUT_CHILDREN;
	if (epoll_ctl(programs.epoll_fd, EPOLL_CTL_ADD, child_fd, &event))
		return 1;
	while (ret != -EPIPE) {
		int n = epoll_wait(programs.epoll_fd, &event, 1, hosts_programs_restart(&programs));

		if (n > 0)
			ret = handle(sock, child_fd, &programs, event.data.u32);
	}
	hosts_programs_kill(&programs);
	return 0;
}

static _Noreturn void keep(int sock, pid_t daemon, const struct hosts_plan *plan)
{
	struct hosts_namespaces *ns = calloc(plan->n_hosts, sizeof(*ns));
	char why[WHY_BYTES] = "";
	int ret = -ENOMEM;

	prctl(PR_SET_NAME, "umbel-keeper");
	die_with(daemon);
	close_others(sock);
	if (ns)
		ret = make_hosts(sock, plan, ns, why);
	die_with(daemon);
	if (ret)
		send_failure(sock, ret, why);
	_exit(ret ? 1 : serve(sock, plan, ns));
}

/* ---- in the daemon ---- */

/* The next packet, of @type: 0; else -errno, with @why if the keeper says it. */
static int receive(const struct hosts_keeper *k, struct control_packet *p, uint32_t type, char *why,
                   size_t len)
{
	int ret = control_receive(k->sock, p);

	if (ret == -EMFILE)
		return hosts_fail_for_descriptors(why, len);
	if (ret) {
		snprintf(why, len, "the process that makes the hosts' namespaces has ended");
		return ret;
	}
	if (p->header.status) {
		snprintf(why, len, "%.*s", (int)p->header.bytes, (const char *)p->body);
		control_close_fds(p);
		return p->header.status;
	}
	if (p->header.type == type && p->n_fds == (type == KEEPER_HOST ? 3 : p->n_fds))
		return 0;
	control_close_fds(p);
	return -EPROTO;
}

static int receive_hosts(const struct hosts_keeper *k, struct hosts_namespaces *ns, unsigned n,
                         char *why, size_t len)
{
	struct control_packet p;
	int ret = receive(k, &p, KEEPER_USER, why, len), user;

	if (ret)
		return ret;
	user = p.n_fds ? p.fd[0] : -1;
	for (unsigned i = 0; i < n; i++) {
		ret = receive(k, &p, KEEPER_HOST, why, len);
		if (!ret) {
			ns[i] = (struct hosts_namespaces){ p.fd[0], p.fd[1], p.fd[2], user };
			continue;
		}
		while (i)
			hosts_namespaces_close(&ns[--i]);
		if (user >= 0)
			close(user);
		return ret;
	}
	return 0;
}

int hosts_keeper_start(struct hosts_keeper *k, const struct hosts_plan *plan,
                       struct hosts_namespaces *ns, char *why, size_t len)
{
	pid_t daemon = getpid();
	int sock[2], ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		return -errno;
	k->pid = fork();
	if (k->pid == 0)
		keep(sock[1], daemon, plan);
	ret = k->pid < 0 ? -errno : 0;
	close(sock[1]);
	k->sock = sock[0];
	if (ret) {
		close(k->sock);
		return ret;
	}
	ret = receive_hosts(k, ns, plan->n_hosts, why, len);
	if (ret)
		hosts_keeper_stop(k);
	else /* from now on nobody waits for it */
		fcntl(k->sock, F_SETFL, O_NONBLOCK);
	return ret;
}

int hosts_keeper_run(const struct hosts_keeper *k)
{
	struct control_packet p = { .header = { .type = KEEPER_RUN } };

	return control_send(k->sock, &p);
}

int hosts_keeper_ready(const struct hosts_keeper *k, unsigned *failed)
{
	struct control_packet p;
	int ret = control_receive(k->sock, &p);

	if (ret)
		return ret == -EAGAIN ? 0 : ret;
	control_close_fds(&p);
	if (p.header.type != KEEPER_READY || p.header.bytes != sizeof(*failed))
		return -EPROTO;
	memcpy(failed, p.body, sizeof(*failed));
	return 1;
}

int hosts_keeper_show(const struct hosts_keeper *k, int fd)
{
	struct control_packet p = { .header = { .type = KEEPER_SHOW }, .fd = { fd }, .n_fds = 1 };

	return control_send(k->sock, &p) ? -EBUSY : 0;
}

void hosts_keeper_stop(struct hosts_keeper *k)
{
	struct pollfd end = { .fd = k->sock, .events = POLLIN };
	char byte;

	shutdown(k->sock, SHUT_WR);
	while (poll(&end, 1, STOP_MS) > 0 && recv(k->sock, &byte, 1, MSG_DONTWAIT) > 0)
		;
	kill(k->pid, SIGKILL); /* it has ended, unless it is stopped */
	while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(k->sock);
}
