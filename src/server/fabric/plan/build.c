/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes a fabric of a plan: see build.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/agents/mads.h"
#include "fabric/agents/traps.h"
#include "fabric/forwarding/flow.h"
#include "fabric/model/attach_table.h"
#include "fabric/model/lanes.h"
#include "fabric/model/routers.h"
#include "fabric/plan/build.h"
#include "wire/rate.h"

#define SUBNET_TIMEOUT  18 /* about a second */
#define ERROR_THRESHOLD 15 /* the largest value of PortInfo:LocalPhyErrors and OverrunErrors */

static void port_init(struct fabric_port *p, struct fabric_node *node, unsigned num,
                      const struct fabric_plan_port *plan)
{
	bool linked = plan->peer_node != FABRIC_UNLINKED;

	*p = (struct fabric_port){
		.node = node,
		.num = (uint8_t)num,
		.state = IB_PORT_DOWN,
		.width = linked ? plan->rate.width : FABRIC_WIDTH_4X,
		.speed = linked ? plan->rate.speed : FABRIC_SPEED_SDR,
		.guid = plan->guid,
	};
	p->width_built = p->width;
	p->speed_built = p->speed;
	fabric_port_init_lists(p);
}

/* Port 0 has no link: it is as fast as the fastest of the others. */
static void port0_init(struct fabric_node *sw)
{
	struct fabric_port *own = &sw->port[0];
	unsigned most = 0;

	for (unsigned i = 1; i <= sw->n_ports; i++) {
		const struct fabric_port *p = &sw->port[i];
		unsigned rate = wire_link_speed(p->width_built, p->speed_built);

		if (rate <= most)
			continue;
		most = rate;
		own->width = own->width_built = p->width_built;
		own->speed = own->speed_built = p->speed_built;
	}
}

/* Makes the HCA's ports Ethernet ports whose devices are not known yet. */
static int add_devices(struct fabric_node *node)
{
	for (unsigned i = 1; i <= node->n_ports; i++) {
		node->port[i].ethernet = calloc(1, sizeof(*node->port[i].ethernet));
		if (!node->port[i].ethernet)
			return -ENOMEM;
	}
	return 0;
}

static struct fabric_node *node_new(struct fabric *f, const struct fabric_plan_node *plan)
{
	struct fabric_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->mcast_primary = node->mcast_not_primary = FABRIC_LFT_NONE;
	node->port = calloc(plan->n_ports + 1, sizeof(*node->port));
	if (!node->port) {
		free(node);
		return NULL;
	}
	node->type = plan->type;
	memcpy(node->name, plan->name, sizeof(node->name));
	memcpy(node->desc, plan->desc, sizeof(node->desc));
	node->guid = plan->guid;
	node->system_guid = plan->system_guid;
	node->vendor_id = plan->vendor_id;
	node->device_id = plan->device_id;
	node->enhanced_port0 = plan->enhanced_port0;
	node->is_router = plan->is_router;
	node->n_ports = plan->n_ports;
	for (unsigned i = 0; i <= node->n_ports; i++) {
		port_init(&node->port[i], node, i, &plan->port[i]);
		node->port[i].mtu = (uint8_t)f->settings.mtu;
		node->port[i].pkey[0] = IB_PKEY_DEFAULT;
		node->port[i].subnet_timeout = SUBNET_TIMEOUT;
		node->port[i].link.local_phy_errors = ERROR_THRESHOLD;
		node->port[i].link.overrun_errors = ERROR_THRESHOLD;
		if (node->type == FABRIC_SWITCH)
			node->port[i].guid = plan->port[0].guid;
	}
	if (node->type == FABRIC_SWITCH) {
		port0_init(node);
		node->index = f->n_switches++;
	}
	f->node[f->n_nodes++] = node; /* fabric_free() frees it from now on */
	return plan->ethernet && add_devices(node) ? NULL : node;
}

