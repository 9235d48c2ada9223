/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Building the fabric and looking things up in it: see fabric.h.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/util.h"
#include "fabric/attach.h"
#include "fabric/fabric.h"
#include "fabric/flow.h"

#define DOWN_PORTS   36 /* of a switch: to hosts, or to the layer below */
#define MAX_HOSTS    4096
#define PHYS_LINK_UP 5
#define SPEED_EDR    32 /* ActiveSpeed: 25 Gb/s a lane */
#define WIDTH_4X     2

static struct fabric_node *node_new(struct fabric *f, enum fabric_node_type type, unsigned n_ports)
{
	struct fabric_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->port = calloc(n_ports + 1, sizeof(*node->port));
	if (!node->port) {
		free(node);
		return NULL;
	}
	node->type = type;
	node->n_ports = n_ports;
	node->guid = FABRIC_OUI_GUID | (uint64_t)(f->n_nodes + 1) << 8;
	for (unsigned i = 0; i <= n_ports; i++)
		node->port[i] =
		        (struct fabric_port){ .node = node,
			                      .num = (uint8_t)i,
			                      .state = IB_PORT_DOWN,
			                      .mtu = (uint8_t)f->settings.mtu,
			                      .guid = type == FABRIC_SWITCH ? node->guid
			                                                    : node->guid + i };
	if (type == FABRIC_SWITCH)
		node->index = f->n_switches++;
	f->node[f->n_nodes++] = node;
	return node;
}

static void node_free(struct fabric_node *node)
{
	free(node->port);
	free(node->lft);
	free(node->mft);
	free(node);
}

static uint64_t guid_hash(uint64_t guid)
{
	return base_hash_of(&guid, sizeof(guid), 0);
}

static void plug(struct fabric_port *a, struct fabric_port *b)
{
	a->peer = b;
	b->peer = a;
	a->state = b->state = IB_PORT_INIT;
}

static void host_init(struct fabric_host *host, unsigned i)
{
	unsigned n = i + 1; /* 10.0.0.1 is h1; .0 and .255 are left out as addresses of hosts */

	snprintf(host->name, sizeof(host->name), "h%u", n);
	host->ipv4 = htonl(0x0A000000u | (i / 254) << 8 | (i % 254 + 1));
	inet_pton(AF_INET6, "fd75:6d62:656c::", host->ipv6);
	host->ipv6[14] = (uint8_t)(n >> 8);
	host->ipv6[15] = (uint8_t)n;
}

static int build_hosts(struct fabric *f, unsigned n_hosts)
{
	for (unsigned i = 0; i < n_hosts; i++) {
		struct fabric_node *hca = node_new(f, FABRIC_HCA, 1);

		if (!hca)
			return -ENOMEM;
		host_init(&f->host[i], i);
		snprintf(hca->name, sizeof(hca->name), "umbel_h%u_0", i + 1);
		hca->hca = i;
		hca->port[1].index = f->n_hca_ports;
		f->hca_port[f->n_hca_ports++] = &hca->port[1];
		if (base_hash_add(&f->by_guid, &hca->port[1].by_guid, guid_hash(hca->port[1].guid)))
			return -ENOMEM;
	}
	return 0;
}

/*
 * One layer of switches above @n ports that have no peer yet; these are replaced by the
 * layer's uplinks, if it has more than one switch. How many, or -errno.
 */
static int build_layer(struct fabric *f, const char *name, struct fabric_port **below, unsigned n)
{
	unsigned n_switches = (n + DOWN_PORTS - 1) / DOWN_PORTS;

	for (unsigned s = 0; s < n_switches; s++) {
		struct fabric_node *sw = node_new(f, FABRIC_SWITCH, DOWN_PORTS + (n_switches > 1));
		unsigned first = s * DOWN_PORTS;

		if (!sw)
			return -ENOMEM;
		snprintf(sw->name, sizeof(sw->name), "%s%u", name, s + 1);
		for (unsigned i = first; i < n && i < first + DOWN_PORTS; i++)
			plug(below[i], &sw->port[i - first + 1]);
		if (n_switches > 1)
			below[s] = &sw->port[DOWN_PORTS + 1];
	}
	return (int)n_switches;
}

/* A tree: one switch if the hosts fit on it, else as many layers as it takes. */
static int build_switches(struct fabric *f, unsigned n_hosts)
{
	static const char *const names[] = { "sw", "agg", "core", "top" };
	struct fabric_port **below = calloc(n_hosts, sizeof(*below));
	int n = (int)n_hosts;

	if (!below)
		return -ENOMEM;
	memcpy(below, f->hca_port, n_hosts * sizeof(*below));
	for (unsigned layer = 0; layer == 0 || n > 1; layer++)
		n = build_layer(f, names[layer], below, (unsigned)n);
	free(below);
	return n < 0 ? n : 0;
}

