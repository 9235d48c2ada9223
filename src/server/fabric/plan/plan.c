/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Plans of fabrics: see plan.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "fabric/plan/guids.h"
#include "fabric/plan/plan.h"

#define MELLANOX_VENDOR_ID 0x2C9

void fabric_plan_init(struct fabric_plan *plan)
{
	*plan = (struct fabric_plan){ 0 };
}

void fabric_plan_fini(struct fabric_plan *plan)
{
	for (unsigned i = 0; i < plan->n_nodes; i++)
		free(plan->node[i].port);
	free(plan->node);
	free(plan->host);
	fabric_names_fini(&plan->host_names);
	fabric_names_fini(&plan->node_names);
	fabric_plan_init(plan);
}

/* Reserves a name made from @want, or from @letters and @n if that has no usable character. */
static int reserve_name(struct fabric_names *names, const char *want, const char *letters,
                        unsigned n, char name[FABRIC_NAME])
{
	char plain[FABRIC_NAME];
	int ret = want ? fabric_names_reserve(names, want, name) : -EINVAL;

	if (ret != -EINVAL)
		return ret;
	snprintf(plain, sizeof(plain), "%s%u", letters, n);
	return fabric_names_reserve(names, plain, name);
}

int fabric_plan_add_host(struct fabric_plan *plan, const char *name)
{
	struct fabric_plan_host *host;
	int ret;

	if (plan->n_hosts == FABRIC_MAX_HOSTS)
		return -ERANGE;
	ret = base_array_reserve(&plan->host, &plan->host_room, (size_t)plan->n_hosts + 1);
	if (ret)
		return ret;
	host = &plan->host[plan->n_hosts];
	*host = (struct fabric_plan_host){ 0 };
	ret = reserve_name(&plan->host_names, name, "h", plan->n_hosts + 1, host->name);
	return ret ? ret : (int)plan->n_hosts++;
}

/* A new node, without a name; the caller counts it. */
static int new_node(struct fabric_plan *plan, unsigned n_ports, struct fabric_plan_node **out)
{
	struct fabric_plan_node *node;
	int ret;

	if (!n_ports || n_ports > FABRIC_MAX_PORTS)
		return -EINVAL;
	if (plan->n_nodes == FABRIC_MAX_NODES || plan->n_ports + n_ports > FABRIC_MAX_ALL_PORTS ||
	    plan->n_hca_ports + plan->n_switches + n_ports > FABRIC_MAX_LIDS)
		return -ERANGE;
	ret = base_array_reserve(&plan->node, &plan->node_room, (size_t)plan->n_nodes + 1);
	if (ret)
		return ret;
	node = &plan->node[plan->n_nodes];
	*node = (struct fabric_plan_node){ .n_ports = n_ports };
	node->port = calloc(n_ports + 1, sizeof(*node->port));
	if (!node->port)
		return -ENOMEM;
	for (unsigned i = 0; i <= n_ports; i++)
		node->port[i].peer_node = FABRIC_UNLINKED;
	*out = node;
	return 0;
}

static void describe_hca(const struct fabric_plan_host *host, const char *device,
                         char desc[static FABRIC_DESC])
{
	snprintf(desc, FABRIC_DESC, "%s %s", host->name, device);
}

/* Adds an HCA to @host, which names it @want. */
static int add_hca(struct fabric_plan *plan, unsigned host, unsigned n_ports, const char *want)
{
	struct fabric_plan_host *h = &plan->host[host];
	struct fabric_plan_node *node;
	int ret;

	if (h->n_ports + n_ports > FABRIC_MAX_HOST_PORTS)
		return -ERANGE;
	ret = new_node(plan, n_ports, &node);
	if (ret)
		return ret;
	node->type = FABRIC_HCA;
	node->host = host;
	ret = fabric_names_reserve(&plan->node_names, want, node->name);
	if (ret) {
		free(node->port);
		return ret;
	}
	describe_hca(h, node->name, node->desc);
	h->n_hcas++;
	h->n_ports += n_ports;
	plan->n_hcas++;
	plan->n_hca_ports += n_ports;
	plan->n_ports += n_ports;
	return (int)plan->n_nodes++;
}

