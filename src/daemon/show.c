/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the manager tells about its fabric, as JSON: one function a subject, in a
 * table. The command line makes tables of it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/util.h"
#include "daemon/state.h"
#include "wire/roce.h"
#include "wire/rate.h"

typedef struct json_object json;

static void add_u64(json *o, const char *key, uint64_t v)
{
	json_object_object_add(o, key, json_object_new_uint64(v));
}

static void add_text(json *o, const char *key, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

static void add_text(json *o, const char *key, const char *format, ...)
{
	char text[128];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_object_object_add(o, key, json_object_new_string(text));
}

/* A new array under @key. */
static json *add_array(json *o, const char *key)
{
	json *a = json_object_new_array();

	json_object_object_add(o, key, a);
	return a;
}

static void add_gid(json *o, const char *key, const struct ib_gid *gid)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, gid, text, sizeof(text));
	json_object_object_add(o, key, json_object_new_string(text));
}

static const char *state_name(unsigned state)
{
	static const char *const names[] = { "none", "down", "init", "armed", "active" };

	return state < ARRAY_SIZE(names) ? names[state] : "?";
}

/* The embedded subnet manager, and the one that the ports know. On Ethernet there is none. */
static json *sm_json(struct daemon *d)
{
	static const char *const states[] = { "not active", "discovering", "standby", "master" };
	const struct fabric_port *home = sm_role_home(d->sm_role);
	json *o = json_object_new_object();

	add_text(o, "state", "%s", states[sm_role_state(d->sm_role)]);
	add_text(o, "port", "%s:%u", home->node->name, home->num);
	add_u64(o, "master_lid", home->sm_lid);
	return o;
}

/* How many ports with a cable are in which state, those of switches included. */
static json *port_states_json(const struct daemon *d)
{
	json *o = json_object_new_object();
	uint64_t n[IB_PORT_ACTIVE + 1] = { 0 };

	for (unsigned i = 0; i < d->f->n_nodes; i++)
		for (unsigned k = 1; k <= d->f->node[i]->n_ports; k++) {
			const struct fabric_port *p = &d->f->node[i]->port[k];

			if (p->peer && p->state <= IB_PORT_ACTIVE)
				n[p->state]++;
		}
	for (unsigned state = IB_PORT_DOWN; state <= IB_PORT_ACTIVE; state++)
		add_u64(o, state_name(state), n[state]);
	return o;
}

static json *show_status(struct daemon *d)
{
	json *o = json_object_new_object(), *settings = json_object_new_object();
	unsigned clients = 0, switches = 0;
	const char *key;
	uint32_t value;

	for (uint32_t i = 0; i < d->clients.size; i++) {
		struct daemon_client *c = base_idtable_get(&d->clients, i);

		clients += c && c->role == CONTROL_ROLE_VERBS && c->greeted && c->sock >= 0;
	}
	for (unsigned i = 0; i < d->f->n_nodes; i++)
		switches += d->f->node[i]->type == FABRIC_SWITCH;
	add_text(o, "name", "%s", d->name);
	add_u64(o, "pid", (uint64_t)getpid());
	add_u64(o, "up_since", d->up_since);
	add_u64(o, "hosts", d->f->n_hosts);
	add_u64(o, "switches", switches);
	add_u64(o, "clients", clients);
	add_u64(o, "qps", d->qps.used - 2 - d->n_wire_qps);
	add_u64(o, "cqs", d->cqs.used);
	add_u64(o, "channels", d->channels.used);
	add_u64(o, "flows", d->f->flows->ids.used);
	add_u64(o, "groups", d->sa ? d->sa->groups.n : 0);
	add_u64(o, "ring_bytes", d->rings.in_use);
	add_u64(o, "payload_bytes", d->payloads.in_use);
	json_object_object_add(o, "ports", port_states_json(d));
	if (d->sm_role)
		json_object_object_add(o, "sm", sm_json(d));
	for (unsigned i = 0; fabric_settings_get(&d->f->settings, i, &key, &value); i++) {
		const char *name = fabric_settings_name(&d->f->settings, i);

		if (name)
			add_text(settings, key, "%s", name);
		else
			add_u64(settings, key, value);
	}
	json_object_object_add(o, "settings", settings);
	return o;
}

