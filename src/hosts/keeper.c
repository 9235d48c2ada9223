/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keeper: see keeper.h. What it sends are packets (control/socket.h): first one with the user
 * namespace, if there is one, then one with the descriptors of each host, in order; or one with a
 * status and the reason in words.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "control/socket.h"
#include "hosts/keeper.h"

#define STOP_MS 3000

enum { KEEPER_USER = 1, KEEPER_HOST };

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

static int make_hosts(int sock, const struct hosts_plan *plan, char *why, size_t len)
{
	struct hosts_namespaces ns;
	struct hosts_site site;
	int ret = hosts_site_enter(&site, plan->names, plan->dir, why, len);

	if (!ret)
		ret = send_user(sock, site.user);
	for (unsigned i = 0; !ret && i < plan->n; i++) {
		ret = hosts_namespaces_make(&ns, &site, plan->name(plan->arg, i), why, len);
		if (ret)
			break;
		ret = send_host(sock, &ns);
		hosts_namespaces_close(&ns);
	}
	return ret;
}

static _Noreturn void keep(int sock, pid_t daemon, const struct hosts_plan *plan)
{
	char why[CONTROL_MAX_BYTES / 2] = "", byte;
	int ret;

	prctl(PR_SET_NAME, "umbel-keeper");
	die_with(daemon);
	close_others(sock);
	ret = make_hosts(sock, plan, why, sizeof(why));
	die_with(daemon);
	if (ret)
		send_failure(sock, ret, why);
	while (!ret && recv(sock, &byte, 1, 0) != 0)
		;
	_exit(ret ? 1 : 0);
}

/* ---- in the daemon ---- */

/* The next packet, of @type: 0; else -errno, with @why if the keeper says it. */
static int receive(const struct hosts_keeper *k, struct control_packet *p, uint32_t type, char *why,
                   size_t len)
{
	int ret = control_receive(k->sock, p);

	if (ret == -EMFILE)
		snprintf(why, len,
		         "each host's namespaces need three descriptors; raise the limit (ulimit "
		         "-n)");
	else if (ret)
		snprintf(why, len, "the process that makes the hosts' namespaces has ended");
	if (ret)
		return ret;
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
	ret = receive_hosts(k, ns, plan->n, why, len);
	if (ret)
		hosts_keeper_stop(k);
	return ret;
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