/* An HCA's name after its host, which is cut, so that the number fits. */
static void name_after_host(const struct fabric_plan_host *host, char *name, size_t len)
{
	snprintf(name, len, "umbel_%.*s_%u", FABRIC_NAME - 12, host->name, host->n_hcas);
}

int fabric_plan_add_hca(struct fabric_plan *plan, unsigned host, unsigned n_ports)
{
	char name[2 * FABRIC_NAME];

	if (host >= plan->n_hosts)
		return -EINVAL;
	name_after_host(&plan->host[host], name, sizeof(name));
	return add_hca(plan, host, n_ports, name);
}

int fabric_plan_add_ethernet(struct fabric_plan *plan, unsigned host, const char *device)
{
	char name[2 * FABRIC_NAME];
	int hca;

	if (host >= plan->n_hosts)
		return -EINVAL;
	if (device)
		snprintf(name, sizeof(name), "umbel_%s", device);
	else
		name_after_host(&plan->host[host], name, sizeof(name));
	hca = add_hca(plan, host, 1, name);
	if (hca >= 0)
		plan->node[hca].ethernet = true;
	return hca;
}

int fabric_plan_add_switch(struct fabric_plan *plan, const char *name, unsigned n_ports)
{
	struct fabric_plan_node *node;
	int ret = new_node(plan, n_ports, &node);

	if (ret)
		return ret;
	node->type = FABRIC_SWITCH;
	ret = reserve_name(&plan->node_names, name, "sw", plan->n_switches + 1, node->name);
	if (ret) {
		free(node->port);
		return ret;
	}
	snprintf(node->desc, sizeof(node->desc), "%s", node->name);
	plan->n_switches++;
	plan->n_ports += n_ports;
	return (int)plan->n_nodes++;
}

static struct fabric_plan_port *port_at(const struct fabric_plan *plan, struct fabric_plan_end end)
{
	if (end.node >= plan->n_nodes || !end.port || end.port > plan->node[end.node].n_ports)
		return NULL;
	return &plan->node[end.node].port[end.port];
}

int fabric_plan_link(struct fabric_plan *plan, struct fabric_plan_end a, struct fabric_plan_end b,
                     struct fabric_link_rate rate)
{
	struct fabric_plan_port *pa = port_at(plan, a), *pb = port_at(plan, b);

	if (!pa || !pb || pa == pb)
		return -EINVAL;
	if (pa->peer_node != FABRIC_UNLINKED || pb->peer_node != FABRIC_UNLINKED)
		return -EBUSY;
	pa->peer_node = b.node;
	pa->peer_port = (uint8_t)b.port;
	pb->peer_node = a.node;
	pb->peer_port = (uint8_t)a.port;
	pa->rate = pb->rate = rate;
	return 0;
}

/* ---- finishing ---- */

/* The device's name of HCA number @n of a host. */
static void fill_in(const char *names, unsigned n, char device[static FABRIC_NAME])
{
	const char *number = strstr(names, "%d");

	snprintf(device, FABRIC_NAME, "%.*s%u%s", (int)(number - names), names, n, number + 2);
}

/* Names the HCA, number @n of its host, by its device. The host's name is cut, so that the device's
 * fits. 0 or -errno. */
static int name_by_device(struct fabric_plan *plan, struct fabric_plan_node *node, unsigned n)
{
	const struct fabric_plan_host *host = &plan->host[node->host];
	char desc[FABRIC_DESC], full[2 * FABRIC_NAME];

	if (plan->device_names)
		fill_in(plan->device_names, n, node->device);
	if (!*node->device)
		memcpy(node->device, node->name, sizeof(node->device));
	if (!strcmp(node->device, node->name))
		return 0;
	describe_hca(host, node->name, desc);
	if (!strcmp(desc, node->desc))
		describe_hca(host, node->device, node->desc);
	snprintf(full, sizeof(full), "%.*s.%s", (int)(FABRIC_NAME - 8 - strlen(node->device)),
	         host->name, node->device);
	node->is_named = true;
	return fabric_names_reserve(&plan->node_names, plan->n_hosts > 1 ? full : node->device,
	                            node->name);
}

