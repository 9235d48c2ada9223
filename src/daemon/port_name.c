/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of nodes and ports: see port_name.h.
 */
#include <errno.h>
#include <string.h>

#include "daemon/port_name.h"
#include "fabric/link.h"

/* The only HCA of the host named @name. 0, -ENOENT, -EMLINK. */
static int hca_of_host(const struct fabric *f, const char *name, struct fabric_node **out)
{
	*out = NULL;
	for (unsigned i = 0; i < f->n_nodes; i++) {
		struct fabric_node *node = f->node[i];

		if (node->type != FABRIC_HCA || strcmp(f->region->hcas[node->hca].host, name))
			continue;
		if (*out)
			return -EMLINK;
		*out = node;
	}
	return *out ? 0 : -ENOENT;
}

int daemon_node_find(const struct fabric *f, const char name[static 32], struct fabric_node **node)
{
	if (!memchr(name, '\0', 32))
		return -ENOENT;
	*node = fabric_node_find(f, name);
	return *node ? 0 : hca_of_host(f, name, node);
}

int daemon_port_find(const struct fabric *f, const struct control_port *at,
                     struct fabric_port **port)
{
	struct fabric_node *node;
	int ret = daemon_node_find(f, at->node, &node);

	if (ret)
		return ret;
	if (!at->port || at->port > node->n_ports)
		return -ERANGE;
	*port = &node->port[at->port];
	return 0;
}
