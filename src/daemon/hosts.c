/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hosts that are namespaces: see hosts.h.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/util.h"
#include "daemon/client.h"
#include "daemon/hosts.h"

static const char *host_name(void *fabric, unsigned host)
{
	const struct fabric *f = fabric;

	return f->host[host].name;
}

static void write_port(FILE *to, const struct shm_port *port, const char *name)
{
	char text[INET6_ADDRSTRLEN];

	fprintf(to, "%s\t%s\n", inet_ntop(AF_INET, &port->ipv4, text, sizeof(text)), name);
	fprintf(to, "%s\t%s\n", inet_ntop(AF_INET6, port->ipv6, text, sizeof(text)), name);
}

/* The hosts' /etc/hosts, from malloc(), or NULL. */
static char *write_names(const struct fabric *f)
{
	const struct shm_region *r = f->region;
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	if (!to)
		return NULL;
	fputs("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n", to);
	for (uint32_t i = 0; i < r->control->n_hcas; i++) {
		const struct shm_hca *hca = &r->hcas[i];

		for (uint32_t k = 0; k < hca->n_ports; k++)
			write_port(to, &r->ports[hca->first_port + k],
			           f->host[hca->host_index].name);
	}
	return fclose(to) ? NULL : text;
}

int daemon_hosts_make(struct daemon_hosts *hosts, const char *dir, char *why, size_t len)
{
	struct fabric *f = hosts->f;
	char *names = write_names(f);
	struct hosts_plan plan = {
		.dir = dir, .names = names, .n = f->n_hosts, .name = host_name, .arg = f
	};
	struct hosts_namespaces *of = calloc(f->n_hosts, sizeof(*of));
	int ret = names && of ? 0 : -ENOMEM;

	if (!ret)
		ret = hosts_keeper_start(&hosts->keeper, &plan, of, why, len);
	free(names);
	if (ret)
		free(of);
	else
		hosts->of = of;
	return ret;
}

void daemon_hosts_fini(struct daemon_hosts *hosts)
{
	int user;

	if (!hosts->of)
		return;
	user = hosts->of[0].user;
	hosts_keeper_stop(&hosts->keeper);
	for (unsigned i = 0; i < hosts->f->n_hosts; i++)
		hosts_namespaces_close(&hosts->of[i]);
	if (user >= 0)
		close(user);
	free(hosts->of);
	hosts->of = NULL;
}

/* ---- requests ---- */

static int enter(struct daemon_call *call)
{
	const struct daemon_hosts *hosts = call->module;
	const struct hosts_namespaces *ns;
	int host = call->client->host_index, ret = 0;

	if (!hosts->of || host < 0)
		return -EOPNOTSUPP;
	ns = &hosts->of[host];
	for (unsigned i = 0; !ret && i < 4; i++) {
		int fd = (int[]){ ns->net, ns->uts, ns->mnt, ns->user }[i];

		if (fd >= 0)
			ret = daemon_call_give_copy(call, fd);
	}
	return ret;
}

static const struct daemon_request requests[] = {
	{ .type = CONTROL_ENTER_HOST, .bytes = 0, .who = DAEMON_CLI, .serve = enter },
};

void daemon_hosts_init(struct daemon_hosts *hosts, struct fabric *f, struct daemon_requests *all)
{
	hosts->f = f;
	daemon_requests_add(all, requests, ARRAY_SIZE(requests), hosts);
}