static int name_hcas(struct fabric_plan *plan)
{
	unsigned *n = calloc(plan->n_hosts, sizeof(*n));
	int ret = n ? 0 : -ENOMEM;

	for (unsigned i = 0; i < plan->n_nodes && !ret; i++) {
		struct fabric_plan_node *node = &plan->node[i];

		if (node->type == FABRIC_HCA && !node->is_named)
			ret = name_by_device(plan, node, n[node->host]);
		if (node->type == FABRIC_HCA)
			n[node->host]++;
	}
	free(n);
	return ret;
}

static void fill_in_word(char word[static FABRIC_WORD], const char *text)
{
	if (!*word)
		snprintf(word, FABRIC_WORD, "%s", text);
}

/* Fills in the facts that the plan does not tell about a node. Mellanox's HCAs have their type from
 * the device ID. */
static void identify(struct fabric_plan_node *node)
{
	char type[FABRIC_WORD] = "Umbel";

	if (node->vendor_id == MELLANOX_VENDOR_ID && node->device_id)
		snprintf(type, sizeof(type), "MT%u", node->device_id & 0xFFFF);
	if (!node->vendor_id)
		node->vendor_id = FABRIC_VENDOR_ID;
	if (!node->device_id)
		node->device_id = FABRIC_DEVICE_ID;
	if (node->type != FABRIC_HCA)
		return;
	fill_in_word(node->type_name, type);
	fill_in_word(node->fw_ver, "0.1.0");
	fill_in_word(node->board_id, "Umbel");
}

/* The first port that has a GUID of its own. */
static unsigned first_port(const struct fabric_plan_node *node)
{
	return node->type == FABRIC_SWITCH ? 0 : 1;
}

static unsigned last_port(const struct fabric_plan_node *node)
{
	return node->type == FABRIC_SWITCH ? 0 : node->n_ports;
}

/* Notes the GUIDs that the plan sets. -EEXIST: @node and @other have the same one. */
static int note_given(struct fabric_plan *plan, struct fabric_guids *nodes,
                      struct fabric_guids *ports, struct fabric_guid_clash *clash)
{
	for (unsigned i = 0; i < plan->n_nodes; i++) {
		const struct fabric_plan_node *node = &plan->node[i];

		if (node->guid && fabric_guids_add(nodes, node->guid, i, clash))
			return -EEXIST;
		for (unsigned k = first_port(node); k <= last_port(node); k++)
			if (node->port[k].guid &&
			    fabric_guids_add(ports, node->port[k].guid, i, clash))
				return -EEXIST;
	}
	return 0;
}

/* Whether @base is free as a node's GUID, and so are the GUIDs that its ports would get. */
static bool block_is_free(const struct fabric_guids *nodes, const struct fabric_guids *ports,
                          uint64_t guid, unsigned n_ports)
{
	if (fabric_guids_has(nodes, guid))
		return false;
	for (unsigned k = 0; k <= n_ports; k++)
		if (fabric_guids_has(ports, guid + k))
			return false;
	return true;
}

/* A free GUID with our prefix; that of number @i if the plan sets none. */
static uint64_t new_guid(const struct fabric_plan *plan, const struct fabric_guids *nodes,
                         const struct fabric_guids *ports, unsigned i)
{
	uint64_t serial = i + 1;

	while (!block_is_free(nodes, ports, FABRIC_OUI_GUID | serial << 8, plan->node[i].n_ports))
		serial += plan->n_nodes;
	return FABRIC_OUI_GUID | serial << 8;
}

static void give_guids(struct fabric_plan *plan, struct fabric_guids *nodes,
                       struct fabric_guids *ports)
{
	for (unsigned i = 0; i < plan->n_nodes; i++) {
		struct fabric_plan_node *node = &plan->node[i];
		uint64_t base;

		if (!node->guid)
			node->guid = new_guid(plan, nodes, ports, i);
		fabric_guids_add(nodes, node->guid, i, NULL);
		if (!node->system_guid)
			node->system_guid = node->guid;
		base = node->guid;
		for (unsigned k = first_port(node); k <= last_port(node); k++) {
			if (node->port[k].guid)
				continue;
			/* another node's port may have a GUID that this node's port would get */
			if (base == node->guid &&
			    (base + k < base || fabric_guids_has(ports, base + k)))
				base = new_guid(plan, nodes, ports, i);
			node->port[k].guid = base + k;
			fabric_guids_add(ports, base + k, i, NULL);
		}
	}
}

