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

		if (node->type != FABRIC_HCA || strcmp(f->region->hcas[node->hca].host, name))
			continue;
		if (*out)
			return -EMLINK;
		*out = node;
	}
	return *out ? 0 : -ENOENT;
}

/* HOST.DEVICE, where the HCA is called by its device alone: the fabric has one host. As
 * hca_of_host(). */
static int hca_of_device(const struct fabric *f, const char *name, struct fabric_node **out)
{
	const char *dot = strrchr(name, '.');
	const struct shm_hca *hca;

	*out = dot ? fabric_node_find(f, dot + 1) : NULL;
	if (!*out || (*out)->type != FABRIC_HCA)
		return -ENOENT;
	hca = &f->region->hcas[(*out)->hca];
	return strlen(hca->host) == (size_t)(dot - name) &&
	                       !memcmp(hca->host, name, (size_t)(dot - name))
	               ? 0
	               : -ENOENT;
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
	return ret == -ENOENT ? hca_of_device(f, name, node) : ret;
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
