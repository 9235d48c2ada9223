/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of nodes and ports: see port_name.h.
 */
#include <errno.h>
#include <string.h>

#include "fabric/agents/link.h"
#include "fabric/plan/port_name.h"

/* The only HCA of the host named @name. 0, -ENOENT, -EMLINK. */
static int hca_of_host(const struct fabric *f, const char *name, struct fabric_node **out)
{
	*out = NULL;
	for (unsigned i = 0; i < f->n_nodes; i++) {
		struct fabric_node *node = f->node[i];

		if (node->type != FABRIC_HCA ||
		    strcmp(shm_hca_at(f->region, node->hca)->host, name))
			continue;
		if (*out)
			return -EMLINK;
		*out = node;
	}
	return *out ? 0 : -ENOENT;
}

/* HOST.HCA: on a fabric of one host HCAs are called by their devices alone. 0 or -ENOENT. */
static int hca_of_its_host(const struct fabric *f, const char *name, struct fabric_node **out)
{
	const char *dot = strrchr(name, '.'), *host;
	size_t len = dot ? (size_t)(dot - name) : 0;

	*out = dot ? fabric_node_find(f, dot + 1) : NULL;
	if (!*out || (*out)->type != FABRIC_HCA)
		return -ENOENT;
	host = shm_hca_at(f->region, (*out)->hca)->host;
	return strncmp(host, name, len) || host[len] ? -ENOENT : 0;
}

int fabric_node_named(const struct fabric *f, const char name[static FABRIC_NAME],
                      struct fabric_node **node)
{
	int ret;

	if (!memchr(name, '\0', FABRIC_NAME))
		return -ENOENT;
	*node = fabric_node_find(f, name);
	if (*node)
		return 0;
	ret = hca_of_host(f, name, node);
	return ret == -ENOENT ? hca_of_its_host(f, name, node) : ret;
}

int fabric_port_named(const struct fabric *f, const char name[static FABRIC_NAME], unsigned num,
                      struct fabric_port **port)
{
	struct fabric_node *node;
	int ret = fabric_node_named(f, name, &node);

	if (ret)
		return ret;
	if (!num || num > node->n_ports)
		return -ERANGE;
	*port = &node->port[num];
	return 0;
}