static int guids(struct fabric_plan *plan, struct fabric_guid_clash *clash)
{
	struct fabric_guids nodes, ports;
	int ret = fabric_guids_init(&nodes, 2 * plan->n_nodes);

	if (ret)
		return ret;
	ret = fabric_guids_init(&ports, plan->n_hca_ports + plan->n_switches);
	if (!ret)
		ret = note_given(plan, &nodes, &ports, clash);
	if (!ret)
		give_guids(plan, &nodes, &ports);
	fabric_guids_fini(&ports);
	fabric_guids_fini(&nodes);
	return ret;
}

int fabric_plan_finish(struct fabric_plan *plan, int *node, char *why, size_t len)
{
	struct fabric_guid_clash clash;
	int ret;

	*node = -1;
	if (!plan->n_hca_ports) {
		snprintf(why, len, "there is no host");
		return -EINVAL;
	}
	for (unsigned i = 0; i < plan->n_nodes; i++)
		identify(&plan->node[i]);
	ret = name_hcas(plan);
	if (!ret)
		ret = guids(plan, &clash);
	if (ret != -EEXIST)
		return ret;
	*node = (int)clash.second;
	snprintf(why, len, "GUID 0x%016" PRIx64 " of '%s' is also that of '%s'", clash.guid,
	         plan->node[clash.second].name, plan->node[clash.first].name);
	return -EINVAL;
}

/* The host with this name; n_hosts: there is none. */
static unsigned find_host(const struct fabric_plan *plan, const char *name, size_t len)
{
	unsigned i = 0;

	while (i < plan->n_hosts &&
	       (strlen(plan->host[i].name) != len || memcmp(plan->host[i].name, name, len)))
		i++;
	return i;
}

static int set_router(struct fabric_plan *plan, unsigned host)
{
	if (host == plan->n_hosts)
		return -ENOENT;
	for (unsigned i = 0; i < plan->n_nodes; i++) {
		struct fabric_plan_node *node = &plan->node[i];

		if (node->type != FABRIC_HCA || node->host != host)
			continue;
		if (node->ethernet)
			return -EINVAL;
		node->is_router = true;
	}
	return 0;
}

int fabric_plan_set_routers(struct fabric_plan *plan, const char *names, const char **name,
                            size_t *len)
{
	int ret = 0;

	for (*name = names; !ret; *name += *len + 1) {
		*len = strcspn(*name, ",");
		ret = set_router(plan, find_host(plan, *name, *len));
		if (ret || !(*name)[*len])
			break;
	}
	return ret;
}

/* ---- addresses ---- */

void fabric_plan_address(unsigned host, unsigned n, uint32_t *ipv4, uint8_t ipv6[16])
{
	/* .0 and .255 are left out as addresses of hosts */
	*ipv4 = htonl(0x0A000000u | n << 16 | (host / 254) << 8 | (host % 254 + 1));
	inet_pton(AF_INET6, "fd75:6d62:656c::", ipv6);
	ipv6[6] = (uint8_t)(n >> 8);
	ipv6[7] = (uint8_t)n;
	ipv6[14] = (uint8_t)((host + 1) >> 8);
	ipv6[15] = (uint8_t)(host + 1);
}

void fabric_plan_partition_address(unsigned k, uint32_t *ipv4, uint8_t ipv6[16])
{
	unsigned more = FABRIC_PLAN_PKEY_PORTS * (k + 1);

	*ipv4 = htonl(ntohl(*ipv4) + (more << 16));
	ipv6[7] = (uint8_t)(ipv6[7] + more);
}

void fabric_plan_ethernet_address(unsigned n, unsigned k, uint32_t *ipv4, uint8_t ipv6[16])
{
	*ipv4 = htonl(0xAC100000u | k << 16 | (n / 254) << 8 | (n % 254 + 1));
	inet_pton(AF_INET6, "fd75:6d62:656c:e000::", ipv6);
	ipv6[7] = (uint8_t)k;
	ipv6[14] = (uint8_t)((n + 1) >> 8);
	ipv6[15] = (uint8_t)(n + 1);
}
