/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The subnet of a fabric that is up, out of the daemon's topology, ports, tables and groups: see
 * subnet.h.
 */
#include <arpa/inet.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/base/json.h"
#include "cli/check/route_tables.h"
#include "cli/check/subnet.h"
#include "control/client.h"
#include "wire/rate.h"

#define NS_PER_MS   1000000ull
#define PATIENCE_NS (60000 * NS_PER_MS) /* for a sweep */
#define LOOK_MS     10

static bool is_switch(struct json_object *node)
{
	return !strcmp(cli_json_text(node, "type"), "switch");
}

/* ---- topology ---- */

/* 1000 of "4x EDR". */
static unsigned rate_of(const char *text)
{
	unsigned width;
	char speed[8] = "";

	if (sscanf(text, "%ux %7s", &width, speed) != 2)
		return 0;
	return wire_link_speed(wire_link_width(width), wire_link_speed_named(speed, strlen(speed)));
}

/* enum ibv_mtu of a number of bytes. */
static uint8_t mtu_of(long bytes)
{
	return bytes >= 256 ? (uint8_t)(base_log2_up((uint64_t)bytes) - 7) : 0;
}

static bool is_active(struct json_object *port)
{
	return !strcmp(cli_json_text(port, "state"), "active");
}

/* Up, but no subnet manager has made it active. */
static bool is_idle(struct json_object *port)
{
	return !is_active(port) && strcmp(cli_json_text(port, "state"), "down") != 0 &&
	       json_object_object_get(port, "peer");
}

static int read_switch(struct cli_subnet *s, struct json_object *node, uint32_t i)
{
	struct check_switch *sw = &s->net.sw[i];
	struct json_object *ports = cli_json_array(node, "ports");

	sw->name = cli_json_text(node, "name");
	sw->lid = (uint16_t)cli_json_number(node, "lid");
	if (check_set_ports(sw, (unsigned)cli_json_number(node, "n_ports")))
		return cli_no_memory();
	for (size_t k = 0; k < cli_json_count(ports); k++) {
		unsigned num = (unsigned)cli_json_number(cli_json_at(ports, k), "port");

		if (num > sw->n_ports)
			continue;
		sw->port[num].idle = is_idle(cli_json_at(ports, k));
		if (!is_active(cli_json_at(ports, k)))
			continue;
		sw->port[num].mtu = mtu_of(cli_json_number(cli_json_at(ports, k), "mtu"));
		sw->port[num].rate = rate_of(cli_json_text(cli_json_at(ports, k), "rate"));
	}
	return cli_subnet_add_name(s, sw->name, (struct cli_subnet_end){ true, i });
}

/* The far end of a port, if it is a switch's whose end of the link is active. */
static const struct cli_subnet_end *far_end(struct cli_subnet *s, struct json_object *port,
                                            unsigned *num)
{
	const struct cli_subnet_end *end = cli_subnet_by_name(s, cli_json_text(port, "peer"));

	*num = (unsigned)cli_json_number(port, "peer_port");
	if (!end || !end->is_switch || *num > s->net.sw[end->index].n_ports ||
	    !s->net.sw[end->index].port[*num].mtu || !is_active(port))
		return NULL;
	return end;
}

static void link_switch(struct cli_subnet *s, struct json_object *node, uint32_t i)
{
	struct json_object *ports = cli_json_array(node, "ports");
	unsigned far;

	for (size_t k = 0; k < cli_json_count(ports); k++) {
		unsigned num = (unsigned)cli_json_number(cli_json_at(ports, k), "port");
		const struct cli_subnet_end *end = far_end(s, cli_json_at(ports, k), &far);

		if (end && num <= s->net.sw[i].n_ports)
			check_link(&s->net, i, num, end->index, far);
	}
}