static void add_addresses(json *a, const struct shm_port *p)
{
	static const uint8_t none[16];
	char text[INET6_ADDRSTRLEN];

	if (p->ipv4) {
		inet_ntop(AF_INET, &p->ipv4, text, sizeof(text));
		json_object_array_add(a, json_object_new_string(text));
	}
	if (memcmp(p->ipv6, none, sizeof(none))) {
		inet_ntop(AF_INET6, p->ipv6, text, sizeof(text));
		json_object_array_add(a, json_object_new_string(text));
	}
}

static void add_gids(json *a, const struct shm_port *p)
{
	static const struct ib_gid none;
	char text[INET6_ADDRSTRLEN];

	for (unsigned i = 0; i < p->n_gids; i++) {
		if (!memcmp(&p->gid[i], &none, sizeof(none)))
			continue;
		inet_ntop(AF_INET6, &p->gid[i], text, sizeof(text));
		json_object_array_add(a, json_object_new_string(text));
	}
}

static json *hca_port_json(struct daemon *d, const struct fabric_port *p)
{
	json *o = json_object_new_object();

	add_u64(o, "port", p->num);
	add_u64(o, "lid", p->lid);
	add_gid(o, "gid", &d->f->region->ports[p->index].gid[0]);
	add_text(o, "state", "%s", state_name(p->state));
	add_addresses(add_array(o, "addresses"), &d->f->region->ports[p->index]);
	if (p->ethernet) {
		add_text(o, "device", "%s", daemon_roce_device(d->roce, p->index));
		add_gids(add_array(o, "gids"), &d->f->region->ports[p->index]);
	}
	return o;
}

static json *host_json(struct daemon *d, unsigned host)
{
	const struct fabric_host *h = &d->f->host[host];
	json *o = json_object_new_object(), *addresses, *hcas;

	add_text(o, "name", "%s", h->name);
	addresses = add_array(o, "addresses");
	hcas = add_array(o, "hcas");
	for (uint32_t i = 0; i < d->f->region->control->n_hcas; i++) {
		const struct shm_hca *hca = &d->f->region->hcas[i];
		json *e = json_object_new_object(), *ports;

		if (hca->host_index != host) {
			json_object_put(e);
			continue;
		}
		add_text(e, "name", "%s", hca->name);
		add_text(e, "node_guid", "0x%016llx", (unsigned long long)hca->node_guid);
		ports = add_array(e, "ports");
		for (uint32_t k = hca->first_port; k < hca->first_port + hca->n_ports; k++) {
			add_addresses(addresses, &d->f->region->ports[k]);
			json_object_array_add(ports, hca_port_json(d, d->f->hca_port[k]));
		}
		json_object_array_add(hcas, e);
	}
	return o;
}

static json *show_hosts(struct daemon *d)
{
	json *a = json_object_new_array();

	for (unsigned i = 0; i < d->f->n_hosts; i++)
		json_object_array_add(a, host_json(d, i));
	return a;
}

static const char *width_name(unsigned width)
{
	switch (width) {
	case FABRIC_WIDTH_1X:
		return "1x";
	case FABRIC_WIDTH_2X:
		return "2x";
	case FABRIC_WIDTH_4X:
		return "4x";
	case FABRIC_WIDTH_8X:
		return "8x";
	default:
		return "12x";
	}
}

static const char *speed_name(unsigned speed)
{
	static const char *const names[] = { "SDR", "DDR", "QDR", "FDR10",
		                             "FDR", "EDR", "HDR", "NDR" };

	return names[__builtin_ctz(speed | 0x80)];
}

static json *link_json(struct daemon *d, const struct fabric_port *p)
{
	json *o = json_object_new_object();

	add_u64(o, "port", p->num);
	add_text(o, "state", "%s", state_name(p->state));
	add_u64(o, "lid", p->lid);
	if (p->peer) {
		add_text(o, "peer", "%s", p->peer->node->name);
		add_u64(o, "peer_port", p->peer->num);
	}
	if (p->ethernet)
		add_text(o, "device", "%s", daemon_roce_device(d->roce, p->index));
	add_u64(o, "mtu", IB_MTU_BYTES(p->mtu));
	add_text(o, "rate", "%s %s", width_name(p->width), speed_name(p->speed));
	return o;
}

