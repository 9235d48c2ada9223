/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Filling in a subnet: see net.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "check/net.h"

#define PKEY_BASE 0x7FFF

int check_net_init(struct check_net *net, uint32_t n, uint32_t n_hosts)
{
	*net = (struct check_net){ .n = n, .n_hosts = n_hosts };
	net->sw = calloc((size_t)n + 1, sizeof(*net->sw));
	net->host = calloc((size_t)n_hosts + 1, sizeof(*net->host));
	net->tree_of = malloc(CHECK_MLIDS * sizeof(*net->tree_of));
	if (!net->sw || !net->host || !net->tree_of) {
		net->n = net->n_hosts = 0;
		return -ENOMEM;
	}
	memset(net->tree_of, 0xFF, CHECK_MLIDS * sizeof(*net->tree_of));
	for (uint32_t i = 0; i < n_hosts; i++)
		net->host[i].at = CHECK_NONE;
	return 0;
}

void check_net_fini(struct check_net *net)
{
	for (uint32_t i = 0; i < net->n; i++) {
		struct check_switch *sw = &net->sw[i];

		for (unsigned k = 0; sw->port && k <= sw->n_ports; k++) {
			free(sw->port[k].map);
			free(sw->port[k].keys.key);
		}
		free(sw->port);
		free(sw->lft);
		free(sw->sl);
	}
	for (uint32_t i = 0; i < net->n_hosts; i++) {
		free(net->host[i].keys.key);
		free(net->host[i].sl);
	}
	for (uint32_t i = 0; i < net->n_trees; i++)
		free(net->tree[i].row);
	for (uint32_t i = 0; i < net->n_groups; i++)
		free(net->group[i].member);
	free(net->sw);
	free(net->host);
	free(net->tree);
	free(net->group);
	free(net->tree_of);
	free(net->first);
	free(net->channel_at);
}

int check_set_ports(struct check_switch *sw, unsigned n_ports)
{
	sw->port = calloc((size_t)n_ports + 1, sizeof(*sw->port));
	if (!sw->port)
		return -ENOMEM;
	sw->n_ports = n_ports;
	return 0;
}

void check_link(struct check_net *net, uint32_t from, unsigned port, uint32_t to, unsigned to_port)
{
	struct check_port *p = &net->sw[from].port[port];

	p->end = CHECK_TO_SWITCH;
	p->to = to;
	p->to_port = (uint8_t)to_port;
}

void check_link_host(struct check_net *net, uint32_t sw, unsigned port, uint32_t host)
{
	struct check_port *p = &net->sw[sw].port[port];

	p->end = CHECK_TO_HOST;
	p->to = host;
	net->host[host].at = sw;
	net->host[host].at_port = (uint8_t)port;
}

int check_add_row(struct check_net *net, uint16_t mlid, uint32_t sw,
                  const uint64_t ports[CHECK_BLOCKS])
{
	uint32_t *of = &net->tree_of[mlid - CHECK_MLID];
	struct check_tree *t;

	if (*of == CHECK_NONE) {
		if (base_array_reserve(&net->tree, &net->trees_room, (size_t)net->n_trees + 1))
			return -ENOMEM;
		*of = net->n_trees++;
		net->tree[*of] = (struct check_tree){ .mlid = mlid };
	}
	t = &net->tree[*of];
	if (base_array_reserve(&t->row, &t->room, (size_t)t->n + 1))
		return -ENOMEM;
	t->row[t->n].sw = sw;
	memcpy(t->row[t->n++].ports, ports, sizeof(t->row->ports));
	return 0;
}

struct check_group *check_add_group(struct check_net *net)
{
	struct check_group *g;

	if (base_array_reserve(&net->group, &net->groups_room, (size_t)net->n_groups + 1))
		return NULL;
	g = &net->group[net->n_groups++];
	*g = (struct check_group){ 0 };
	return g;
}

int check_add_member(struct check_group *group, const struct check_member *member)
{
	if (base_array_reserve(&group->member, &group->room, (size_t)group->n + 1))
		return -ENOMEM;
	group->member[group->n++] = *member;
	return 0;
}

int check_set_level(struct check_host *host, unsigned lid, uint8_t sl)
{
	if (!host->sl) {
		host->sl = malloc(CHECK_MLID);
		if (!host->sl)
			return -ENOMEM;
		memset(host->sl, CHECK_ANY_SL, CHECK_MLID);
		host->n_sls = CHECK_MLID;
	}
	if (lid < host->n_sls)
		host->sl[lid] = sl;
	return 0;
}