/* The ports of an HCA, from number *@n on. */
static int read_hosts(struct cli_subnet *s, struct json_object *node, uint32_t *n)
{
	struct json_object *ports = cli_json_array(node, "ports");
	const char *name = cli_json_text(node, "name");

	if (cli_json_count(ports) &&
	    cli_subnet_add_name(s, name, (struct cli_subnet_end){ false, *n }))
		return CLI_FAILED;
	for (size_t k = 0; k < cli_json_count(ports); k++, (*n)++) {
		struct json_object *port = cli_json_at(ports, k);
		struct check_host *h = &s->net.host[*n];
		const struct cli_subnet_end *end;
		unsigned far;

		h->name = cli_json_number(node, "n_ports") > 1
		                  ? cli_subnet_port_name(s, name,
		                                         (unsigned)cli_json_number(port, "port"))
		                  : name;
		if (!h->name)
			return CLI_FAILED;
		h->lid = (uint16_t)cli_json_number(port, "lid");
		h->n_lids = 1;
		h->idle = is_idle(port);
		h->mtu = mtu_of(cli_json_number(port, "mtu"));
		h->rate = rate_of(cli_json_text(port, "rate"));
		end = far_end(s, port, &far);
		if (end)
			check_link_host(&s->net, end->index, far, *n);
	}
	return 0;
}

static int read_topology(struct cli_subnet *s, struct control_client *client)
{
	uint32_t n_switches = 0, n_hosts = 0, i_switch = 0, i_host = 0;
	struct json_object *nodes;
	int ret = 0;

	s->kept[0] = cli_request_json(client, "topology");
	if (!s->kept[0])
		return CLI_FAILED;
	nodes = cli_json_array(s->kept[0], "nodes");
	for (size_t i = 0; i < cli_json_count(nodes); i++) {
		if (is_switch(cli_json_at(nodes, i)))
			n_switches++;
		else
			n_hosts += (uint32_t)cli_json_count(
			        cli_json_array(cli_json_at(nodes, i), "ports"));
	}
	if (check_net_init(&s->net, n_switches, n_hosts))
		return cli_no_memory();
	for (size_t i = 0; i < cli_json_count(nodes) && !ret; i++)
		if (is_switch(cli_json_at(nodes, i)))
			ret = read_switch(s, cli_json_at(nodes, i), i_switch++);
	i_switch = 0;
	for (size_t i = 0; i < cli_json_count(nodes) && !ret; i++)
		if (is_switch(cli_json_at(nodes, i)))
			link_switch(s, cli_json_at(nodes, i), i_switch++);
		else
			ret = read_hosts(s, cli_json_at(nodes, i), &i_host);
	return ret;
}

/* ---- ports ---- */