static json *show_topology(struct daemon *d)
{
	json *o = json_object_new_object(), *nodes = add_array(o, "nodes");

	for (unsigned i = 0; i < d->f->n_nodes; i++) {
		const struct fabric_node *node = d->f->node[i];
		json *e = json_object_new_object(), *ports;

		add_text(e, "name", "%s", node->name);
		add_text(e, "type", "%s", node->type == FABRIC_SWITCH ? "switch" : "host");
		add_text(e, "guid", "0x%016llx", (unsigned long long)node->guid);
		if (node->type == FABRIC_SWITCH)
			add_u64(e, "lid", node->port[0].lid);
		if (node->dead)
			json_object_object_add(e, "dead", json_object_new_boolean(true));
		add_u64(e, "n_ports", node->n_ports);
		ports = add_array(e, "ports");
		for (unsigned k = 1; k <= node->n_ports; k++)
			if (node->port[k].peer || node->port[k].ethernet)
				json_object_array_add(ports, link_json(d, &node->port[k]));
		json_object_array_add(nodes, e);
	}
	return o;
}

static const char *join_name(unsigned state)
{
	if (state & IB_JOIN_FULL)
		return "full";
	if (state & IB_JOIN_SEND_ONLY_FULL)
		return "send-only";
	return state & IB_JOIN_NON ? "non" : "send-only-non";
}

/* The ports of an MFT row as an array. */
static json *row_json(const struct fabric_node *sw, const struct fabric_mft_row *row)
{
	json *a = json_object_new_array();

	for (unsigned k = 0; k <= sw->n_ports; k++)
		if (fabric_row_has(row, k))
			json_object_array_add(a, json_object_new_uint64(k));
	return a;
}

static void add_tree(struct daemon *d, json *o, uint16_t mlid)
{
	json *tree = add_array(o, "tree");

	for (unsigned i = 0; i < d->f->n_nodes; i++) {
		const struct fabric_node *sw = d->f->node[i];
		json *e, *ports;

		if (sw->type != FABRIC_SWITCH)
			continue;
		ports = row_json(sw, fabric_mft_get(sw, mlid));
		if (!json_object_array_length(ports)) {
			json_object_put(ports);
			continue;
		}
		e = json_object_new_object();
		add_text(e, "switch", "%s", sw->name);
		json_object_object_add(e, "ports", ports);
		json_object_array_add(tree, e);
	}
}

static void add_attached(struct daemon *d, json *o, const struct ib_gid *mgid)
{
	json *a = add_array(o, "attached");

	for (uint32_t hca = 0; hca < d->f->region->control->n_hcas; hca++) {
		struct fabric_attached *g = fabric_attach_find(d->f, hca, mgid);

		for (uint32_t i = 0; g && i < g->n; i++) {
			json *e;

			if (g->entry[i].again)
				continue;
			e = json_object_new_object();
			add_text(e, "host", "%s", d->f->region->hcas[hca].host);
			add_text(e, "qpn", "0x%06x", g->entry[i].qpn);
			json_object_array_add(a, e);
		}
	}
}

static int compare_members(const void *a, const void *b)
{
	const struct sa_member *const *m = a, *const *n = b;

	return (*m)->port->index < (*n)->port->index ? -1 : (*m)->port->index > (*n)->port->index;
}

/* The members of a group as an array, in the order of their ports; none if there is no memory. */
static void add_members(struct daemon *d, json *o, const struct sa_group *g)
{
	json *a = add_array(o, "members");
	const struct sa_member **sorted = calloc(g->n_members, sizeof(struct sa_member *));

	if (!sorted)
		return;
	for (unsigned i = 0; i < g->n_members; i++)
		sorted[i] = &g->member[i];
	qsort(sorted, g->n_members, sizeof(struct sa_member *), compare_members);
	for (unsigned i = 0; i < g->n_members; i++) {
		const struct fabric_port *p = sorted[i]->port;
		json *e = json_object_new_object();

		add_text(e, "host", "%s", d->f->region->hcas[p->node->hca].host);
		add_gid(e, "port_gid", &d->f->region->ports[p->index].gid[0]);
		add_text(e, "join_state", "%s", join_name(sorted[i]->join_state));
		json_object_array_add(a, e);
	}
	free(sorted);
}

static json *group_json(struct daemon *d, const struct sa_group *g)
{
	json *o = json_object_new_object();

	add_gid(o, "mgid", &g->rec.mgid);
	add_text(o, "mlid", "0x%04x", g->rec.mlid);
	add_text(o, "qkey", "0x%08x", g->rec.qkey);
	add_text(o, "pkey", "0x%04x", g->rec.pkey);
	add_u64(o, "mtu", IB_MTU_BYTES(g->rec.mtu));
	add_u64(o, "rate", g->rec.rate);
	add_u64(o, "rate_mbps", wire_rate_to_mbps(g->rec.rate));
	add_u64(o, "sl", g->rec.sl);
	add_members(d, o, g);
	add_attached(d, o, &g->rec.mgid);
	add_tree(d, o, g->rec.mlid);
	return o;
}

