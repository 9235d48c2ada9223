/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hosts that are namespaces: see hosts.h.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/reason.h"
#include "base/util.h"
#include "daemon/clients/client.h"
#include "daemon/network/hosts.h"
#include "fabric/plan/plan.h"

/* ---- interfaces ---- */

static unsigned host_of_port(const struct daemon_hosts *hosts, unsigned port)
{
	const struct shm_region *r = hosts->f->region;

	return shm_hca_at(r, shm_port_at(r, port)->hca)->host_index;
}

/* Programs are those of all ports, and once more for each P_Key. */
static unsigned host_of(const void *hosts, unsigned program)
{
	const struct daemon_hosts *h = hosts;

	return host_of_port(h, program % h->f->n_ib_ports);
}

/* The interface's addresses, in partition @k; 0: the default one. With the prefixes of
 * fabric_plan_address(): port n of all hosts is in one network. */
static void write_own_addresses(const struct shm_port *p, unsigned k,
                                char ipv4[static INET_ADDRSTRLEN + 4],
                                char ipv6[static INET6_ADDRSTRLEN + 4])
{
	uint32_t address4 = p->ipv4;
	uint8_t address6[sizeof(p->ipv6)];

	memcpy(address6, p->ipv6, sizeof(address6));
	if (k)
		fabric_plan_partition_address(k - 1, &address4, address6);
	inet_ntop(AF_INET, &address4, ipv4, INET_ADDRSTRLEN);
	inet_ntop(AF_INET6, address6, ipv6, INET6_ADDRSTRLEN);
	strcat(ipv4, "/16");
	strcat(ipv6, "/64");
}

/* Becomes umbel-ipoib for a port, in a partition. */
static void become_ipoib(const void *arg, unsigned program, const struct hosts_start *start)
{
	const struct daemon_hosts *hosts = arg;
	unsigned port = program % hosts->f->n_ib_ports, k = program / hosts->f->n_ib_ports;
	char ipv4[INET_ADDRSTRLEN + 4], ipv6[INET6_ADDRSTRLEN + 4];
	char number[12], name[24], status[12], control[12], pkey[12];
	char *mode = hosts->f->settings.ipoib_mode ? "connected" : "datagram";
	char *argv[21] = { "umbel-ipoib", "--port",      number,      "--interface",  name,
		           "--mode",      mode,          "--address", ipv4,           "--address",
		           ipv6,          "--status-fd", status,      "--control-fd", control };
	unsigned n = 15;

	if (!start->again)
		argv[n++] = "--new";
	snprintf(number, sizeof(number), "%u", hosts->port_num[port]);
	snprintf(name, sizeof(name), "ib%u", hosts->port_num[port] - 1);
	if (k) {
		snprintf(pkey, sizeof(pkey), "%#x", hosts->options->pkey[k - 1]);
		snprintf(name, sizeof(name), "ib%u.%04x", hosts->port_num[port] - 1,
		         hosts->options->pkey[k - 1]);
		argv[n++] = "--await-pkey";
		argv[n++] = "--pkey";
		argv[n++] = pkey;
	} else if (hosts->port_num[port] == 1) {
		/* of several interfaces the first one has the route that groups need */
		argv[n++] = "--multicast";
	}
	write_own_addresses(shm_port_at(hosts->f->region, port), k, ipv4, ipv6);
	snprintf(status, sizeof(status), "%d", start->status_fd);
	snprintf(control, sizeof(control), "%d", start->control_fd);
	hosts->options->become(hosts->options->fabric,
	                       hosts->f->host[host_of_port(hosts, port)].name, argv);
}

/* The numbers of the ports, each host's from 1. 0 or -ENOMEM. */
static int number_ports(struct daemon_hosts *hosts)
{
	unsigned *used = calloc(hosts->f->n_hosts, sizeof(*used));

	hosts->port_num = calloc(hosts->f->n_hca_ports, sizeof(*hosts->port_num));
	for (unsigned i = 0; used && hosts->port_num && i < hosts->f->n_hca_ports; i++)
		hosts->port_num[i] = ++used[host_of_port(hosts, i)];
	free(used);
	return used && hosts->port_num ? 0 : -ENOMEM;
}

/* The keeper says that all are ready, or has died. */
static void on_keeper(struct daemon_source *s, uint32_t events)
{
	struct daemon_hosts *hosts = container_of(s, struct daemon_hosts, source);
	unsigned failed = 0;
	int ret = hosts_keeper_ready(&hosts->keeper, &failed);

	(void)events;
	if (ret < 0) {
		base_log_error(hosts, "the keeper of the hosts has ended: they have no interfaces "
		                      "any more, and get none until the fabric starts anew");
		daemon_source_stop(s);
	}
	if (ret && hosts->ready)
		hosts->ready(hosts->arg, ret < 0 || failed ? -EIO : 0);
	if (ret)
		hosts->ready = NULL;
}

int daemon_hosts_start(struct daemon_hosts *hosts)
{
	int ret;

	hosts->source.ready = on_keeper;
	ret = daemon_source_watch(hosts->loop, &hosts->source, hosts->keeper.sock, EPOLLIN);
	return ret ? ret : hosts_keeper_run(&hosts->keeper);
}

/* ---- namespaces ---- */

static const char *host_name(const void *hosts, unsigned host)
{
	return ((const struct daemon_hosts *)hosts)->f->host[host].name;
}

