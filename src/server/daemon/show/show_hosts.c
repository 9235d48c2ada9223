/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The view "hosts": hosts with their HCAs, ports and addresses.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/show/views.h"

static void add_addresses(struct show_json *o, const struct shm_port *p)
{
	static const uint8_t none[16];
	char text[INET6_ADDRSTRLEN];

	if (p->ipv4) {
		inet_ntop(AF_INET, &p->ipv4, text, sizeof(text));
		show_add_string(o, NULL, text);
	}
	if (memcmp(p->ipv6, none, sizeof(none))) {
		inet_ntop(AF_INET6, p->ipv6, text, sizeof(text));
		show_add_string(o, NULL, text);
	}
}

static void add_gids(struct show_json *o, const struct shm_port *p)
{
	static const struct ib_gid none;

	show_open(o, "gids", '[');
	for (unsigned i = 0; i < p->n_gids; i++)
		if (memcmp(&p->gid[i], &none, sizeof(none)))
			show_add_gid(o, NULL, &p->gid[i]);
	show_close(o, ']');
}

static void add_port(const struct daemon_show *s, struct show_json *o, const struct fabric_port *p)
{
	const struct shm_port *shared = shm_port_at(s->f->region, p->index);

	show_open(o, NULL, '{');
	show_add_u64(o, "port", p->num);
	show_add_u64(o, "lid", p->lid);
	show_add_gid(o, "gid", &shared->gid[0]);
	show_add_string(o, "state", show_state_name(p->state));
	show_open(o, "addresses", '[');
	add_addresses(o, shared);
	show_close(o, ']');
	if (p->ethernet) {
		show_add_text(o, "device", "%s", daemon_roce_device(s->roce, p->index));
		add_gids(o, shared);
	}
	show_close(o, '}');
}

static void add_hca(const struct daemon_show *s, struct show_json *o, const struct shm_hca *hca)
{
	show_open(o, NULL, '{');
	show_add_text(o, "name", "%s", hca->name);
	show_add_text(o, "node_guid", "0x%016llx", (unsigned long long)hca->node_guid);
	show_open(o, "ports", '[');
	for (uint32_t k = hca->first_port; k < hca->first_port + hca->n_ports; k++)
		add_port(s, o, s->f->hca_port[k]);
	show_close(o, ']');
	show_close(o, '}');
}

/* The HCAs by host: host i has those at [first[i]] to [first[i + 1] - 1] behind. */
static uint32_t *hcas_by_host(const struct daemon_show *s)
{
	uint32_t n_hosts = s->f->n_hosts, n_hcas = s->f->region->control->n_hcas;
	uint32_t *first = calloc((size_t)n_hosts + 2 + n_hcas, sizeof(*first)), *hca;

	if (!first)
		return NULL;
	hca = first + n_hosts + 2;
	for (uint32_t i = 0; i < n_hcas; i++)
		first[shm_hca_at(s->f->region, i)->host_index + 2]++;
	for (uint32_t i = 0; i < n_hosts; i++)
		first[i + 2] += first[i + 1];
	for (uint32_t i = 0; i < n_hcas; i++)
		hca[first[shm_hca_at(s->f->region, i)->host_index + 1]++] = i;
	return first;
}

bool daemon_show_host(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	const uint32_t *first, *hca;

	if (at->part >= s->f->n_hosts)
		return false;
	if (!at->state)
		at->state = hcas_by_host(s);
	if (!at->state) {
		o->failed = true;
		return false;
	}
	first = at->state;
	hca = first + s->f->n_hosts + 2;
	show_open(o, NULL, '{');
	show_add_text(o, "name", "%s", s->f->host[at->part].name);
	show_open(o, "addresses", '[');
	for (uint32_t i = first[at->part]; i < first[at->part + 1]; i++)
		for (uint32_t k = 0; k < shm_hca_at(s->f->region, hca[i])->n_ports; k++)
			add_addresses(
			        o, shm_port_at(s->f->region,
			                       shm_hca_at(s->f->region, hca[i])->first_port + k));
	show_close(o, ']');
	show_open(o, "hcas", '[');
	for (uint32_t i = first[at->part]; i < first[at->part + 1]; i++)
		add_hca(s, o, shm_hca_at(s->f->region, hca[i]));
	show_close(o, ']');
	show_close(o, '}');
	return true;
}