/* Whether an HCA before @hca has an attachment to the group, so that it has been listed. */
static bool is_listed(const struct daemon *d, uint32_t hca, const struct ib_gid *mgid)
{
	for (uint32_t i = 0; i < hca; i++)
		if (fabric_attach_find(d->f, i, mgid))
			return true;
	return false;
}

static json *seen_group(struct daemon *d, const struct ib_gid *mgid, uint16_t mlid)
{
	json *o = json_object_new_object();

	if (mgid)
		add_gid(o, "mgid", mgid);
	add_text(o, "mlid", "0x%04x", mlid);
	if (mgid)
		add_attached(d, o, mgid);
	add_tree(d, o, mlid);
	return o;
}

/*
 * What can be seen of the groups of a subnet administrator that is not ours: attachments, and
 * what its subnet manager has written into the switches.
 */
static json *show_seen_groups(struct daemon *d)
{
	json *a = json_object_new_array();
	bool *listed = calloc(1u << 16, sizeof(*listed));
	struct base_hash_node *n;

	for (n = listed ? base_hash_walk(&d->f->attach->groups, NULL) : NULL; n;
	     n = base_hash_walk(&d->f->attach->groups, n)) {
		const struct fabric_attached *g = container_of(n, struct fabric_attached, node);

		if (!g->n || is_listed(d, g->hca, &g->mgid))
			continue;
		listed[g->entry[0].mlid] = true;
		json_object_array_add(a, seen_group(d, &g->mgid, g->entry[0].mlid));
	}
	for (uint32_t mlid = IB_LID_MCAST_FIRST; listed && mlid < IB_LID_PERMISSIVE; mlid++) {
		json *o = listed[mlid] ? NULL : seen_group(d, NULL, (uint16_t)mlid);

		if (o && json_object_array_length(json_object_object_get(o, "tree")))
			json_object_array_add(a, o);
		else
			json_object_put(o);
	}
	free(listed);
	return a;
}

/* On Ethernet a group is what somebody is attached to, and the network knows its members. */
static json *ethernet_group_json(struct daemon *d, const struct fabric_attached *g)
{
	json *o = json_object_new_object();

	add_gid(o, "mgid", &g->mgid);
	add_text(o, "hca", "%s", d->f->region->hcas[g->hca].name);
	add_attached(d, o, &g->mgid);
	return o;
}

static json *show_ethernet_groups(struct daemon *d)
{
	json *a = json_object_new_array();
	struct base_hash_node *n;

	for (n = base_hash_walk(&d->f->attach->groups, NULL); n;
	     n = base_hash_walk(&d->f->attach->groups, n))
		json_object_array_add(
		        a, ethernet_group_json(d, container_of(n, struct fabric_attached, node)));
	return a;
}

static json *show_groups(struct daemon *d)
{
	json *a;

	if (d->roce)
		return show_ethernet_groups(d);
	if (!d->sa)
		return show_seen_groups(d);
	a = json_object_new_array();
	/* by MLID: the order in which they came, more or less */
	for (uint32_t i = 0; i < d->sa->mlids.size; i++) {
		const struct sa_mlid *m = base_idtable_get(&d->sa->mlids, i);
		const struct sa_group *g;

		for (g = m ? TAILQ_FIRST(&m->groups) : NULL; g; g = TAILQ_NEXT(g, of_mlid))
			json_object_array_add(a, group_json(d, g));
	}
	return a;
}

static json *show_routes(struct daemon *d)
{
	json *a = json_object_new_array();

	for (unsigned i = 0; i < d->f->n_nodes; i++) {
		const struct fabric_node *sw = d->f->node[i];
		json *o, *lft, *mft;

		if (sw->type != FABRIC_SWITCH)
			continue;
		o = json_object_new_object();
		add_text(o, "switch", "%s", sw->name);
		lft = add_array(o, "lft");
		for (uint32_t lid = 1; lid < sw->lft_size; lid++) {
			json *e;

			if (sw->lft[lid] == FABRIC_LFT_NONE)
				continue;
			e = json_object_new_object();
			add_u64(e, "lid", lid);
			add_u64(e, "port", sw->lft[lid]);
			json_object_array_add(lft, e);
		}
		mft = add_array(o, "mft");
		for (uint32_t m = 0; m < sw->mft_size; m++) {
			json *ports = row_json(sw, &sw->mft[m]), *e;

			if (!json_object_array_length(ports)) {
				json_object_put(ports);
				continue;
			}
			e = json_object_new_object();
			add_text(e, "mlid", "0x%04x", IB_LID_MCAST_FIRST + m);
			json_object_object_add(e, "ports", ports);
			json_object_array_add(mft, e);
		}
		json_object_array_add(a, o);
	}
	return a;
}