static void node_free(struct fabric_node *node)
{
	for (unsigned i = 0; i <= node->n_ports; i++) {
		free(node->port[i].alias);
		free(node->port[i].ethernet);
		fabric_lanes_free(&node->port[i]);
		free(node->port[i].zero_details);
		free(node->port[i].cc);
	}
	free(node->port);
	free(node->lft);
	free(node->mft);
	free(node->samples);
	free(node);
}

static void plug(struct fabric_port *a, struct fabric_port *b)
{
	a->peer = b;
	b->peer = a;
	a->state = b->state = IB_PORT_INIT;
}

/* Numbers the HCA and its ports. */
static int add_hca(struct fabric *f, struct fabric_node *hca, uint32_t index)
{
	hca->hca = index;
	for (unsigned k = 1; k <= hca->n_ports; k++) {
		struct fabric_port *p = &hca->port[k];

		p->index = f->n_hca_ports;
		f->hca_port[f->n_hca_ports++] = p;
		if (!p->ethernet && f->n_ib_ports++ != p->index)
			return -EINVAL; /* behind one on Ethernet */
		if (fabric_port_index(f, p))
			return -ENOMEM;
		fabric_router_add(f, p);
	}
	return 0;
}

static int build_nodes(struct fabric *f, const struct fabric_plan *plan)
{
	uint32_t n_hcas = 0;

	for (unsigned i = 0; i < plan->n_hosts; i++)
		memcpy(f->host[i].name, plan->host[i].name, sizeof(f->host[i].name));
	for (unsigned i = 0; i < plan->n_nodes; i++) {
		struct fabric_node *node = node_new(f, &plan->node[i]);

		if (!node || (node->type == FABRIC_HCA && add_hca(f, node, n_hcas++)))
			return -ENOMEM;
	}
	return 0;
}

static void build_links(struct fabric *f, const struct fabric_plan *plan)
{
	for (unsigned i = 0; i < plan->n_nodes; i++) {
		for (unsigned k = 1; k <= plan->node[i].n_ports; k++) {
			const struct fabric_plan_port *p = &plan->node[i].port[k];

			if (p->peer_node != FABRIC_UNLINKED)
				plug(&f->node[i]->port[k],
				     &f->node[p->peer_node]->port[p->peer_port]);
		}
	}
}

static void publish_hca(struct fabric *f, const struct fabric_plan_node *plan,
                        const struct fabric_node *node)
{
	struct shm_hca *h = shm_hca_at(f->region, node->hca);

	memcpy(h->name, node->name, sizeof(h->name));
	memcpy(h->device, plan->device, sizeof(h->device));
	memcpy(h->host, f->host[plan->host].name, sizeof(h->host));
	h->node_guid = node->guid;
	h->system_guid = node->system_guid;
	h->first_port = node->port[1].index;
	h->n_ports = node->n_ports;
	h->host_index = plan->host;
	h->is_router = node->is_router;
	h->vendor_id = node->vendor_id;
	h->device_id = node->device_id;
	memcpy(h->type, plan->type_name, sizeof(h->type));
	memcpy(h->fw_ver, plan->fw_ver, sizeof(h->fw_ver));
	memcpy(h->board_id, plan->board_id, sizeof(h->board_id));
}

/* Finds for each host the first of its ports that is linked. */
static void find_main_ports(const struct fabric_plan *plan, unsigned *n_before, int *main_port)
{
	for (unsigned i = 0; i < plan->n_hosts; i++)
		main_port[i] = -1;
	for (unsigned i = 0; i < plan->n_nodes; i++) {
		const struct fabric_plan_node *node = &plan->node[i];
		unsigned h = node->host;

		for (unsigned k = 1; node->type == FABRIC_HCA && k <= node->n_ports; k++) {
			if (main_port[h] < 0 && node->port[k].peer_node != FABRIC_UNLINKED)
				main_port[h] = (int)n_before[h];
			n_before[h]++;
		}
	}
}

