/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * getaddrinfo(3): see wrap.h. Names are resolved by the C library. On the machine's network hosts
 * have no names: if a program looks up the name of a host there in vain, a message says so, once.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "sysfs/session.h"
#include "sysfs/wrap.h"

/* The IP address of the host's first port, in network order. False: there is no such host. */
static bool find_host(const struct shm_region *r, const char *name, uint32_t *ipv4)
{
	struct shm_port port;

	for (uint32_t i = 0; i < r->control->n_hcas; i++) {
		if (strncmp(shm_hca_at(r, i)->host, name, sizeof(shm_hca_at(r, i)->host)) != 0)
			continue;
		shm_port_read(r, shm_hca_at(r, i)->first_port, &port);
		*ipv4 = port.ipv4;
		return true;
	}
	return false;
}

static void explain(const char *name)
{
	static atomic_bool done;
	const char *own = getenv("UMBEL_HOST_IS_NAME");
	const struct sysfs_session *s = own && *own ? NULL : sysfs_session();
	char text[INET_ADDRSTRLEN];
	uint32_t ipv4;

	if (!s || !find_host(&s->region, name, &ipv4) || atomic_exchange(&done, true))
		return;
	base_log("host '%s' has no name on the machine's network, where this program is, but on "
	         "those of hosts (--ipoib); here write 127.0.0.1, for rdma_cm %s",
	         name, inet_ntop(AF_INET, &ipv4, text, sizeof(text)));
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **list)
{
	int ret = sysfs_real()->getaddrinfo(node, service, hints, list), error = errno;

	if (ret && ret != EAI_SERVICE && node)
		explain(node);
	errno = error;
	return ret;
}