/* The bytes of a text of hex digits, from malloc(); NULL: there are none, or no memory. */
static uint8_t *bytes_of(struct json_object *o, const char *key, size_t least, size_t *n)
{
	const char *text = cli_json_text(o, key);
	uint8_t *bytes;

	*n = strlen(text) / 2;
	if (*n < least || !*n)
		return NULL;
	bytes = malloc(*n);
	for (size_t i = 0; bytes && i < *n; i++) {
		const char digits[3] = { text[2 * i], text[2 * i + 1], '\0' };

		bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return bytes;
}

static int read_keys(struct json_object *port, struct check_keys *keys)
{
	struct json_object *array = cli_json_array(port, "pkeys");
	size_t n = cli_json_count(array);

	if (!n)
		return 0;
	keys->key = calloc(n, sizeof(*keys->key));
	if (!keys->key)
		return cli_no_memory();
	for (size_t i = 0; i < n; i++)
		keys->key[keys->n++] = (uint16_t)json_object_get_int(cli_json_at(array, i));
	return 0;
}

static void read_m_key(struct json_object *from, struct check_m_key *k)
{
	k->key = strtoull(cli_json_text(from, "m_key"), NULL, 16);
	k->protect = (uint8_t)cli_json_number(from, "m_key_protect");
	k->lease_s = (unsigned)cli_json_number(from, "m_key_lease");
}

static int read_switch_port(struct check_switch *sw, struct json_object *port)
{
	unsigned num = (unsigned)cli_json_number(port, "port");
	struct check_port *p = &sw->port[num];
	size_t n;

	if (num > sw->n_ports)
		return 0;
	p->vls = (uint8_t)cli_json_number(port, "vls");
	p->inbound = json_object_object_get(port, "inbound") != NULL;
	p->outbound = json_object_object_get(port, "outbound") != NULL;
	p->map = (uint8_t(*)[CHECK_SLS])bytes_of(port, "lanes", (sw->n_ports + 1) * CHECK_SLS, &n);
	return read_keys(port, &p->keys);
}

static int read_host_port(struct cli_subnet *s, uint32_t i, struct json_object *port)
{
	const char *guid = cli_json_text(port, "guid");

	if (i >= s->net.n_hosts)
		return 0;
	s->net.host[i].n_lids = (uint16_t)(1u << cli_json_number(port, "lmc"));
	read_m_key(port, &s->net.host[i].m_key);
	if (cli_subnet_add_guid(s, strtoull(guid, NULL, 16), (struct cli_subnet_end){ false, i }))
		return CLI_FAILED;
	return read_keys(port, &s->net.host[i].keys);
}

static int read_node_ports(struct cli_subnet *s, struct json_object *node)
{
	const struct cli_subnet_end *end = cli_subnet_by_name(s, cli_json_text(node, "node"));
	struct json_object *ports = cli_json_array(node, "ports");
	int ret = 0;

	for (size_t k = 0; end && k < cli_json_count(ports) && !ret; k++)
		ret = end->is_switch
		              ? read_switch_port(&s->net.sw[end->index], cli_json_at(ports, k))
		              : read_host_port(s, end->index + (uint32_t)k, cli_json_at(ports, k));
	if (end && end->is_switch) {
		struct check_switch *sw = &s->net.sw[end->index];
		size_t n;

		read_m_key(node, &sw->m_key);
		sw->sl = bytes_of(node, "levels", 1, &n);
		sw->n_sls = sw->sl ? (unsigned)n : 0;
		s->levels |= sw->sl != NULL;
	}
	return ret;
}

static int read_ports(struct cli_subnet *s, struct control_client *client)
{
	struct json_object *nodes = cli_request_json(client, "ports");
	int ret = nodes ? 0 : CLI_FAILED;

	s->net.has_m_keys = true;
	for (size_t i = 0; !ret && i < cli_json_count(nodes); i++)
		ret = read_node_ports(s, cli_json_at(nodes, i));
	json_object_put(nodes);
	return ret;
}

/* ---- tables ---- */

static int read_mft(struct cli_subnet *s, uint32_t sw, struct json_object *mft)
{
	for (size_t i = 0; i < cli_json_count(mft); i++) {
		unsigned long mlid = strtoul(cli_json_text(cli_json_at(mft, i), "mlid"), NULL, 16);
		struct json_object *ports = cli_json_array(cli_json_at(mft, i), "ports");
		uint64_t row[CHECK_BLOCKS] = { 0 };

		for (size_t k = 0; k < cli_json_count(ports); k++) {
			unsigned port = (unsigned)json_object_get_int(cli_json_at(ports, k));

			if (port < 64 * CHECK_BLOCKS)
				row[port / 64] |= 1ull << port % 64;
		}
		if (mlid >= CHECK_MLID && mlid < CHECK_MLID + CHECK_MLIDS &&
		    check_add_row(&s->net, (uint16_t)mlid, sw, row))
			return cli_no_memory();
	}
	return 0;
}

static int keep_table(void *arg, const struct cli_switch *from)
{
	struct cli_subnet *s = arg;
	const struct cli_subnet_end *end = cli_subnet_by_name(s, from->name);
	struct check_switch *sw;

	if (!end || !end->is_switch || s->net.sw[end->index].lft)
		return 0;
	sw = &s->net.sw[end->index];
	sw->lft = malloc(from->n_stored + (size_t)1);
	if (!sw->lft)
		return cli_no_memory();
	if (from->n_stored)
		memcpy(sw->lft, from->port, from->n_stored);
	sw->n_lids = from->n_stored;
	sw->n_relayed = from->lft_top + 1;
	sw->mlid_top = (uint16_t)from->mft_top;
	sw->has_default = from->mft_default;
	return read_mft(s, end->index, from->mft);
}

static int read_tables(struct cli_subnet *s, struct control_client *client)
{
	struct cli_tables t;
	int ret = cli_tables_read(&t, client, NULL);

	if (ret)
		return ret;
	ret = cli_tables_each(&t, keep_table, s);
	cli_tables_free(&t);
	return ret;
}

/* ---- groups ---- */

static int read_members(struct cli_subnet *s, struct check_group *g, struct json_object *members)
{
	for (size_t i = 0; i < cli_json_count(members); i++) {
		const char *state = cli_json_text(cli_json_at(members, i), "join_state");
		struct check_member m = { .sends = true, .receives = !strstr(state, "send") };
		const struct cli_subnet_end *end;
		struct in6_addr gid;
		uint64_t guid = 0;

		if (inet_pton(AF_INET6, cli_json_text(cli_json_at(members, i), "port_gid"), &gid) !=
		    1)
			continue;
		for (unsigned k = 8; k < 16; k++)
			guid = guid << 8 | gid.s6_addr[k];
		end = cli_subnet_by_guid(s, guid);
		if (!end)
			continue;
		m.host = end->index;
		if (check_add_member(g, &m))
			return cli_no_memory();
	}
	return 0;
}

static int read_group(struct cli_subnet *s, struct json_object *from)
{
	unsigned long mlid = strtoul(cli_json_text(from, "mlid"), NULL, 16);
	const struct wire_rate *rate;
	struct check_group *g;

	/* members of groups of another subnet administrator are not known */
	if (mlid < CHECK_MLID || !json_object_object_get(from, "members"))
		return 0;
	g = check_add_group(&s->net);
	if (!g)
		return cli_no_memory();
	g->name = cli_json_text(from, "mgid");
	g->mlid = (uint16_t)mlid;
	g->pkey = (uint16_t)strtoul(cli_json_text(from, "pkey"), NULL, 16);
	g->sl = (uint8_t)(cli_json_number(from, "sl") % CHECK_SLS);
	g->mtu = mtu_of(cli_json_number(from, "mtu"));
	rate = wire_rate_find((unsigned)cli_json_number(from, "rate"));
	g->rate = rate ? (unsigned)rate->mult * 25 : 0;
	return read_members(s, g, cli_json_array(from, "members"));
}

static int read_groups(struct cli_subnet *s, struct control_client *client)
{
	int ret = 0;

	s->kept[1] = cli_request_json(client, "groups");
	if (!s->kept[1])
		return CLI_FAILED;
	for (size_t i = 0; i < cli_json_count(s->kept[1]) && !ret; i++)
		ret = read_group(s, cli_json_at(s->kept[1], i));
	return ret;
}

/* ---- all ---- */

/* Until the subnet manager does not sweep: the tables are half old and half new then. */
static int wait_for_sweep(struct cli_subnet *s, struct control_client *client)
{
	const uint64_t began = base_now_ns();
	bool sweeping = true;

	while (sweeping) {
		struct json_object *status = cli_request_json(client, "status"), *sm;

		if (!status)
			return CLI_FAILED;
		sm = json_object_object_get(status, "sm");
		sweeping = json_object_object_get(sm, "sweeping") != NULL;
		if (json_object_object_get(sm, "routing"))
			snprintf(s->routing, sizeof(s->routing), "%s",
			         cli_json_text(sm, "routing"));
		s->foreign = !!strcmp(cli_json_text(sm, "state"), "master");
		json_object_put(status);
		if (sweeping && base_now_ns() - began > PATIENCE_NS) {
			base_log("the subnet manager is sweeping, and does not end");
			return CLI_FAILED;
		}
		if (sweeping)
			nanosleep(&(struct timespec){ .tv_nsec = LOOK_MS * NS_PER_MS }, NULL);
	}
	return 0;
}

int cli_subnet_read(struct cli_subnet *s, struct control_client *client)
{
	int ret;

	*s = (struct cli_subnet){ 0 };
	ret = wait_for_sweep(s, client);
	if (!ret)
		ret = read_topology(s, client);
	if (!ret)
		ret = read_ports(s, client);
	if (!ret)
		ret = read_tables(s, client);
	if (!ret)
		ret = read_groups(s, client);
	return ret;
}