/* Sets the IP addresses of a host's @n-th port; addresses number 0 are its main port's. */
static void give_address(struct fabric *f, const struct fabric_port *p, unsigned host, int n,
                         int main_port)
{
	struct shm_port *s = shm_port_at(f->region, p->index);

	if (n == main_port)
		n = 0;
	else if (n < main_port)
		n++;
	fabric_plan_address(host, (unsigned)n, &s->ipv4, s->ipv6);
}

static int publish_hcas(struct fabric *f, const struct fabric_plan *plan)
{
	unsigned *n = calloc(plan->n_hosts, sizeof(*n));
	int *main_port = calloc(plan->n_hosts, sizeof(*main_port));
	int ret = n && main_port ? 0 : -ENOMEM;

	if (!ret)
		find_main_ports(plan, n, main_port);
	for (unsigned i = plan->n_nodes; i-- > 0 && !ret;) {
		const struct fabric_plan_node *node = &plan->node[i];

		if (node->type != FABRIC_HCA)
			continue;
		publish_hca(f, node, f->node[i]);
		for (unsigned k = node->n_ports; k > 0; k--) {
			struct fabric_port *p = &f->node[i]->port[k];

			n[node->host]--;
			if (!p->ethernet)
				give_address(f, p, node->host, (int)n[node->host],
				             main_port[node->host]);
			fabric_port_publish(f, p);
		}
	}
	free(main_port);
	free(n);
	return ret;
}

int fabric_new(struct fabric **out, const struct fabric_plan *plan,
               const struct shm_settings *settings)
{
	struct fabric *f = calloc(1, sizeof(*f));
	int ret = -ENOMEM;

	if (!f)
		return -ENOMEM;
	f->settings = *settings;
	fabric_settings_fit(&f->settings);
	f->subnet_prefix = IB_SUBNET_PREFIX_DEFAULT;
	f->n_hosts = plan->n_hosts;
	f->host = calloc(plan->n_hosts, sizeof(*f->host));
	f->node = calloc(plan->n_nodes, sizeof(*f->node));
	f->hca_port = calloc(plan->n_hca_ports, sizeof(*f->hca_port));
	f->region = calloc(1, sizeof(*f->region));
	f->attach = calloc(1, sizeof(*f->attach));
	f->flows = calloc(1, sizeof(*f->flows));
	f->mads = calloc(1, sizeof(*f->mads));
	f->routers = calloc(1, sizeof(*f->routers));
	if (!f->host || !f->node || !f->hca_port || !f->region || !f->attach || !f->flows ||
	    !f->mads || !f->routers)
		goto err_free;
	ret = build_nodes(f, plan);
	if (!ret)
		ret = fabric_attach_init(f->attach, plan->n_hcas);
	if (!ret)
		ret = shm_region_create(f->region, plan->n_hcas, plan->n_hca_ports);
	if (ret) {
		free(f->region); /* there is nothing in it to unmap */
		f->region = NULL;
		goto err_free;
	}
	build_links(f, plan);
	fabric_flow_init(f);
	f->region->control->settings = f->settings;
	ret = publish_hcas(f, plan);
	if (ret)
		goto err_free;
	*out = f;
	return 0;
err_free:
	fabric_free(f);
	return ret;
}

void fabric_free(struct fabric *f)
{
	if (f->mads)
		fabric_mads_fini(f);
	if (f->region && f->region->control) {
		fabric_flow_fini(f);
		shm_region_unmap(f->region);
	}
	if (f->attach)
		fabric_attach_fini(f->attach);
	if (f->mads)
		fabric_traps_free(f);
	for (unsigned i = 0; i < f->n_nodes; i++)
		node_free(f->node[i]);
	base_hash_fini(&f->by_guid);
	base_hash_fini(&f->by_alias);
	free(f->flows);
	free(f->mads);
	free(f->routers);
	free(f->attach);
	free(f->region);
	free(f->hca_port);
	free(f->node);
	free(f->host);
	free(f);
}