static void add_errors(struct daemon *d, json *o, uint32_t port)
{
	struct shm_port_count *c = &d->f->region->port_counts[port];
#define ERROR(field) add_u64(o, #field, atomic_load_explicit(&c->field, memory_order_relaxed))
	ERROR(no_receive);
	ERROR(bad_qkey);
	ERROR(bad_pkey);
	ERROR(no_qp);
	ERROR(xmit_discards);
	ERROR(no_payload_slot);
#undef ERROR
}

static void add_losses(json *o, const struct fabric_port *p)
{
	add_u64(o, "relay_errors", p->stats.lost[FABRIC_LOST_RELAY]);
	add_u64(o, "xmit_discards", p->stats.lost[FABRIC_LOST_DISCARD]);
	add_u64(o, "xmit_constraint", p->stats.lost[FABRIC_LOST_XMIT_PKEY]);
	add_u64(o, "rcv_constraint", p->stats.lost[FABRIC_LOST_RCV_PKEY]);
}

/* What of that which the wire of an Ethernet port brought was not right, and how. */
static void add_wire(struct daemon *d, json *o, uint32_t port)
{
	struct shm_wire *w = &d->f->region->wires[port];

	for (int i = WIRE_ROCE_OK + 1; i < WIRE_ROCE_STATUSES; i++)
		add_u64(o, wire_roce_status_name((enum wire_roce_status)i),
		        atomic_load_explicit(&w->bad[i], memory_order_relaxed));
#define WIRE(field) add_u64(o, #field, atomic_load_explicit(&w->field, memory_order_relaxed))
	WIRE(own);
	WIRE(no_member);
	WIRE(overflow);
	WIRE(unreachable);
	WIRE(bad_mad);
	WIRE(overtakes);
#undef WIRE
}

static json *show_counters(struct daemon *d)
{
	json *o = json_object_new_object(), *ports = add_array(o, "ports");

	fabric_flow_collect(d->f);
	for (unsigned i = 0; i < d->f->n_nodes; i++) {
		const struct fabric_node *node = d->f->node[i];

		for (unsigned k = 1; k <= node->n_ports; k++) {
			const struct fabric_port *p = &node->port[k];
			json *e;

			if (!p->peer && !p->ethernet)
				continue;
			e = json_object_new_object();
			add_text(e, "node", "%s", node->name);
			add_u64(e, "port", k);
			add_u64(e, "xmit_pkts", p->stats.xmit_packets);
			add_u64(e, "rcv_pkts", p->stats.recv_packets);
			add_u64(e, "xmit_bytes", p->stats.xmit_bytes);
			add_u64(e, "rcv_bytes", p->stats.recv_bytes);
			if (p->ethernet)
				add_wire(d, e, p->index);
			if (node->type == FABRIC_HCA)
				add_errors(d, e, p->index);
			else
				add_losses(e, p);
			json_object_array_add(ports, e);
		}
	}
	return o;
}

static const struct subject {
	const char *name;
	json *(*show)(struct daemon *d);
} subjects[] = {
	{ "status", show_status }, { "hosts", show_hosts },   { "topology", show_topology },
	{ "groups", show_groups }, { "routes", show_routes }, { "counters", show_counters },
};

/* A memfd that holds @text. */
static int text_fd(const char *text)
{
	size_t len = strlen(text), done = 0;
	int fd = memfd_create("umbel-show", MFD_CLOEXEC);

	while (fd >= 0 && done < len) {
		ssize_t n = write(fd, text + done, len - done);

		if (n < 0) {
			int ret = -errno;

			close(fd);
			return ret;
		}
		done += (size_t)n;
	}
	return fd < 0 ? -errno : fd;
}

int daemon_show(struct daemon *d, const char *what)
{
	for (size_t i = 0; i < ARRAY_SIZE(subjects); i++) {
		json *o;
		int fd;

		if (strcmp(subjects[i].name, what))
			continue;
		o = subjects[i].show(d);
		fd = text_fd(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
		json_object_put(o);
		return fd;
	}
	return -EINVAL;
}