/* Whether @sl says anything that the levels of the switch do not say. */
static bool says_more(const struct check_switch *sw, const uint8_t *sl, unsigned n)
{
	for (unsigned lid = 0; lid < n; lid++)
		if (sl[lid] != CHECK_ANY_SL && (lid >= sw->n_sls || sl[lid] != sw->sl[lid]))
			return true;
	return false;
}

void check_give_levels(struct check_net *net, uint32_t host, uint8_t *sl, unsigned n)
{
	struct check_host *h = &net->host[host];
	struct check_switch *sw = h->at != CHECK_NONE ? &net->sw[h->at] : NULL;

	free(h->sl);
	h->sl = NULL;
	h->n_sls = 0;
	if (sw && !sw->sl) {
		sw->sl = sl;
		sw->n_sls = n;
	} else if (sw && says_more(sw, sl, n)) {
		h->sl = sl;
		h->n_sls = n;
	} else {
		free(sl);
	}
}

void check_net_find_levels(struct check_net *net)
{
	for (uint32_t i = 0; i < net->n; i++)
		net->sw[i].own_levels = false;
	for (uint32_t i = 0; i < net->n_hosts; i++)
		if (net->host[i].at != CHECK_NONE && net->host[i].sl)
			net->sw[net->host[i].at].own_levels = true;
}

/* Gives the switches their islands. */
static int find_islands(struct check_net *net)
{
	uint32_t *queue = malloc(((size_t)net->n + 1) * sizeof(*queue));

	if (!queue)
		return -ENOMEM;
	for (uint32_t i = 0; i < net->n; i++)
		net->sw[i].island = CHECK_NONE;
	for (uint32_t i = 0; i < net->n; i++) {
		uint32_t head = 0, tail = 0;

		if (net->sw[i].island != CHECK_NONE)
			continue;
		net->sw[i].island = i;
		queue[tail++] = i;
		while (head < tail) {
			const struct check_switch *sw = &net->sw[queue[head++]];

			for (unsigned k = 1; k <= sw->n_ports; k++) {
				const struct check_port *p = &sw->port[k];

				if (p->end != CHECK_TO_SWITCH ||
				    net->sw[p->to].island != CHECK_NONE)
					continue;
				net->sw[p->to].island = i;
				queue[tail++] = p->to;
			}
		}
	}
	free(queue);
	return 0;
}

int check_net_finish(struct check_net *net)
{
	uint32_t n = 0;

	net->first = calloc((size_t)net->n + 1, sizeof(*net->first));
	if (!net->first)
		return -ENOMEM;
	for (uint32_t i = 0; i < net->n; i++) {
		net->first[i] = n;
		n += net->sw[i].n_ports + 1;
		net->sw[i].n_hosts = 0;
	}
	net->first[net->n] = net->n_channels = n;
	net->channel_at = calloc((size_t)n + 1, sizeof(*net->channel_at));
	if (!net->channel_at)
		return -ENOMEM;
	for (uint32_t i = 0; i < net->n; i++)
		for (uint32_t c = net->first[i]; c < net->first[i + 1]; c++)
			net->channel_at[c] = i;
	for (uint32_t i = 0; i < net->n_hosts; i++)
		if (net->host[i].at != CHECK_NONE)
			net->sw[net->host[i].at].n_hosts++;
	check_net_find_levels(net);
	return find_islands(net);
}

const struct check_tree *check_tree_of(const struct check_net *net, uint16_t mlid)
{
	uint32_t i = mlid >= CHECK_MLID ? net->tree_of[mlid - CHECK_MLID] : CHECK_NONE;

	return i != CHECK_NONE ? &net->tree[i] : NULL;
}

bool check_has_key(const struct check_keys *keys, uint16_t pkey)
{
	for (unsigned i = 0; i < keys->n; i++)
		if ((keys->key[i] & PKEY_BASE) == (pkey & PKEY_BASE))
			return true;
	return !keys->n;
}

static bool port_drops(const struct check_switch *sw, const struct check_port *p)
{
	const unsigned vls = p->vls ? p->vls : CHECK_LANES;

	for (unsigned in = 0; p->map && in <= sw->n_ports; in++)
		for (unsigned sl = 0; sl < CHECK_SLS; sl++)
			if (p->map[in][sl] >= vls)
				return true;
	return false;
}

bool check_net_drops(const struct check_net *net)
{
	for (uint32_t i = 0; i < net->n; i++)
		for (unsigned k = 1; k <= net->sw[i].n_ports; k++)
			if (port_drops(&net->sw[i], &net->sw[i].port[k]))
				return true;
	return false;
}