static void publish_hcas(struct fabric *f)
{
	for (unsigned i = 0; i < f->n_hca_ports; i++) {
		struct fabric_port *p = f->hca_port[i];
		struct shm_hca *h = &f->region->hcas[p->node->hca];

		memcpy(h->name, p->node->name, sizeof(h->name));
		memcpy(h->host, f->host[i].name, sizeof(h->host));
		h->node_guid = p->node->guid;
		h->first_port = i;
		h->n_ports = 1;
		h->host_index = i;
		fabric_port_publish(f, p);
	}
}

int fabric_new(struct fabric **out, unsigned n_hosts, const struct shm_settings *settings)
{
	struct fabric *f;
	int ret = -ENOMEM;

	if (!n_hosts || n_hosts > MAX_HOSTS)
		return -ERANGE;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->settings = *settings;
	f->subnet_prefix = IB_SUBNET_PREFIX_DEFAULT;
	f->n_hosts = n_hosts;
	f->host = calloc(n_hosts, sizeof(*f->host));
	f->node = calloc(2 * n_hosts + 2, sizeof(*f->node));
	f->hca_port = calloc(n_hosts, sizeof(*f->hca_port));
	f->region = calloc(1, sizeof(*f->region));
	f->attach = calloc(1, sizeof(*f->attach));
	f->flows = calloc(1, sizeof(*f->flows));
	if (!f->host || !f->node || !f->hca_port || !f->region || !f->attach || !f->flows)
		goto err_free;
	ret = build_hosts(f, n_hosts);
	if (!ret)
		ret = build_switches(f, n_hosts);
	if (!ret)
		ret = fabric_attach_init(f->attach, n_hosts);
	if (!ret)
		ret = shm_region_create(f->region, n_hosts, n_hosts);
	if (ret) {
		free(f->region); /* there is nothing in it to unmap */
		f->region = NULL;
		goto err_free;
	}
	fabric_flow_init(f);
	f->region->control->settings = f->settings;
	publish_hcas(f);
	*out = f;
	return 0;
err_free:
	fabric_free(f);
	return ret;
}

void fabric_free(struct fabric *f)
{
	if (f->region && f->region->control) {
		fabric_flow_fini(f);
		shm_region_unmap(f->region);
	}
	if (f->attach)
		fabric_attach_fini(f->attach);
	for (unsigned i = 0; i < f->n_nodes; i++)
		node_free(f->node[i]);
	base_hash_fini(&f->by_guid);
	free(f->flows);
	free(f->attach);
	free(f->region);
	free(f->hca_port);
	free(f->node);
	free(f->host);
	free(f);
}

int fabric_host_find(const struct fabric *f, const char *name)
{
	for (unsigned i = 0; i < f->n_hosts; i++)
		if (!strcmp(f->host[i].name, name))
			return (int)i;
	return -1;
}

void fabric_gid_make(const struct fabric *f, uint64_t guid, struct ib_gid *gid)
{
	uint64_t word[2] = { htobe64(f->subnet_prefix), htobe64(guid) };

	memcpy(gid->raw, word, sizeof(gid->raw));
}

struct fabric_port *fabric_port_by_gid(struct fabric *f, const struct ib_gid *gid)
{
	struct base_hash_node *n;
	uint64_t guid;

	memcpy(&guid, gid->raw + 8, sizeof(guid));
	n = base_hash_first(&f->by_guid, guid_hash(be64toh(guid)));
	for (; n; n = base_hash_next(n)) {
		struct fabric_port *p = container_of(n, struct fabric_port, by_guid);

		if (!memcmp(&f->region->ports[p->index].gid[0], gid, sizeof(*gid)))
			return p;
	}
	return NULL;
}

void fabric_port_publish(struct fabric *f, struct fabric_port *p)
{
	const struct fabric_host *host = &f->host[p->node->hca];
	struct shm_port *s = &f->region->ports[p->index];

	shm_write_begin(&s->seq);
	s->hca = p->node->hca;
	s->guid = p->guid;
	fabric_gid_make(f, p->guid, &s->gid[0]);
	s->pkey[0] = IB_PKEY_DEFAULT;
	s->lid = p->lid;
	s->lmc = p->lmc;
	s->state = p->state;
	s->phys_state = PHYS_LINK_UP;
	s->max_mtu = IBV_MTU_4096;
	s->active_mtu = p->mtu;
	s->active_width = WIDTH_4X;
	s->active_speed = SPEED_EDR;
	s->port_num = p->num;
	s->link_layer = IBV_LINK_LAYER_INFINIBAND;
	s->subnet_timeout = 18;
	s->ipv4 = host->ipv4;
	memcpy(s->ipv6, host->ipv6, sizeof(s->ipv6));
	shm_write_end(&s->seq);
}