static void write_addresses(FILE *to, uint32_t ipv4, const uint8_t *ipv6, const char *name)
{
	char text[INET6_ADDRSTRLEN];

	fprintf(to, "%s\t%s\n", inet_ntop(AF_INET, &ipv4, text, sizeof(text)), name);
	fprintf(to, "%s\t%s\n", inet_ntop(AF_INET6, ipv6, text, sizeof(text)), name);
}

/* The hosts' /etc/hosts, from malloc(), or NULL. */
static char *write_names(const struct daemon_hosts *hosts)
{
	const struct fabric *f = hosts->f;
	const struct shm_region *r = f->region;
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	if (!to)
		return NULL;
	fputs("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n", to);
	for (unsigned i = 0; i < f->n_ib_ports; i++)
		write_addresses(to, shm_port_at(r, i)->ipv4, shm_port_at(r, i)->ipv6,
		                host_name(hosts, host_of_port(hosts, i)));
	for (unsigned i = 0; i < hosts->n_devices; i++)
		if (hosts->device[i].bridged)
			write_addresses(to, hosts->device[i].ipv4, hosts->device[i].ipv6,
			                host_name(hosts, hosts->device[i].host));
	return fclose(to) ? NULL : text;
}

/* Whether interfaces can be made here, before a thousand programs find out. 0, or -errno with @why.
 */
static int check_tun(char *why, size_t len)
{
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC), error = errno;

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	snprintf(why, len,
	         "interfaces of hosts need the device /dev/net/tun: %s; a container may have to be "
	         "given it",
	         strerror(error));
	return -error;
}

/* Whether all ports have addresses in the partitions. 0, or -EINVAL with @why. */
static int check_ports(const struct daemon_hosts *hosts, char *why, size_t len)
{
	for (unsigned i = 0; i < hosts->f->n_ib_ports; i++) {
		if (hosts->port_num[i] <= FABRIC_PLAN_PKEY_PORTS)
			continue;
		snprintf(why, len,
		         "--ipoib-pkey is for hosts with %d ports at most, and '%s' has more",
		         FABRIC_PLAN_PKEY_PORTS, host_name(hosts, host_of_port(hosts, i)));
		return -EINVAL;
	}
	return 0;
}

int daemon_hosts_make(struct daemon_hosts *hosts, const char *dir, char *why, size_t len)
{
	struct fabric *f = hosts->f;
	bool programs = hosts->options->ipoib && hosts->options->become;
	unsigned n_partitions = 1 + hosts->options->n_pkeys;
	char *names = write_names(hosts);
	struct hosts_plan plan = { .dir = dir,
		                   .names = names,
		                   .n_hosts = f->n_hosts,
		                   .n_programs = programs ? f->n_ib_ports * n_partitions : 0,
		                   .n_devices = hosts->n_devices,
		                   .device = hosts->device,
		                   .name = host_name,
		                   .host_of = host_of,
		                   .become = become_ipoib,
		                   .arg = hosts };
	struct hosts_namespaces *of = calloc(f->n_hosts, sizeof(*of));
	int ret = names && of ? number_ports(hosts) : -ENOMEM;

	if (!ret && plan.n_programs)
		ret = check_tun(why, len);
	if (!ret && n_partitions > 1)
		ret = check_ports(hosts, why, len);
	if (!ret)
		ret = hosts_keeper_start(&hosts->keeper, &plan, of, why, len);
	free(names);
	if (ret)
		free(of);
	else
		hosts->of = of;
	return ret;
}

int daemon_hosts_show(const struct daemon_hosts *hosts, int *fd)
{
	int pair[2], ret;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -EMFILE;
	if (hosts->of)
		ret = hosts_keeper_show(&hosts->keeper, pair[1]);
	else
		ret = write(pair[1], "[]", 2) == 2 ? 0 : -errno;
	close(pair[1]);
	if (ret)
		close(pair[0]);
	else
		*fd = pair[0];
	return ret;
}

void daemon_hosts_stop(struct daemon_hosts *hosts)
{
	if (hosts->of)
		hosts_keeper_stop(&hosts->keeper);
}

/* ---- requests ---- */

static int enter(struct daemon_call *call)
{
	const struct daemon_hosts *hosts = call->module;
	struct control_enter_host_reply *reply;
	const struct hosts_namespaces *ns;
	int host = call->client->host_index, ret = 0;

	if (!hosts->of || host < 0)
		return -EOPNOTSUPP;
	if (!call->client->is_owner)
		return base_because(-EACCES, "only the fabric's owner may enter its namespaces");
	ns = &hosts->of[host];
	for (unsigned i = 0; !ret && i < 4; i++) {
		int fd = (int[]){ ns->net, ns->uts, ns->mnt, ns->user }[i];

		if (fd >= 0)
			ret = daemon_call_give_copy(call, fd);
	}
	if (ret)
		return ret;
	reply = daemon_call_reply(call, sizeof(*reply));
	*reply = (struct control_enter_host_reply){ (uint32_t)host, hosts->f->settings.host_cpus };
	return 0;
}

static const struct daemon_request requests[] = {
	{ .type = CONTROL_ENTER_HOST, .bytes = 0, .who = DAEMON_CLI, .serve = enter },
};

void daemon_hosts_init(struct daemon_hosts *hosts, struct daemon_requests *all)
{
	daemon_requests_add(all, requests, ARRAY_SIZE(requests), hosts);
}
